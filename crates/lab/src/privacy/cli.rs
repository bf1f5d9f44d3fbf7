//! The command line of `foxy-lab privacy`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::{Findings, Scope, json, measure, text};
#[cfg(feature = "tls")]
use crate::kit::Secured;
use crate::kit::peers::Peer;
use crate::kit::{self, Mode, beside, foxy};

/// Check that no user gets an answer that was fetched for another user. Exit code 1 if a user does
#[derive(Clone, Debug, clap::Args)]
pub struct Privacy {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Measure these caches in place of Foxy: nginx, varnish, squid, ats
    #[arg(long, value_delimiter = ',', value_name = "PEER")]
    peers: Vec<Peer>,
    /// Repeat the matrix for this time, in seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Seed of the order of cells and visits
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Run ten rounds with eight users in each cell
    #[arg(long)]
    long: bool,
    /// Measure Foxy with TLS to the users and to the origin
    #[cfg(feature = "tls")]
    #[arg(long, conflicts_with = "peers")]
    tls: bool,
    /// Leave out the traffic on per-user pages
    #[arg(long)]
    no_traffic: bool,
}

impl Privacy {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.all())
    }

    fn scope(&self) -> Scope {
        let plain = Scope::default();
        Scope {
            seed: self.seed,
            rounds: if self.long { 10 } else { plain.rounds },
            at_least: Duration::from_secs(self.seconds.unwrap_or(0)),
            others: if self.long { 7 } else { plain.others },
            traffic: !self.no_traffic,
        }
    }

    /// Measures. Returns true if no user got an answer of another user.
    fn all(&self) -> Result<bool, String> {
        let folder = kit::folder()?;
        let subjects = self.subjects();
        let measure = &|subject: &Subject| {
            let place = folder.path().join(subject.name());
            std::fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
            self.measure(subject, &place)
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let start = |subject| scope.spawn(move || measure(subject));
            let running: Vec<_> = subjects.iter().map(start).collect();
            let lost = |_| Err("a measurement was lost".to_owned());
            let end = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(lost);
            running.into_iter().map(end).collect()
        });
        let mut reports = Vec::new();
        let mut good = true;
        for (subject, findings) in subjects.iter().zip(results) {
            let findings: Findings = findings?;
            good &= findings.foreign() == 0 && !findings.is_broken();
            let title = format!("{}, seed {}", subject.name(), self.seed);
            match self.json {
                true => reports.push(json(&title, &findings)),
                false => println!("{}", text(&title, &findings)),
            }
        }
        if self.json {
            println!("{}", serde_json::Value::Array(reports));
        }
        Ok(good)
    }

    fn subjects(&self) -> Vec<Subject> {
        let modes = [Mode::Reverse, Mode::Forward];
        #[cfg(feature = "tls")]
        if self.tls {
            return modes.map(Subject::Secured).into();
        }
        let foxy = modes.map(Subject::Foxy);
        let peers: Vec<_> = self.peers.iter().copied().map(Subject::Peer).collect();
        if peers.is_empty() { foxy.into() } else { peers }
    }

    fn measure(&self, subject: &Subject, folder: &Path) -> Result<Findings, String> {
        let scope = self.scope();
        let program = || self.foxy.clone().unwrap_or_else(beside);
        match subject {
            Subject::Foxy(mode) => measure(&scope, mode.scheme(), |origin| {
                foxy(&program(), *mode, origin, folder)
            }),
            #[cfg(feature = "tls")]
            Subject::Secured(mode) => measure(&scope, Secured::scheme(*mode), |origin| {
                Secured::start(&program(), *mode, origin, folder)
            }),
            Subject::Peer(peer) => {
                let scheme = (!peer.is_reverse()).then_some("http");
                measure(&scope, scheme, |origin| peer.start(origin, folder))
            }
        }
    }
}

/// A proxy to measure.
enum Subject {
    Foxy(Mode),
    #[cfg(feature = "tls")]
    Secured(Mode),
    Peer(Peer),
}

impl Subject {
    fn name(&self) -> String {
        match self {
            Self::Foxy(mode) => format!("foxy-{}", mode.name()),
            #[cfg(feature = "tls")]
            Self::Secured(mode) => format!("foxy-{}-tls", mode.name()),
            Self::Peer(peer) => peer.name().to_owned(),
        }
    }
}
