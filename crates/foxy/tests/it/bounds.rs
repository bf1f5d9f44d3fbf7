//! Runs small loads of the laboratory's memory measurement against the built program. The program must keep
//! its budget, and well-behaved clients must get complete answers.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use foxy_base::ByteSize;
use foxy_lab::bounds::{Bounds, Load};

#[test]
fn small_loads_stay_within_the_budget_and_disturb_nobody() {
    let bounds = Bounds {
        memory: vec![ByteSize::mib(192)],
        groups: Vec::new(),
        only: vec![Load::Misses8k, Load::HalfHeads, Load::Idle, Load::Purge],
        objects: 500,
        seconds: 1,
        quick: true,
        foxy: Some(env!("CARGO_BIN_EXE_foxy").into()),
        json: true,
    };
    let report = bounds.measure().unwrap();
    assert_eq!(report.rows.len(), 4);
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
}
