//! `bench store trace`: a stream of requests runs through the engine and through another engine. Both have
//! the same memory and disk, get the requests at the same pace, and store every object. Each engine has its
//! own process.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};
use foxy_disk::AlignedBuf;
use foxy_store::{Admission, Lookup, StoreOptions};
use foxy_trace::generate::{ZipfWeb, ZipfWebConfig};
use serde::{Deserialize, Serialize};

use super::harness::{Harness, StoreParams, keyed};
use super::report::{Goal, Section};
use super::system::{self, Scratch};
use super::{Context, own_command};
use crate::Histogram;

/// Longest answer in bytes. Longer answers are left out, because this measurement does not compare the ways
/// in which engines split large objects.
const LONGEST: u64 = 200 << 10;
/// Greatest number of bytes that are stored per second. With this limit, no engine should drop objects
/// because it is too slow.
const PACE: f64 = 250e6;

/// Options of the measured process. The peer's program has the same options.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// File of requests; a request has 8 bytes for the object and 4 for the size, little-endian
    #[arg(long)]
    requests: PathBuf,
    /// Path of the store
    #[arg(long)]
    path: PathBuf,
    /// Size of the store
    #[arg(long)]
    disk: ByteSize,
    /// Memory budget of the engine
    #[arg(long)]
    memory: ByteSize,
    /// Only open the store that an earlier run left
    #[arg(long)]
    reopen: bool,
}

/// Results of a replay.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Replayed {
    hits: f64,
    dropped: f64,
    resident: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    p50_hit_us: f64,
    p99_hit_us: f64,
    p999_hit_us: f64,
    cpu_us: f64,
    written: f64,
    /// Seconds until all contents were available again.
    recovered: f64,
}

/// A stream of requests, and the disk and memory that the engines get for it.
struct Stream {
    name: &'static str,
    requests: Vec<(u64, u32)>,
    disk: u64,
    memory: u64,
}

impl Stream {
    fn new(
        name: &'static str,
        most: u64,
        requests: impl Iterator<Item = foxy_trace::Request>,
    ) -> Self {
        let kept = requests.filter(|r| r.size > 0 && r.size <= LONGEST);
        let requests: Vec<(u64, u32)> = kept.map(|r| (r.object, r.size as u32)).collect();
        let mut distinct = std::collections::HashMap::new();
        for (object, size) in &requests {
            distinct.insert(*object, u64::from(*size));
        }
        let bytes: u64 = distinct.values().sum();
        // The disk has space for a third of the bytes of all objects, so that space must be reused.
        let disk = (bytes / 3).max(192 << 20).min(most) >> 22 << 22;
        Self {
            name,
            requests,
            disk,
            memory: (disk / 10).max(64 << 20),
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        for (object, size) in &self.requests {
            file.write_all(&object.to_le_bytes())?;
            file.write_all(&size.to_le_bytes())?;
        }
        file.flush()
    }
}

/// Runs both streams through both engines.
pub(super) fn trace(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let requests = context
        .requests
        .unwrap_or(context.quick_or(100_000, 10_000_000));
    let config = ZipfWebConfig {
        requests,
        // Each object is requested ten times on average. Then the disk, which has space for a third of the
        // objects, has some GB.
        objects: (requests / 10).max(100_000),
        ..ZipfWebConfig::default()
    };
    let stream = Stream::new("web", context.size, ZipfWeb::new(config, 9));
    let mut sections = vec![both(context, &stream)?];
    let known = foxy_trace::files::Known::Bu98.path().and_then(|path| {
        let options = foxy_trace::Options::default();
        foxy_trace::open(&path, options).map_err(|e| e.to_string())
    });
    match known {
        Ok(reader) => {
            let stream = Stream::new("bu98", context.size, reader.filter_map(Result::ok));
            sections.push(both(context, &stream)?);
        }
        Err(why) => sections[0].missing(why),
    }
    Ok(sections)
}

fn both(context: &Context<'_>, stream: &Stream) -> io::Result<Section> {
    let name = if stream.name == "web" {
        "trace-web"
    } else {
        "trace-bu98"
    };
    let mut section = Section::new(
        name,
        format!(
            "{} requests ({}), disk {} MiB, memory {} MiB, everything admitted",
            stream.requests.len(),
            stream.name,
            stream.disk >> 20,
            stream.memory >> 20
        ),
    );
    let requests = Scratch::new(context.folder, "bench-trace.requests");
    stream.write(&requests.0)?;
    let own = (
        std::env::current_exe()?,
        [own_command(), vec!["replay".into()]].concat(),
    );
    let foxy = measure(context, stream, &requests.0, &own)?;
    let peer = context
        .peers
        .as_ref()
        .map(|p| measure(context, stream, &requests.0, &(p.clone(), vec![])));
    let peer = match peer {
        Some(Ok(peer)) => Some(peer),
        Some(Err(error)) => {
            section.missing(format!("the peer: {error}"));
            None
        }
        None => {
            section.missing(
                "the peer (foyer): build bench/store-peers and name its program with --peers",
            );
            None
        }
    };
    rows(
        &mut section,
        stream.requests.len() as f64,
        &foxy,
        peer.as_ref(),
    );
    Ok(section)
}

fn rows(section: &mut Section, requests: f64, foxy: &Replayed, peer: Option<&Replayed>) {
    type Statistic = (&'static str, &'static str, Aim, fn(&Replayed, f64) -> f64);
    let statistics: [Statistic; 13] = [
        ("hit ratio", "%", Aim::More, |r, n| r.hits / n * 100.0),
        ("resident memory", "MB", Aim::Less, |r, _| r.resident / 1e6),
        ("opened and everything back", "ms", Aim::Less, |r, _| {
            r.recovered * 1e3
        }),
        ("CPU per request, all threads", "us", Aim::Less, |r, _| {
            r.cpu_us
        }),
        ("request, p50", "us", Aim::None, |r, _| r.p50_us),
        ("request, p99", "us", Aim::Less, |r, _| r.p99_us),
        ("request, p99.9", "us", Aim::None, |r, _| r.p999_us),
        ("hit, p50", "us", Aim::None, |r, _| r.p50_hit_us),
        ("hit, p99", "us", Aim::None, |r, _| r.p99_hit_us),
        ("hit, p99.9", "us", Aim::None, |r, _| r.p999_hit_us),
        ("written by the process", "MB", Aim::None, |r, _| {
            r.written / 1e6
        }),
        ("written per request", "bytes", Aim::None, |r, n| {
            r.written / n
        }),
        ("admissions dropped", "%", Aim::None, |r, n| {
            r.dropped / n * 100.0
        }),
    ];
    for (name, unit, aim, of) in statistics {
        let row = section.row(name, of(foxy, requests), unit);
        let Some(peer) = peer else { continue };
        let other = of(peer, requests);
        row.reference("foyer", other);
        match aim {
            Aim::More => drop(row.goal(Goal::Least(other))),
            Aim::Less => drop(row.goal(Goal::Most(other))),
            Aim::None => {}
        }
    }
}

/// Goal of a value: it must be at least, or at most, the peer's value.
enum Aim {
    More,
    Less,
    /// The value has no goal.
    None,
}

/// Runs the stream through a program and kills the program. Then a new process opens the store that the
/// killed process left.
fn measure(
    context: &Context<'_>,
    stream: &Stream,
    requests: &Path,
    (program, before): &(PathBuf, Vec<String>),
) -> io::Result<Replayed> {
    let store = Scratch::new(context.folder, "bench-trace.store");
    let start = |more: &[&str]| -> io::Result<Replayed> {
        let mut child = Command::new(program)
            .args(before)
            .args(["--requests".as_ref(), requests.as_os_str()])
            .args(["--path".as_ref(), store.0.as_os_str()])
            .args(["--disk", &stream.disk.to_string()])
            .args(["--memory", &stream.memory.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        // The results are the first line that is a JSON object. Some libraries write other lines to standard
        // output before.
        let output = child.stdout.take().map(BufReader::new);
        let lines = output.into_iter().flat_map(BufRead::lines);
        let line = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with('{'))
            .unwrap_or_default();
        // The store is neither closed nor drained, as after a crash.
        child.kill()?;
        child.wait()?;
        serde_json::from_str(&line).map_err(|e| {
            io::Error::other(format!(
                "{}: said `{}`: {e}",
                program.display(),
                line.trim()
            ))
        })
    };
    let replayed = start(&[])?;
    system::drop_caches();
    let again = start(&["--reopen"])?;
    Ok(Replayed {
        recovered: again.recovered,
        ..replayed
    })
}

/// Runs the process that is measured.
pub(super) fn replay(args: &ReplayArgs, clock: &Arc<dyn Clock>) -> io::Result<()> {
    let begun = clock.mono();
    let options = StoreOptions::default();
    let params = StoreParams {
        path: &args.path,
        size: (!args.reopen).then(|| args.disk.bytes()),
        memory: args.memory.bytes(),
        options,
    };
    let harness = Harness::start(&params, clock)?;
    let mut answer = Replayed::default();
    if args.reopen {
        while harness.engine.stats().stores.iter().any(|s| s.loading) {
            std::thread::sleep(Duration::from_micros(200));
        }
        answer.recovered = clock.mono().since(begun).as_secs_f64();
    } else {
        run(&harness, &args.requests, &mut answer)?;
    }
    println!("{}", serde_json::to_string(&answer)?);
    io::stdout().flush()?;
    // Waits until this process is killed, or until the parent process has ended.
    let _ = io::stdin().read(&mut [0]);
    Ok(())
}

fn run(harness: &Harness, requests: &Path, answer: &mut Replayed) -> io::Result<()> {
    let data = std::fs::read(requests)?;
    let (mut all, mut hits) = (Histogram::default(), Histogram::default());
    let (start, cpu) = (harness.clock.mono(), system::cpu_seconds());
    let mut admitted = 0.0;
    for (object, size) in parse(&data) {
        let since = harness.clock.mono();
        let hit = ask(harness, object);
        if !hit {
            let put = harness.try_put(object, size as usize);
            answer.dropped += f64::from(u8::from(put != Admission::Disk));
            admitted += f64::from(size);
        }
        let took = harness.clock.mono().since(since).as_nanos() as u64;
        all.add(took);
        if hit {
            answer.hits += 1.0;
            hits.add(took);
        } else {
            let due = Duration::from_secs_f64(admitted / PACE);
            let ahead = due.saturating_sub(harness.clock.mono().since(start));
            if ahead > Duration::from_millis(1) {
                std::thread::sleep(ahead);
            }
        }
    }
    harness.sync();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    answer.p50_us = us(all.quantile(0.5));
    answer.p99_us = us(all.quantile(0.99));
    answer.p999_us = us(all.quantile(0.999));
    answer.p50_hit_us = us(hits.quantile(0.5));
    answer.p99_hit_us = us(hits.quantile(0.99));
    answer.p999_hit_us = us(hits.quantile(0.999));
    answer.cpu_us = (system::cpu_seconds() - cpu) * 1e6 / (data.len() / 12).max(1) as f64;
    answer.written = system::written_bytes() as f64;
    drop(data);
    answer.resident = system::resident() as f64;
    Ok(())
}

fn parse(data: &[u8]) -> impl Iterator<Item = (u64, u32)> + '_ {
    data.chunks_exact(12).map(|one| {
        let (object, size) = one.split_at(8);
        let object = object.try_into().map_or(0, u64::from_le_bytes);
        (object, size.try_into().map_or(0, u32::from_le_bytes))
    })
}

/// Looks the object up and reads it. Returns true if the engine has the object.
pub(super) fn ask(harness: &Harness, object: u64) -> bool {
    let (key, hash) = keyed(object);
    match harness.engine.reads().lookup(hash, &key) {
        Lookup::Memory(_) => true,
        Lookup::Miss => false,
        Lookup::Disk(plan) => {
            let mut buf = AlignedBuf::new(plan.len as usize);
            harness.disk.read_at(plan.at, &mut buf).is_ok()
                && harness.engine.reads().finish_read(&plan, &key, buf).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let request = |object, size| foxy_trace::Request {
            object,
            size,
            ..foxy_trace::Request::default()
        };
        let all = [
            request(7, 100),
            request(1 << 60, LONGEST),
            request(8, LONGEST + 1),
        ];
        let stream = Stream::new("web", 1 << 30, all.into_iter());
        let path = folder.path().join("requests");
        stream.write(&path).unwrap();
        let data = std::fs::read(path).unwrap();
        let read: Vec<_> = parse(&data).collect();
        assert_eq!(read, [(7, 100), (1 << 60, LONGEST as u32)]);
    }
}
