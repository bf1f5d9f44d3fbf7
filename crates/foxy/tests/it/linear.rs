//! Runs the laboratory's linearizability load against the built program, which is killed repeatedly. No
//! answer may be wrong. No answer may be older than an acknowledged change, or older than a version that was
//! completely served before.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use foxy_lab::linear::Linear;

#[test]
fn no_answer_goes_back_behind_what_was_served_or_acknowledged() {
    let long = std::env::var_os("FOXY_LONG").is_some();
    let load = Linear {
        seconds: if long { 600 } else { 20 },
        kills: if long { 12 } else { 2 },
        seed: 1,
        urls: 24,
        foxy: Some(env!("CARGO_BIN_EXE_foxy").into()),
    };
    let report = load.load().unwrap();
    println!("{}", report.summary);
    assert!(
        report.broken.is_empty(),
        "{}",
        report.histories.join("\n\n")
    );
}
