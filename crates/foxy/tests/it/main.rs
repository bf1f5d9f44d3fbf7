//! Tests of the programs `foxy` and `foxy-lab`, which are started as users start them. All these tests are in
//! one test program, because each test program takes seconds to link.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a helper or in an origin's thread fails the test"
)]

mod attacks;
mod bounds;
mod build_caches;
mod canary;
mod clients;
mod common;
mod formats;
#[path = "../../../../golden/read.rs"]
mod frozen;
mod incident_memory;
mod lab;
mod linear;
mod log_details;
mod mirrors;
mod monitoring;
mod old_rules;
mod output;
mod privacy;
mod reload;
mod reloads;
mod service;
mod starts;
