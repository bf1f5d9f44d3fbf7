//! Tests of commands with the stores that an operator may have: a store of format version 1, and stores of
//! other versions.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use crate::frozen;

use std::path::Path;
use std::process::{Command, Output};

/// Distance between the two superblocks, and length of each superblock, in bytes.
const SUPERBLOCK: usize = 4096;
/// Position of the version in a superblock.
const VERSION: usize = 4;

/// Returns a store that was written with format version 1 and is kept in a file for tests.
fn golden() -> Vec<u8> {
    let path = frozen::path(env!("CARGO_MANIFEST_DIR"), "v1");
    frozen::unhex(&std::fs::read_to_string(path).unwrap())
}

fn foxy(arguments: &[&str], store: &Path) -> Output {
    let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
    foxy.env_clear().args(arguments).arg(store);
    foxy.output().unwrap()
}

/// The commands that open a store. Each has the exit code with which it must refuse a store.
const COMMANDS: [(&[&str], i32); 3] = [
    (&["store", "inspect"], 2),
    (&["store", "verify"], 2),
    (
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "off",
            "--store",
        ],
        1,
    ),
];

#[test]
fn a_store_of_version_1_is_read_by_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    std::fs::write(&store, golden()).unwrap();
    for (arguments, _) in &COMMANDS[..2] {
        let output = foxy(arguments, &store);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    }
    let verified = foxy(COMMANDS[1].0, &store);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(said.contains("every checksum is right"), "{said}");
}

#[test]
fn a_store_of_another_version_is_named_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a store");
    let whose = [
        (9, "newer Foxy (format 9); use that version"),
        (0, "before the first release (format 0)"),
    ];
    for (version, says) in whose {
        let mut bytes = golden();
        bytes[VERSION] = version;
        bytes[SUPERBLOCK + VERSION] = version;
        std::fs::write(&store, &bytes).unwrap();
        for (arguments, code) in COMMANDS {
            let output = foxy(arguments, &store);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            for part in ["a store", says, "--force-format (this empties the cache)"] {
                assert!(
                    said.contains(part),
                    "{arguments:?} without {part:?}: {said}"
                );
            }
            assert_eq!(std::fs::read(&store).unwrap(), bytes, "{arguments:?}");
        }
    }
}
