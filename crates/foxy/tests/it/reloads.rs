//! Runs a short form of the laboratory's reloads against the built program: under load with downloads, with
//! broken files, and during fetches.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use foxy_lab::reloads::Reloads;

#[test]
fn reloads_fail_no_request_and_nothing_is_served_under_rules_that_are_gone() {
    let long = std::env::var_os("FOXY_LONG").is_some();
    let reloads = Reloads {
        foxy: Some(env!("CARGO_BIN_EXE_foxy").into()),
        seed: 1,
        reloads: if long { 500 } else { 60 },
        rate: 1000,
        downloads: if long { 500 } else { 100 },
        broken: 50,
        pause: 50,
        sites: if long { 1000 } else { 200 },
    };
    let findings = reloads.measure().unwrap();
    println!("{findings}");
    assert!(findings.faults.is_empty(), "{findings}");
}
