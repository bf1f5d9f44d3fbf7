//! The steps that only call a cargo tool.

use crate::report::Outcome;
use crate::workspace::{cargo, succeed};

/// Every file is formatted as rustfmt has it.
pub(crate) fn fmt() -> Outcome {
    let mut command = cargo(&["fmt", "--all", "--check"]);
    Outcome::single(succeed(&mut command, "`cargo fmt --all` mends it"))
}

/// No warning from the compiler or clippy, tests and examples included. The product is also checked
/// alone: in the workspace it has the features that the laboratory turns on.
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

/// The API documentation of every crate builds, links included.
pub(crate) fn doc() -> Outcome {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Outcome::single(succeed(
        &mut command,
        "usually a link to an item that is private or was renamed",
    ))
}
