//! The steps that only call a cargo tool.

use crate::report::Outcome;
use crate::workspace::{cargo, succeed};

/// Checks that rustfmt would change no file.
pub(crate) fn fmt() -> Outcome {
    let mut command = cargo(&["fmt", "--all", "--check"]);
    Outcome::single(succeed(&mut command, "`cargo fmt --all` mends it"))
}

/// Checks that the compiler and clippy give no warning, also in tests and examples. The laboratory enables
/// features of the product. So the product is checked a second time, without the laboratory.
pub(crate) fn clippy() -> Outcome {
    let mut outcome = Outcome::default();
    for what in [
        &["--workspace", "--all-targets"][..],
        &["--package", "foxy"],
    ] {
        let mut command = cargo(&[&["clippy"], what, &["--", "-D", "warnings"]].concat());
        outcome.note(succeed(
            &mut command,
            "the messages above name file, line and rule",
        ));
    }
    outcome
}

/// Checks that the API documentation of every crate builds, including its links.
pub(crate) fn doc() -> Outcome {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Outcome::single(succeed(
        &mut command,
        "usually a link to an item that is private or was renamed",
    ))
}
