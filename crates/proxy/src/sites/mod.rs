//! Properties of sites that are settings alone: the table of names and paths, and how a site answers apart from
//! its origins.
//!
//! It may use access. The site itself is `Site` in `state::config`.

pub(crate) mod compress;
pub(crate) mod manner;
pub(crate) mod objects;
pub(crate) mod table;
