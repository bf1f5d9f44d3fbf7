//! `cargo xtask`: every check of the workspace, each alone or all together.
//!
//! `cargo xtask check` is what continuous integration runs and what a contributor runs before
//! handing in a change; there is no second list of checks anywhere else.

mod accept;
mod arrows;
mod bench;
mod beside;
mod conformance;
mod deps;
mod dist;
mod fuzz;
mod generated;
mod miri;
mod mutants;
mod report;
mod rooms;
mod steps;
mod tests_step;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use beside::Beside;
use report::Report;

// For their features alone, see Cargo.toml.
use {regex_syntax as _, tokio as _, zerocopy as _};

/// Checks, generated documents and their upkeep.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything: format, house rules, crates, lints, tests, documents
    Check {
        /// Skip what takes more than a minute (integration tests and the documentation build)
        #[arg(long, conflicts_with = "long")]
        fast: bool,
        /// Run randomised tests with many more seeds (sets FOXY_LONG=1); takes hours
        #[arg(long)]
        long: bool,
    },
    /// rustfmt, without changing anything
    Fmt,
    /// House rules: file lengths, leftovers, links, headers
    Tidy,
    /// Permitted dependencies between crates, and between the rooms of a crate
    Arrows,
    /// Licences and duplicate versions of dependencies
    Deps,
    /// clippy, warnings are errors
    Clippy,
    /// Unit, property, golden, scenario and documentation tests
    Test {
        /// Many more seeds (sets FOXY_LONG=1)
        #[arg(long)]
        long: bool,
        /// Only this part of them
        #[arg(long, value_enum)]
        part: Option<tests_step::Part>,
    },
    /// The programs that tests drive: installs those that are missing
    Clients,
    /// Model checks: every interleaving of small scenarios in concurrent code
    Models,
    /// Unsafe code under Miri, as far as Miri can run it (wants a nightly compiler)
    Miri,
    /// The public test suite of HTTP caches, against a pinned table of results
    Conformance {
        /// A checkout of the suite's repository, in place of the pinned release
        #[arg(long, value_name = "DIR")]
        suite: Option<std::path::PathBuf>,
        /// Write what was measured into the table
        #[arg(long)]
        update: bool,
        /// Foxy as it is without configuration, against the table of what that costs
        #[arg(long)]
        defaults: bool,
        /// TLS between client, Foxy and origin (wants openssl)
        #[arg(long)]
        tls: bool,
    },
    /// Coverage-guided fuzzing of parsers, rules and keys (wants cargo-fuzz)
    Fuzz(fuzz::Wanted),
    /// Measurements that a release must show on this machine: replays, restarts, cost of a hit
    Accept(accept::Wanted),
    /// Figures that anyone can repeat: Foxy beside its peers
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Packages: manual pages, .deb, container image, and their trial in a new system
    #[command(subcommand)]
    Dist(dist::Dist),
    /// Break every safety rule once: a test must notice (takes an hour)
    Mutants(mutants::Wanted),
    /// The documentation builds without warnings
    Doc,
    /// Generated documents are what the code says
    Generated,
    /// Write the generated documents anew
    Generate,
}

fn main() -> ExitCode {
    let mut report = Report::default();
    match Args::parse().command {
        Command::Check { fast, long } => check(&mut report, fast, long),
        Command::Fmt => report.step("format", steps::fmt),
        Command::Tidy => report.step("house rules", tidy::run),
        Command::Arrows => report.step("arrows", arrows::run),
        Command::Deps => report.step("dependencies", deps::run),
        Command::Clippy => report.step("lints", steps::clippy),
        Command::Test { long, part } => {
            report.step("tests", || tests_step::run(part, long, || {}));
        }
        Command::Clients => report.step("clients", tools::clients),
        Command::Models => report.step("model checks", tests_step::models),
        Command::Miri => report.step("miri", miri::run),
        Command::Conformance {
            suite,
            update,
            defaults,
            tls,
        } => {
            let wanted = conformance::Wanted {
                suite,
                update,
                defaults,
                tls,
            };
            report.step("conformance", || conformance::run(&wanted));
        }
        Command::Fuzz(wanted) => report.step("fuzz targets", || fuzz::run(&wanted)),
        Command::Accept(wanted) => accept::run(&mut report, &wanted),
        Command::Bench(what) => bench::run(&mut report, &what),
        Command::Dist(what) => dist::run(&mut report, &what),
        Command::Mutants(wanted) => report.step("mutants", || mutants::run(&wanted)),
        Command::Doc => report.step("documentation", steps::doc),
        Command::Generated => report.step("generated documents", generated::check),
        Command::Generate => report.step("generate documents", generated::write),
    }
    report.finish()
}

/// Cheap steps first, so that the usual mistakes show within seconds.
fn check(report: &mut Report, fast: bool, long: bool) {
    report.step("format", steps::fmt);
    report.step("house rules", tidy::run);
    report.step("arrows", arrows::run);
    report.step("dependencies", deps::run);
    report.step("table of mutants", mutants::check);
    if fast {
        report.step("lints", steps::clippy);
        report.step("unit tests", tests_step::fast);
        return;
    }
    let mut beside = Beside::default();
    report.step("tests of programs", || {
        let programs = Some(tests_step::Part::Programs);
        tests_step::run(programs, long, || beside.start(long))
    });
    report.step("conformance", || {
        conformance::run(&conformance::Wanted::default())
    });
    beside.report(report, long);
    report.step("generated documents", generated::check);
    if long {
        report.step("conformance of the defaults", || {
            conformance::run(&conformance::Wanted {
                defaults: true,
                ..conformance::Wanted::default()
            })
        });
        report.step("conformance over TLS", || {
            conformance::run(&conformance::Wanted {
                tls: true,
                ..conformance::Wanted::default()
            })
        });
        report.step("miri", miri::run);
        report.step("mutants", || mutants::run(&mutants::Wanted::default()));
        bench::gate(report);
    }
}
