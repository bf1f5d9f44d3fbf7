//! `cargo xtask conformance`: runs the public test suite of HTTP caches against Foxy as reverse and as
//! forward proxy. The result of each test (its verdict) must be equal to the verdict in a pinned table. If a
//! verdict changes, the table must be changed too. For this table, Foxy runs with all features that the
//! standard permits. Foxy's default settings use fewer of these features. A second table lists the tests
//! whose verdict is different with the default settings, with reasons.

mod certificate;
mod install;
mod losses;
mod servers;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::report::Outcome;
use crate::workspace::{programs, root};
use certificate::TestCertificate;
use install::{Suite, Tools};
use servers::{Mode, Running, Settings};
use table::{Table, Verdicts};

/// Options of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConformanceArgs {
    /// A checkout of the suite, in place of the pinned release.
    pub(crate) suite: Option<PathBuf>,
    /// True if the measured verdicts are written into the table.
    pub(crate) update: bool,
    /// True if Foxy runs without configuration.
    pub(crate) defaults: bool,
    /// True if TLS is used between client and Foxy, and between Foxy and origin.
    pub(crate) tls: bool,
}

/// Time limit of one run of the suite. A run usually takes one minute.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs the suite in both modes and compares the verdicts.
pub(crate) fn run(args: &ConformanceArgs) -> Outcome {
    match measure(args) {
        Ok(outcome) => outcome,
        Err(complaint) => Outcome::single(Err(complaint)),
    }
}

fn measure(args: &ConformanceArgs) -> Result<Outcome, String> {
    let tools = Tools::find()?;
    let folder = install::folder()?;
    let client = install::client(&tools, &folder)?;
    let suite = match &args.suite {
        Some(path) => Suite::checkout(path)?,
        None => install::release(&tools, &folder)?,
    };
    let foxy = programs()?.join("foxy");
    let settings = if args.defaults {
        Settings::Defaults
    } else {
        Settings::Wide
    };
    let certificate = match args.tls {
        true => Some(TestCertificate::make(&folder)?),
        false => None,
    };
    let certificate = certificate.as_ref();
    let run = |mode| {
        one(
            (mode, settings, certificate),
            &suite,
            &client,
            &foxy,
            &folder,
        )
    };
    let (reverse, forward) = thread::scope(|scope| {
        let reverse = scope.spawn(|| run(Mode::Reverse));
        let forward = run(Mode::Forward);
        let lost = || Err("the run in reverse mode was lost".to_owned());
        (reverse.join().unwrap_or_else(|_| lost()), forward)
    });
    let measured = [(Mode::Reverse, reverse?), (Mode::Forward, forward?)];
    let path = root().join("conformance").join(suite.table);
    match settings {
        Settings::Wide => compare(&path, &measured, args.update),
        Settings::Defaults => {
            let losses = root().join("conformance").join(suite.losses);
            losses::compare(&Table::read(&path)?, &losses, &measured, args.update)
        }
    }
}

/// Compares the measured verdicts with the table at `path`, or writes them into it.
fn compare(path: &Path, measured: &[(Mode, Verdicts)], update: bool) -> Result<Outcome, String> {
    let mut table = Table::read(path)?;
    if update {
        table.update(measured);
        table.write(path)?;
    }
    let mut outcome = table.reasons_missing();
    for (mode, verdicts) in measured {
        println!("   {:<8} {}", mode.name(), verdicts.summary());
        outcome.join(table.compare(mode.name(), verdicts));
    }
    Ok(outcome)
}

/// Runs the complete suite once.
fn one(
    (mode, settings, certificate): (Mode, Settings, Option<&TestCertificate>),
    suite: &Suite,
    client: &Path,
    foxy: &Path,
    folder: &Path,
) -> Result<Verdicts, String> {
    let origin = Running::origin(suite, (mode, certificate), folder)?;
    let proxy = Running::foxy(foxy, suite, (mode, settings, certificate), &origin, folder)?;
    let out = folder.join(format!("{}.json", mode.name()));
    let mut command = Command::new("node");
    command
        .arg("--no-warnings")
        .arg(root().join("conformance").join("run.mjs"))
        .arg("--suite")
        .arg(&suite.folder)
        .arg("--client")
        .arg(client)
        .arg("--out")
        .arg(&out);
    match mode {
        Mode::Reverse => command.args(["--base", &proxy.url()]),
        Mode::Forward => command.args(["--base", &origin.url(), "--proxy", &proxy.url()]),
    };
    if let Some(certificate) = certificate {
        command.env("NODE_EXTRA_CA_CERTS", &certificate.file);
    }
    // The suite prints much text, which is dropped. It also writes its results to a file, which is read
    // below.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    servers::finish(command, TIMEOUT)?;
    Verdicts::read(&out)
}
