//! `bench store library`: a stream of requests is turned into the calls that a proxy makes to its storage
//! library. The program wg-Hummingbird of paper 004 did the same. The calls run through the library
//! Hummingbird, RocksDB, SQLite and one file per object (the program in bench/store-peers). Each engine runs
//! in its own process, on its own file system, with the same memory. The counters of the device show how many
//! bytes it read and wrote.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use foxy_trace::Class;
use foxy_trace::generate::{SessionConfig, Sessions};
use serde::Deserialize;

use super::Context;
use super::report::Section;
use super::system::{MemoryLimit, Mounted, Scratch, drop_caches};

/// Longest file in bytes: the length of a cluster of Hummingbird. As in the published runs, longer files are
/// left out.
const LONGEST: u64 = 64 << 10;
/// Memory of the process, including the page cache of its files. Some engines use that cache, other engines
/// use their own memory.
const MEMORY: u64 = 256 << 20;

const ENGINES: &[(&str, &str)] = &[
    ("hummingbird", "Hummingbird"),
    ("rocksdb", "RocksDB"),
    ("rocksdb-blobs", "RocksDB, blob files"),
    ("sqlite", "SQLite"),
    ("files", "one file each, ext4"),
];

#[derive(Clone, Copy, Debug, Deserialize)]
struct Answer {
    seconds: f64,
    hits: f64,
    stored: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    cpu_us: f64,
}

/// Bytes that a device read and wrote.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    read: u64,
    written: u64,
}

/// Measures all engines, one after the other.
pub(super) fn library(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let requests = context
        .requests
        .unwrap_or(context.quick_or(60_000, 1_000_000));
    let stream = Scratch::new(context.folder, "bench-library.requests");
    let count = write(&stream.0, requests)?;
    // The disk has space for a little more than half of the requested bytes. So each engine must reuse space.
    let disk = (requests * 2200).clamp(256 << 20, context.size);
    let mut section = Section::new(
        "library",
        format!(
            "{count} requests (isp, files up to 64 KiB), file system of {} MiB, memory {} MiB with the page cache",
            disk >> 20,
            MEMORY >> 20
        ),
    );
    for (engine, name) in ENGINES {
        match measure(context, engine, &stream.0, disk) {
            Ok((answer, moved, limited)) => {
                rows(&mut section, name, count as f64, answer, moved);
                if !limited {
                    section.missing(format!("{name} within the memory: no cgroup v1"));
                }
            }
            Err(error) => section.missing(format!("{name}: {error}")),
        }
    }
    Ok(vec![section])
}

fn rows(section: &mut Section, name: &str, requests: f64, answer: Answer, moved: Moved) {
    let mut row = |what: &str, value, unit| {
        section.row(format!("{name}: {what}"), value, unit);
    };
    row("requests", requests / answer.seconds, "/s");
    row("hit ratio", answer.hits / requests * 100.0, "%");
    row(
        "device bytes written per byte stored",
        moved.written as f64 / answer.stored,
        "",
    );
    row(
        "device bytes read per hit",
        moved.read as f64 / answer.hits,
        "bytes",
    );
    row("request, p50", answer.p50_us, "us");
    row("request, p99", answer.p99_us, "us");
    row("request, p99.9", answer.p999_us, "us");
    row("CPU per request", answer.cpu_us, "us");
}

/// Writes the stream of requests to a file, which the measured program reads. Returns the number of requests.
fn write(path: &Path, requests: u64) -> io::Result<u64> {
    let config = SessionConfig {
        requests,
        // The ratio of pages to requests is the same as in the published stream.
        pages: (450_000 * requests / 4_800_000).max(1000),
        ..SessionConfig::isp()
    };
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let mut count = 0;
    for request in Sessions::new(config, 1) {
        if !request.is_cacheable() || request.size == 0 || request.size > LONGEST {
            continue;
        }
        count += 1;
        file.write_all(&request.object.to_le_bytes())?;
        let page = u32::from(request.class == Class::Html);
        for word in [request.size as u32, request.version, request.client, page] {
            file.write_all(&word.to_le_bytes())?;
        }
    }
    file.flush()?;
    Ok(count)
}

fn measure(
    context: &Context<'_>,
    engine: &str,
    stream: &Path,
    disk: u64,
) -> io::Result<(Answer, Moved, bool)> {
    let peers = context.peers.as_ref().ok_or_else(|| {
        io::Error::other("build bench/store-peers and name its program with --peers")
    })?;
    let program = peers.with_file_name("foxy-library-peers");
    let mounted = Mounted::new(context.folder, "ext4", disk)?;
    drop_caches();
    let before = moved(mounted.device())?;
    let limit = MemoryLimit::new(MEMORY);
    let mut child = Command::new(&program)
        .args(["--engine", engine])
        .args(["--requests".as_ref(), stream.as_os_str()])
        .args(["--path".as_ref(), mounted.at.as_os_str()])
        .args(["--disk", &disk.to_string(), "--memory", &MEMORY.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().map(BufReader::new);
    let mut lines = output.into_iter().flat_map(BufRead::lines);
    let line = lines.find_map(|line| line.ok().filter(|l| l.starts_with('{')));
    let after = moved(mounted.device())?;
    drop(child.stdin.take());
    let ended = child.wait()?;
    let limited = limit.is_some();
    drop(limit);
    let line = line.ok_or_else(|| io::Error::other(format!("{}: {ended}", program.display())))?;
    let answer = serde_json::from_str(&line)?;
    let moved = Moved {
        read: after.read - before.read,
        written: after.written - before.written,
    };
    Ok((answer, moved, limited))
}

/// Reads how many bytes a device read and wrote since its creation. This includes the journal of the file
/// system.
fn moved(device: &Path) -> io::Result<Moved> {
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join("stat");
    let text = std::fs::read_to_string(path)?;
    let sectors: Vec<u64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let bytes = |at: usize| sectors.get(at).copied().unwrap_or(0) * 512;
    Ok(Moved {
        read: bytes(2),
        written: bytes(6),
    })
}
