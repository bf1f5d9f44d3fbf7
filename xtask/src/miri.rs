//! Runs tests of unsafe code under Miri, an interpreter that checks every memory access. Miri supports
//! neither io_uring, nor `madvise`, nor the allocator's C code. So Miri runs only the tests of memory code
//! that need none of these three.

use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::workspace::{root, succeed};

/// Packages, and for each package the filter that selects the tests that Miri can run.
const TESTS: [(&str, &str); 2] = [("foxy-disk", "buf::"), ("foxy-hummingbird-c", "owned::")];

pub(crate) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(why) = ensure() {
        outcome.note(Err(why));
        return outcome;
    }
    for (package, tests) in TESTS {
        let mut command = nightly(&["miri", "test", "--target-dir", "target/miri"]);
        command.args(["--package", package, "--lib", tests]);
        outcome.note(succeed(
            &mut command,
            "Miri's message names the use of memory",
        ));
    }
    outcome
}

/// Installs Miri if it is missing.
fn ensure() -> Result<(), String> {
    let mut version = nightly(&["miri", "--version"]);
    version.stdout(Stdio::null()).stderr(Stdio::null());
    if version.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
    rustup.args(["--component", "miri", "--component", "rust-src"]);
    succeed(&mut rustup, "Miri comes with a nightly compiler by rustup")
}

/// The cargo of the nightly compiler.
fn nightly(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).arg("+nightly").args(args);
    // These variables come from the calling cargo and name the stable compiler.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
