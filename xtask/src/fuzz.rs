//! `cargo xtask fuzz`: runs the coverage-guided fuzz targets of the folder `fuzz`, with the stable compiler.

use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::workspace::{cargo, root, succeed};

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Run only this target
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Duration of each target, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

const INSTALL: &str = "cargo-fuzz is not installed. Get it with: cargo install cargo-fuzz";

/// Runs the targets one after the other. Failing inputs stay in `fuzz/artifacts`.
pub(crate) fn run(args: &FuzzArgs) -> Outcome {
    if !installed() {
        return Outcome::single(Err(INSTALL.to_owned()));
    }
    let targets = match targets() {
        Ok(targets) => targets,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    let chosen = |target: &&String| args.target.as_ref().is_none_or(|name| name == *target);
    let mut outcome = Outcome::default();
    for target in targets.iter().filter(chosen) {
        outcome.note(one(target, args.seconds));
    }
    if outcome.passed + outcome.complaints.len() == 0 {
        let known = targets.join(", ");
        outcome.note(Err(format!("there is no such target; there are: {known}")));
    }
    outcome
}

fn installed() -> bool {
    let mut command = Command::new("cargo-fuzz");
    command.arg("--version");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Names of the files in `fuzz/fuzz_targets`.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(&folder);
    let files = files.map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |path: std::path::PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    let mut names: Vec<String> = files.filter_map(|file| name(file.ok()?.path())).collect();
    names.sort_unstable();
    Ok(names)
}

fn one(target: &str, seconds: u64) -> Result<(), String> {
    // Sanitizers need a nightly compiler, and these targets test no unsafe code of Foxy.
    let mut command = cargo(&["fuzz", "run", "--sanitizer", "none", target, "--"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.args(["-max_len=4096", "-timeout=10"]);
    succeed(&mut command, "the input is in fuzz/artifacts")
}
