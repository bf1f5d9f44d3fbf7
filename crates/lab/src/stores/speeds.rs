//! Two disks compared with one disk, and four disks of different speed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_bench::store::{Limit, Loop, Throttle};
use tokio::time::sleep;

use super::fixture::Fixture;
use super::load::{self, Paths};
use super::origin;

/// Permitted reads per second of each disk. One read may contain several blocks.
const READS: u64 = 300;
const OBJECTS: u64 = 10_000;
const OBJECT: usize = 8 << 10;
const CLIENTS: usize = 32;
/// Least permitted ratio of the hits of two disks to the hits of one disk.
const TWICE: f64 = 1.9;
/// Bytes per second that each of the four disks can write.
const WRITES: [u64; 4] = [1 << 20, 2 << 20, 4 << 20, 8 << 20];
/// Each disk must get at least this fraction of its write rate.
const FILLED: f64 = 0.75;

fn on(disks: &[Loop]) -> Vec<(PathBuf, Option<u64>)> {
    let paths = disks.iter().map(|disk| disk.device().to_owned());
    paths.map(|path| (path, None)).collect()
}

fn disks(folder: &Path, count: usize, bytes: u64) -> Result<Vec<Loop>, String> {
    (0..count)
        .map(|n| Loop::new(folder, &format!("disk-{n}"), bytes, 512))
        .collect::<std::io::Result<_>>()
        .map_err(|error| error.to_string())
}

/// Measures hits per second from disks with a limit on reads, for one disk and for two disks.
pub(super) async fn reads(program: &Path, folder: &Path, seconds: u64) -> Result<bool, String> {
    println!("Hits from disks with {READS} reads per second each, objects of {OBJECT} bytes");
    let mut rates = Vec::new();
    for count in 1..=2 {
        let folder = folder.join(format!("reads-{count}"));
        std::fs::create_dir(&folder).map_err(|error| format!("no folder: {error}"))?;
        rates.push(read_rate(program, &folder, count, seconds).await?);
    }
    let ratio = rates[1] / rates[0].max(1e-9);
    println!("two disks: {ratio:.2} times the hits of one (at least {TWICE})\n");
    Ok(ratio >= TWICE)
}

async fn read_rate(
    program: &Path,
    folder: &Path,
    count: usize,
    seconds: u64,
) -> Result<f64, String> {
    let disks = disks(folder, count, 256 << 20)?;
    let _slow = Throttle::new(&disks, &[Limit::Reads(READS)]).map_err(|e| e.to_string())?;
    let fixture = Fixture::start(program, folder, origin::start().await?, &on(&disks))?;
    let path = |n: u64| format!("/{OBJECT}/{n}");
    let fill: Paths = Arc::new(move |n| (n < OBJECTS).then(|| path(n)));
    load::run(fixture.address(), 8, fill, None).await;
    // After this time, all objects are on disk and the store is idle.
    sleep(Duration::from_secs(4)).await;
    let any: Paths = Arc::new(move |n| Some(path(Rng::new(n).below(OBJECTS))));
    // After this run Foxy knows the read rate of the disks.
    load::run(
        fixture.address(),
        CLIENTS,
        any.clone(),
        Some(Duration::from_secs(3)),
    )
    .await;
    let longest = Duration::from_secs(seconds);
    let begun = tokio::time::Instant::now();
    let got = load::run(fixture.address(), CLIENTS, any, Some(longest)).await;
    let rate = got.hits() as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{count} disk(s): {rate:.0} hits/s, {} misses, {} bad",
        got.misses(),
        got.bad()
    );
    if got.bad() > 0 {
        return Err("answers were wrong or missing".to_owned());
    }
    drop(fixture);
    Ok(rate)
}

/// Requests more new objects than four disks can write. Judges the bytes that each disk got.
pub(super) async fn shares(program: &Path, folder: &Path, seconds: u64) -> Result<bool, String> {
    println!("New objects for four disks of 512 MiB with limits on writing");
    let disks = disks(folder, WRITES.len(), 512 << 20)?;
    let slow = Throttle::new(&[], &[]).map_err(|e| e.to_string())?;
    for (disk, limit) in disks.iter().zip(WRITES) {
        slow.hold(disk, Limit::BytesWritten(limit))
            .map_err(|e| e.to_string())?;
    }
    let fixture = Fixture::start(program, folder, origin::start().await?, &on(&disks))?;
    let new: Paths = Arc::new(|n| Some(format!("/65536/{n}")));
    let load = load::run(
        fixture.address(),
        16,
        new,
        Some(Duration::from_secs(2 * seconds)),
    );
    // In the first half Foxy learns the speeds of the disks.
    let measured = async {
        sleep(Duration::from_secs(seconds)).await;
        let before = fixture.written().await?;
        sleep(Duration::from_secs(seconds)).await;
        let after = fixture.written().await?;
        Ok::<_, String>((before, after))
    };
    let (got, measured) = tokio::join!(load, measured);
    let (before, after) = measured?;
    let mut good = got.bad() == 0;
    let per_second: Vec<_> = (after.iter().zip(&before))
        .map(|(after, before)| (after - before) / seconds as f64)
        .collect();
    let all: f64 = per_second.iter().sum();
    for (n, (written, limit)) in per_second.iter().zip(WRITES).enumerate() {
        let part = written / limit as f64;
        good &= part >= FILLED;
        println!(
            "disk {n}: limit {:.1} MB/s, written {:.2} MB/s ({:.0} % of its limit, {:.0} % of all)",
            limit as f64 / 1e6,
            written / 1e6,
            part * 100.0,
            written / all.max(1.0) * 100.0
        );
    }
    println!(
        "each has to get at least {:.0} % of its limit\n",
        FILLED * 100.0
    );
    drop(fixture);
    Ok(good)
}
