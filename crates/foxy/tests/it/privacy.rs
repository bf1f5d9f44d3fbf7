//! Runs the laboratory's privacy matrix against the built product: no user may get an answer that
//! was fetched for another.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::path::Path;

use foxy_lab::kit::{Mode, foxy};
use foxy_lab::privacy::{Extent, measure, text};

fn matrix(mode: Mode) {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_foxy"));
    let extent = Extent {
        others: if std::env::var_os("FOXY_LONG").is_some() {
            8
        } else {
            2
        },
        // The traffic part of the laboratory takes longer, and covers no further cell.
        traffic: mode == Mode::Reverse,
        ..Extent::default()
    };
    let start = |origin| foxy(program, mode, origin, folder.path());
    let findings = measure(&extent, mode == Mode::Forward, start).unwrap();
    let report = text(mode.name(), &findings);
    assert_eq!(findings.foreign(), 0, "{report}");
    assert!(!findings.is_broken(), "{report}");
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_forward_proxy() {
    matrix(Mode::Forward);
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_reverse_proxy() {
    matrix(Mode::Reverse);
}
