//! `cargo xtask bench tls`: memory hits and handshakes over TLS 1.3, compared with nginx.
//!
//! The servers share one core, and the load has the other core. The servers are measured alternately, and the
//! medians are compared. In each round, nginx runs twice. The median of its second runs divided by the median
//! of its first runs shows the noise. CPU is the run time of the server's threads as the kernel reports it,
//! divided by the number of answers. After the comparison, a certificate is replaced under load, and the
//! memory of idle connections is measured.

mod idle;
mod load;
mod servers;
mod swap;

use std::path::Path;

use foxy_lab::kit::peers::install;
use foxy_lab::kit::raise_files;

use self::load::Case;
use self::servers::Servers;
use crate::report::Outcome;
use crate::workspace::released;

/// Tools and their Debian packages.
const TOOLS: [(&str, &str); 3] = [
    ("nginx", "nginx-light"),
    ("h2load", "nghttp2-client"),
    ("openssl", "openssl"),
];
/// Number of runs in a round. nginx has two runs, Foxy has one.
const RUNS: usize = 3;
const FOXY: usize = 1;
/// Number of files that a server may have open in addition to its connections.
const SPARE_FILES: u64 = 200;

/// Options of the comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TlsArgs {
    /// Number of rounds; each runs nginx twice and Foxy once
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Foxy program to measure; default: a release build of this tree
    #[arg(long, value_name = "FILE")]
    foxy: Option<std::path::PathBuf>,
    /// Send only a tenth of the requests
    #[arg(long)]
    quick: bool,
}

/// CPU time per answer in microseconds, for each of the three runs of a round.
type Values = [Vec<f64>; RUNS];

/// Runs the comparison and prints its results. Fails if a request fails or a goal is missed.
pub(crate) fn run(args: &TlsArgs) -> Result<Outcome, String> {
    install::ensure(&TOOLS)?;
    let programs = released(args.foxy.as_deref())?;
    let folder = tempfile::tempdir().map_err(|e| format!("no scratch folder: {e}"))?;
    let connections = if args.quick { 1_500 } else { 9_900 };
    // For each connection of a client, Foxy may have a second open file, for the request to nginx.
    raise_files(2 * connections + SPARE_FILES)?;
    let servers = Servers::start(&programs.foxy, folder.path())?;
    let mut outcome = Outcome::default();
    println!("| case | nginx us | foxy us | foxy / nginx | at most | nginx / nginx (noise) |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for case in Case::ALL {
        let values = measured(args, case, &servers, folder.path())?;
        println!("{}", row(case, &values));
        outcome.note(judged(case, ratio(&values)));
    }
    outcome.note(swap::measure(servers.foxy(), folder.path()));
    outcome.note(idle::measure(servers.foxy(), folder.path(), connections));
    Ok(outcome)
}

fn measured(
    args: &TlsArgs,
    case: Case,
    servers: &Servers,
    folder: &Path,
) -> Result<Values, String> {
    let mut values = Values::default();
    // The first requests make Foxy fetch and store the objects.
    case.measure(servers.foxy(), folder, 0.02)?;
    let share = if args.quick { 0.1 } else { 1.0 };
    for round in 0..args.rounds {
        // Every second round has the reverse order, so that a slow drift favours no server.
        let mut runs: Vec<_> = (0..RUNS).collect();
        if round % 2 == 1 {
            runs.reverse();
        }
        for run in runs {
            let server = match run {
                FOXY => servers.foxy(),
                _ => servers.nginx(),
            };
            values[run].push(case.measure(server, folder, share)?);
        }
    }
    Ok(values)
}

/// The middle value; 0 without values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn nginx(values: &Values) -> f64 {
    median(&[values[0].as_slice(), values[2].as_slice()].concat())
}

fn ratio(values: &Values) -> f64 {
    median(&values[FOXY]) / nginx(values)
}

fn row(case: Case, values: &Values) -> String {
    format!(
        "| {} | {:.2} | {:.2} | {:.3} | {} | {:.3} |",
        case.name(),
        nginx(values),
        median(&values[FOXY]),
        ratio(values),
        case.most(),
        median(&values[2]) / median(&values[0]),
    )
}

fn judged(case: Case, ratio: f64) -> Result<(), String> {
    if ratio <= case.most() {
        return Ok(());
    }
    Err(format!(
        "{}: {ratio:.3} of nginx's CPU, at most {} is wanted",
        case.name(),
        case.most()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_foxy_is_held_against_both_of_nginx() {
        let values = [vec![8.0, 9.0], vec![6.0, 7.0], vec![10.0, 9.0]];
        assert!((ratio(&values) - 7.0 / 9.0).abs() < 1e-9);
        assert!(judged(Case::Small, ratio(&values)).is_ok());
        assert!(judged(Case::Large, ratio(&values)).is_err());
    }
}
