//! `cargo xtask`: every check of the workspace, each check separately or all together.
//!
//! Continuous integration runs `cargo xtask check`, and a contributor runs it before submitting a change.
//! There is no other list of checks.

mod accept;
mod arrows;
mod bench;
mod conformance;
mod deps;
mod dist;
mod fuzz;
mod generated;
mod miri;
mod mutants;
mod parallel_steps;
mod report;
mod rooms;
mod steps;
mod tests_step;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use parallel_steps::ParallelSteps;
use report::Report;

// These crates are dependencies only for the features that they turn on, see Cargo.toml.
use {regex_syntax as _, tokio as _, zerocopy as _};

/// Checks of the workspace, and documents that are generated from code.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks: format, house rules, crates, lints, tests, documents
    Check {
        /// Skip steps that take more than a minute (integration tests and the documentation build)
        #[arg(long, conflicts_with = "long")]
        fast: bool,
        /// Run randomised tests with many more seeds (sets FOXY_LONG=1); takes hours
        #[arg(long)]
        long: bool,
    },
    /// Check the format with rustfmt, without changes
    Fmt,
    /// Check the house rules: file lengths, leftovers, links, headers
    Tidy,
    /// Check the dependencies between crates, and between the rooms of a crate
    Arrows,
    /// Check licences and duplicate versions of dependencies
    Deps,
    /// Run clippy; warnings are errors
    Clippy,
    /// Run unit, property, golden, scenario and documentation tests
    Test {
        /// Run randomised tests with many more seeds (sets FOXY_LONG=1)
        #[arg(long)]
        long: bool,
        /// Run only this part of the tests
        #[arg(long, value_enum)]
        part: Option<tests_step::Part>,
    },
    /// Install missing client programs that tests need
    Clients,
    /// Run model checks: every interleaving of small scenarios in concurrent code
    Models,
    /// Run unsafe code under Miri, as far as Miri supports it (needs a nightly compiler)
    Miri,
    /// Run the public test suite of HTTP caches and compare the results with a pinned table
    Conformance {
        /// Checkout of the suite's repository, in place of the pinned release
        #[arg(long, value_name = "DIR")]
        suite: Option<std::path::PathBuf>,
        /// Write the measured results into the table
        #[arg(long)]
        update: bool,
        /// Run Foxy without configuration and compare with the table of losses of the defaults
        #[arg(long)]
        defaults: bool,
        /// Use TLS between client, Foxy and origin (needs openssl)
        #[arg(long)]
        tls: bool,
    },
    /// Run coverage-guided fuzzing of parsers, rules and keys (needs cargo-fuzz)
    Fuzz(fuzz::FuzzArgs),
    /// Run the measurements that a release must pass on this machine: replays, restarts, cost of a hit
    Accept(accept::AcceptArgs),
    /// Run measurements that anyone can repeat: Foxy compared with its peers
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Make packages: manual pages, .deb, container image; try them in a new system
    #[command(subcommand)]
    Dist(dist::Dist),
    /// Break every safety rule once: a test must notice (takes an hour)
    Mutants(mutants::MutantsArgs),
    /// Check that the documentation builds without warnings
    Doc,
    /// Check that generated documents match the code
    Generated,
    /// Write the generated documents again
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
            let args = conformance::ConformanceArgs {
                suite,
                update,
                defaults,
                tls,
            };
            report.step("conformance", || conformance::run(&args));
        }
        Command::Fuzz(args) => report.step("fuzz targets", || fuzz::run(&args)),
        Command::Accept(args) => accept::run(&mut report, &args),
        Command::Bench(what) => bench::run(&mut report, &what),
        Command::Dist(what) => dist::run(&mut report, &what),
        Command::Mutants(args) => report.step("mutants", || mutants::run(&args)),
        Command::Doc => report.step("documentation", steps::doc),
        Command::Generated => report.step("generated documents", generated::check),
        Command::Generate => report.step("generate documents", generated::write),
    }
    report.finish()
}

/// Runs the fast steps first, so that common mistakes show within seconds.
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
    let mut parallel = ParallelSteps::default();
    report.step("tests of programs", || {
        let programs = Some(tests_step::Part::Programs);
        tests_step::run(programs, long, || parallel.start(long))
    });
    report.step("conformance", || {
        conformance::run(&conformance::ConformanceArgs::default())
    });
    parallel.report(report, long);
    report.step("generated documents", generated::check);
    if long {
        report.step("conformance of the defaults", || {
            conformance::run(&conformance::ConformanceArgs {
                defaults: true,
                ..conformance::ConformanceArgs::default()
            })
        });
        report.step("conformance over TLS", || {
            conformance::run(&conformance::ConformanceArgs {
                tls: true,
                ..conformance::ConformanceArgs::default()
            })
        });
        report.step("miri", miri::run);
        report.step("mutants", || mutants::run(&mutants::MutantsArgs::default()));
        bench::check_instructions(report);
    }
}
