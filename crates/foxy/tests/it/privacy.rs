//! Runs the laboratory's privacy matrix against the built program. No user may get an answer that was fetched
//! for another user.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::path::Path;

use foxy_lab::kit::{Mode, Secured, foxy};
use foxy_lab::privacy::{Findings, Scope, measure, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_foxy");

fn scope(mode: Mode) -> Scope {
    Scope {
        others: if std::env::var_os("FOXY_LONG").is_some() {
            8
        } else {
            2
        },
        // The traffic part takes longer than the matrix. The matrix tests the same header sets (fields of
        // answers) in each mode. So the traffic part runs in one mode only.
        traffic: mode == Mode::Reverse,
        ..Scope::default()
    }
}

fn judge(mode: Mode, findings: &Findings) {
    let report = text(mode.name(), findings);
    assert_eq!(findings.foreign(), 0, "{report}");
    assert!(!findings.is_broken(), "{report}");
}

fn matrix(mode: Mode) {
    let folder = tempfile::tempdir().unwrap();
    let start = |origin| foxy(Path::new(PROGRAM), mode, origin, folder.path());
    judge(mode, &measure(&scope(mode), mode.scheme(), start).unwrap());
}

/// Runs the matrix with TLS to users and to the origin.
fn matrix_over_tls(mode: Mode) {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope {
        traffic: false,
        ..scope(mode)
    };
    let start = |origin| Secured::start(Path::new(PROGRAM), mode, origin, folder.path());
    judge(
        mode,
        &measure(&scope, Secured::scheme(mode), start).unwrap(),
    );
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_forward_proxy() {
    matrix(Mode::Forward);
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_reverse_proxy() {
    matrix(Mode::Reverse);
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_forward_proxy_over_tls() {
    matrix_over_tls(Mode::Forward);
}

#[test]
fn no_user_is_given_the_answer_of_another_by_a_reverse_proxy_over_tls() {
    matrix_over_tls(Mode::Reverse);
}
