//! The commands of `foxy-lab sim` as a user runs them: with bad logs, with absurd parameters, without space
//! for results, and with Ctrl-C.

#![expect(clippy::unwrap_used, reason = "tests: a panic is their way to fail")]

mod logs;
mod output;
mod parameters;
mod stopping;

use std::process::{Command, Output, Stdio};

/// A command of the binary with the words of `line` as arguments; `{}` is replaced by `file`.
fn command(line: &str, file: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy-lab"));
    command.arg("sim");
    let file = file.display().to_string();
    command.args(
        line.split_whitespace()
            .map(|word| word.replace("{}", &file)),
    );
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Returns exit code, standard output and standard error.
fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

fn call(line: &str, file: &std::path::Path) -> (i32, String, String) {
    parts(&command(line, file).output().unwrap())
}
