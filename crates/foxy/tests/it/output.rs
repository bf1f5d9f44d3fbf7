//! Tests of commands whose output is closed by its reader, or cannot be written.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs::File;
use std::process::{Command, Stdio};

fn check() -> Command {
    let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
    foxy.arg("check").env_clear();
    foxy
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_no_crash() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = check().stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("foxy: cannot write the answer: "),
        "{said}"
    );
}

#[test]
fn whoever_reads_may_have_seen_enough() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = check().stdout(Stdio::from(writer)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, "");
}
