//! `cargo xtask conformance`: runs the public test suite of HTTP caches against Foxy as reverse and as
//! forward proxy. The result of each test (its verdict) must be equal to the verdict in a pinned table. If a
//! verdict changes, the table must be changed too. For this table, Foxy runs with all features that the
//! standard permits. Foxy's default settings use fewer of these features. A second table lists the tests
//! whose verdict is different with the default settings, with reasons.

mod certificate;
mod install;
mod losses;
mod runs;
mod servers;
mod table;

use std::path::{Path, PathBuf};
use std::thread;

use crate::report::Outcome;
use crate::workspace::{programs, root};
use certificate::TestCertificate;
use install::{Suite, Tools};
use losses::Losses;
use runs::Runs;
use servers::{Mode, Settings};
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
    let settings = if args.defaults {
        Settings::Defaults
    } else {
        Settings::Wide
    };
    let tables = root().join("conformance");
    let path = tables.join(suite.table);
    let table = Table::read(&path)?;
    let losses_path = tables.join(suite.losses);
    let losses = match settings {
        Settings::Wide => Losses::default(),
        Settings::Defaults => Losses::read(&losses_path)?,
    };
    let runs = Runs {
        certificate: match args.tls {
            true => Some(TestCertificate::make(&folder)?),
            false => None,
        },
        foxy: programs()?.join("foxy"),
        suite,
        settings,
        client,
        folder,
    };
    let run = |mode| runs.verdicts(mode, &losses.expected(&table, mode));
    let (reverse, forward) = thread::scope(|scope| {
        let reverse = scope.spawn(|| run(Mode::Reverse));
        let forward = run(Mode::Forward);
        let lost = || Err("the run in reverse mode was lost".to_owned());
        (reverse.join().unwrap_or_else(|_| lost()), forward)
    });
    let measured = [(Mode::Reverse, reverse?), (Mode::Forward, forward?)];
    match settings {
        Settings::Wide => compare(&path, table, &measured, args.update),
        Settings::Defaults => losses.compare(&table, &losses_path, &measured, args.update),
    }
}

/// Compares the measured verdicts with the table at `path`, or writes the verdicts into the table.
fn compare(
    path: &Path,
    mut table: Table,
    measured: &[(Mode, Verdicts)],
    update: bool,
) -> Result<Outcome, String> {
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
