//! `foxy sim`, `foxy trace` and `foxy bench`: they are run by the second program, `foxy-lab`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::failed;

/// Name of the second program.
const LAB: &str = "foxy-lab";

/// Replaces this process by `foxy-lab COMMAND ARGS...`. Uses the `foxy-lab` in the folder of this program,
/// else the `foxy-lab` on PATH. Returns only if `foxy-lab` cannot be run.
pub(super) fn run(command: &str, args: &[OsString]) -> ExitCode {
    let own = std::env::current_exe().unwrap_or_default();
    for program in [own.with_file_name(LAB), PathBuf::from(LAB)] {
        let error = Command::new(&program).arg(command).args(args).exec();
        if error.kind() != ErrorKind::NotFound {
            return failed(format!("{} does not start: {error}", program.display()));
        }
    }
    failed(advice(command, own.parent().unwrap_or(Path::new("."))))
}

/// Advice for a machine without `foxy-lab`.
fn advice(command: &str, folder: &Path) -> String {
    format!(
        "`foxy {command}` is part of the program {LAB}, which is neither in {} nor on PATH; build it \
         with `cargo build --release -p {LAB}` and put it there",
        folder.display()
    )
}
