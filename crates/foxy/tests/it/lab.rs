//! Tests of `foxy sim`, `foxy trace` and `foxy bench`, which run the second program, `foxy-lab`.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::clients::process::run;

/// A script that prints its arguments, copies its input, and ends with exit code 7.
const FAKE: &str = "#!/bin/sh\nprintf '[%s]' \"$@\"\ncat\nexit 7\n";

/// Copies a program in a separate process. If this process wrote the copy, a child process that another test
/// starts at the same time would inherit the open file for a moment. During that moment, the copy could not
/// be executed, because a program that is open for writing cannot be executed.
fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").args([from, to]));
}

/// Writes a program that takes the place of `foxy-lab`.
fn install(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let (text, program) = (folder.join("text"), folder.join("foxy-lab"));
    fs::write(&text, FAKE).unwrap();
    fs::set_permissions(&text, Permissions::from_mode(0o755)).unwrap();
    copy(&text, &program);
}

fn foxy(program: &Path, path: &Path, args: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", path.display());
    let mut foxy = Command::new(program);
    foxy.args(args).env("PATH", path).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn commands_of_the_laboratory_are_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (program, path) = (folder.path().join("foxy"), folder.path().join("path"));
    copy(env!("CARGO_BIN_EXE_foxy").as_ref(), &program);

    let output = foxy(&program, &path, &["sim", "size", "log"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    for part in ["`foxy sim`", "PATH", "cargo build --release -p foxy-lab"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");

    // In the first round, `foxy-lab` is only on PATH. In the second round, it is only in the folder of
    // `foxy`.
    for place in [path.as_path(), folder.path()] {
        install(place);
        for command in ["sim", "trace", "bench"] {
            for args in [&[][..], &["--help"], &["run", "-x", "--", "--json", "a b"]] {
                let all = [&[command], args].concat();
                let output = foxy(&program, &path, &all);
                let wanted: String = all.iter().map(|arg| format!("[{arg}]")).collect();
                assert_eq!(text(&output.stdout), wanted, "{}", text(&output.stderr));
                assert_eq!(output.status.code(), Some(7));
            }
        }
        // In the second round, the folder that PATH names must not exist.
        let _ = fs::remove_dir_all(&path);
    }

    fs::set_permissions(
        folder.path().join("foxy-lab"),
        Permissions::from_mode(0o644),
    )
    .unwrap();
    let output = foxy(&program, &path, &["bench", "origin"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("does not start"), "{error}");
}
