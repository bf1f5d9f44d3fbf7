//! A soak: one process gets all loads one after another, in many rounds. The resources that the process uses
//! between two rounds must not grow.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foxy_base::ByteSize;
use tempfile::TempDir;
use tokio::time::Instant;

use super::fixture::{Client, Fixture};
use super::load::{self, Load, Scale};
use super::loads::{LARGE, LARGE_OBJECTS, SMALL, large, small};
use super::objects;
use super::row::mebibytes;
use super::run::Backend;
use super::subject::{Limit, Setup, Subject};
use super::tally::Tally;
use crate::kit::{self, Memory, beside, raise_files, room_for_files, runtime};

/// The loads of a round, in this order. Each load with misbehaving clients is followed by a load with
/// well-behaved clients.
const ROUND: [Load; 7] = [
    Load::HalfHeads,
    Load::Misses8k,
    Load::Unread,
    Load::Misses60k,
    Load::Idle,
    Load::Misses2m,
    Load::Crowd,
];
/// Smallest number of rounds that can be judged. Fewer rounds show no trend.
const FEWEST: usize = 6;
/// Growth of resident memory that counts as noise, in percent.
const NOISE: u64 = 5;
/// Growth of the number of open files that counts as noise.
const FILES: u64 = 8;

/// Run all loads of `bounds` on one process, round after round, with a purge in each round. Exit code 1 if
/// resident memory or open files between the rounds grow, or Foxy ends
#[derive(Clone, Debug, clap::Args)]
pub struct Soak {
    /// Duration of the whole run, in minutes; at least six rounds are run
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub minutes: u64,
    /// Duration of each load, in seconds
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub seconds: u64,
    /// Memory budget
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    pub memory: ByteSize,
    /// Size of the store; the run overwrites it many times
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub store: ByteSize,
    /// Use a tenth of the clients
    #[arg(long)]
    pub small: bool,
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    pub foxy: Option<PathBuf>,
}

/// The resources that the process uses between two rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Resident memory, in bytes.
    resident: u64,
    files: u64,
}

impl Held {
    fn of(pid: u32) -> Option<Self> {
        Some(Self {
            resident: Memory::of(pid)?.resident,
            files: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
        })
    }
}

impl Soak {
    /// Runs the soak, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure().map(|broken| {
            for broken in &broken {
                println!("BROKEN {broken}");
            }
            broken.is_empty()
        }))
    }

    fn measure(&self) -> Result<Vec<String>, String> {
        if !self.small {
            raise_files(super::FILES)?;
            room_for_files(super::FILES);
        }
        let backend = Backend::start()?;
        let setup = Setup {
            program: self.foxy.clone().unwrap_or_else(beside),
            origin: backend.port,
            store: self.store,
        };
        let folder = TempDir::new().map_err(|error| format!("no folder: {error}"))?;
        let mut subject = Subject::start(&setup, Limit::Budget(self.memory), folder.path())?;
        let pid = subject.child.pid();
        let fixture = Fixture::new(subject.proxy(), subject.admin(), &backend.origin);
        let fixture = Arc::new(fixture);
        let runtime = runtime()?;
        let scale = Scale {
            time: Duration::from_secs(self.seconds),
            divisor: if self.small { 10 } else { 1 },
            after: Duration::from_secs(3),
        };
        let until = Instant::now() + Duration::from_secs(60 * self.minutes);
        let (mut held, mut all) = (Vec::new(), Tally::default());
        println!("  round  resident  files  answers");
        while held.len() < FEWEST || Instant::now() < until {
            let tally = runtime.block_on(round(&fixture, scale))?;
            thread::sleep(scale.after);
            if let Some(end) = subject.end() {
                return Ok(vec![format!("foxy {end}")]);
            }
            let now = Held::of(pid).ok_or("the process is gone")?;
            let (number, resident) = (held.len() + 1, mebibytes(now.resident));
            println!(
                "  {number:>5} {resident:>9} {:>6}  {}",
                now.files,
                tally.text()
            );
            held.push(now);
            all.merge(tally);
        }
        println!("  all: {}", all.text());
        Ok(grown(&held))
    }
}

/// Runs all loads and a purge.
async fn round(fixture: &Arc<Fixture>, scale: Scale) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut client = Client::new([127, 0, 0, 1].into(), fixture.proxy);
    // The store is overwritten during the run. So the objects that the loads need are requested again in
    // each round.
    tally.add(client.get(&small(), SMALL).await);
    for number in 0..LARGE_OBJECTS {
        tally.add(client.get(&large(number), LARGE).await);
    }
    for load in ROUND {
        let mut outcome = load::run(load, fixture, scale).await;
        if let Some(own) = outcome.own.take() {
            tally.merge(own);
        }
    }
    objects::purge(fixture).await?;
    tally.notes.clear();
    Ok(tally)
}

/// Compares the last third of the rounds with the second third. The first third is left out, because memory
/// and store are still being filled then.
fn grown(held: &[Held]) -> Vec<String> {
    let third = held.len() / 3;
    let median = |rounds: &[Held], of: fn(&Held) -> u64| {
        let mut values: Vec<u64> = rounds.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let (second, last) = (&held[third..2 * third], &held[2 * third..]);
    let mut broken = Vec::new();
    let resident = [second, last].map(|part| median(part, |held| held.resident));
    let files = [second, last].map(|part| median(part, |held| held.files));
    println!(
        "  second third: {}, {} files; last third: {}, {} files",
        mebibytes(resident[0]),
        files[0],
        mebibytes(resident[1]),
        files[1]
    );
    if resident[1] > resident[0] + resident[0] * NOISE / 100 {
        broken.push("resident memory grows".to_owned());
    }
    if files[1] > files[0] + FILES {
        broken.push("open files grow".to_owned());
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of: impl Fn(u64) -> Held) -> Vec<Held> {
        (0..30).map(of).collect()
    }

    #[test]
    fn what_grows_is_named() {
        let flat = |round| Held {
            resident: 1000 + round % 3 * 10,
            files: 40 + round % 2,
        };
        assert!(grown(&rounds(flat)).is_empty());
        let leak = |round| Held {
            resident: 1000 + round * 10,
            files: 40,
        };
        assert_eq!(grown(&rounds(leak)), ["resident memory grows"]);
        let open = |round| Held {
            resident: 1000,
            files: 40 + round,
        };
        assert_eq!(grown(&rounds(open)), ["open files grow"]);
    }
}
