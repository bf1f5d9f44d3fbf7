//! The simulator: caches, published cache systems and modelled hardware run the same workloads.
//!
//! The cache [`levels`] turn the requests of a workload into disk operations. A [`layout`] executes these
//! operations. It is a file-space algorithm over a [`model`] of a drive and a file system. [`run`] combines
//! these parts. [`live`] uses levels and a layout behind a real proxy. [`systems`] contains complete cache
//! systems, which do not use levels and layouts.
//!
//! "The papers" in comments of this crate are: "Secondary storage management for web proxies" (USITS'99) and
//! its journal version (WebCoSM, Transactions on Networking 2002), the papers about Hummingbird (draft of
//! 1999, USENIX 2001), and the paper about UCFS (IEEE Trans. Computers 2002). [`reproduce`] repeats their
//! experiments.

pub mod cli;
pub mod figure;
pub mod layout;
pub mod levels;
pub mod live;
pub mod model;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod size;
pub mod systems;
