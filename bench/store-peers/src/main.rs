//! Replays a stream of requests with the cache engine foyer. `foxy-lab bench store trace` writes the stream
//! to a file and starts this program. The program has the same options as the measured process of Foxy, and
//! prints the same JSON.
//!
//! A value is as long as the data that Foxy stores for the same request: a body, and 250 bytes for
//! URL and fields. foyer admits every value and writes it to disk at insertion. The device is opened
//! for direct I/O, so the page cache is not used.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::Duration;

use foyer::{
    BlockEngineConfig, DeviceBuilder, FileDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, PsyncIoEngineConfig, RecoverMode,
};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;
type Cache = HybridCache<u64, Vec<u8>>;

/// Length of the URL and the fields that are stored with a body, in bytes.
const HEAD: usize = 250;
/// Greatest rate of inserts, in bytes of bodies per second.
const PACE: f64 = 250e6;

fn main() -> Result<(), Failure> {
    let options = options();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(&options))
}

fn options() -> HashMap<String, String> {
    let mut options = HashMap::new();
    let mut arguments = std::env::args().skip(1).peekable();
    while let Some(name) = arguments.next() {
        let value = arguments.next_if(|next| !next.starts_with("--"));
        options.insert(name, value.unwrap_or_default());
    }
    options
}

async fn open(options: &HashMap<String, String>) -> Result<Cache, Failure> {
    let number = |name: &str| -> Result<usize, Failure> {
        Ok(options
            .get(name)
            .ok_or(format!("{name} is missing"))?
            .parse()?)
    };
    let path = options.get("--path").ok_or("--path is missing")?;
    let device = FileDeviceBuilder::new(path)
        .with_capacity(number("--disk")?)
        .with_direct(true)
        .build()?;
    // foyer's write buffer and its memory tier together use the memory of `--memory`.
    let memory = number("--memory")?;
    let buffer = (memory / 4).min(64 << 20);
    let engine = BlockEngineConfig::new(device)
        .with_block_size(4 << 20)
        .with_buffer_pool_size(buffer);
    let cache = HybridCacheBuilder::new()
        .with_policy(HybridCachePolicy::WriteOnInsertion)
        .memory(memory - buffer)
        .with_weighter(|_: &u64, value: &Vec<u8>| value.len() + 64)
        .storage()
        .with_io_engine_config(PsyncIoEngineConfig::new())
        .with_engine_config(engine)
        .with_recover_mode(RecoverMode::Quiet)
        .build()
        .await?;
    Ok(cache)
}

async fn run(options: &HashMap<String, String>) -> Result<(), Failure> {
    let begun = Instant::now();
    let cache = open(options).await?;
    let recovered = begun.elapsed().as_secs_f64();
    let mut answer = Answer {
        recovered,
        ..Answer::default()
    };
    if !options.contains_key("--reopen") {
        let requests = options.get("--requests").ok_or("--requests is missing")?;
        replay(&cache, requests, &mut answer).await?;
    }
    println!("{}", answer.json());
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

#[derive(Default)]
struct Answer {
    hits: f64,
    resident: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    p50_hit_us: f64,
    p99_hit_us: f64,
    p999_hit_us: f64,
    cpu_us: f64,
    written: f64,
    recovered: f64,
}

impl Answer {
    fn json(&self) -> String {
        let fields = [
            ("hits", self.hits),
            ("dropped", 0.0),
            ("resident", self.resident),
            ("p50_us", self.p50_us),
            ("p99_us", self.p99_us),
            ("p999_us", self.p999_us),
            ("p50_hit_us", self.p50_hit_us),
            ("p99_hit_us", self.p99_hit_us),
            ("p999_hit_us", self.p999_hit_us),
            ("cpu_us", self.cpu_us),
            ("written", self.written),
            ("recovered", self.recovered),
        ];
        let fields = fields.map(|(name, value)| format!("\"{name}\":{value:.6}"));
        format!("{{{}}}", fields.join(","))
    }
}

async fn replay(cache: &Cache, requests: &str, answer: &mut Answer) -> Result<(), Failure> {
    let data = std::fs::read(requests)?;
    let stock: Vec<u8> = (0..512u32 << 10)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let (mut all, mut hits) = (Vec::with_capacity(data.len() / 12), Vec::new());
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut admitted = 0.0;
    for one in data.chunks_exact(12) {
        let object = u64::from_le_bytes(one[..8].try_into()?);
        let size = u32::from_le_bytes(one[8..].try_into()?) as usize;
        let since = Instant::now();
        let hit = cache.get(&object).await?.is_some();
        if !hit {
            let from = (object % 4096) as usize;
            cache.insert(object, stock[from..from + size + HEAD].to_vec());
            admitted += size as f64;
        }
        let took = since.elapsed().as_nanos() as u32;
        all.push(took);
        if hit {
            hits.push(took);
        } else {
            let due = Duration::from_secs_f64(admitted / PACE);
            let ahead = due.saturating_sub(start.elapsed());
            if ahead > Duration::from_millis(1) {
                std::thread::sleep(ahead);
            }
        }
    }
    cache.storage().wait().await;
    answer.cpu_us = (cpu_seconds() - cpu) * 1e6 / all.len().max(1) as f64;
    answer.hits = hits.len() as f64;
    answer.p50_us = quantile(&mut all, 0.5);
    answer.p99_us = quantile(&mut all, 0.99);
    answer.p999_us = quantile(&mut all, 0.999);
    answer.p50_hit_us = quantile(&mut hits, 0.5);
    answer.p99_hit_us = quantile(&mut hits, 0.99);
    answer.p999_hit_us = quantile(&mut hits, 0.999);
    drop((all, hits, data, stock));
    answer.resident = line("/proc/self/status", "VmRSS:") * 1024.0;
    answer.written = line("/proc/self/io", "write_bytes:");
    Ok(())
}

/// The quantile `q` of `times` in microseconds. `times` are in nanoseconds.
fn quantile(times: &mut [u32], q: f64) -> f64 {
    times.sort_unstable();
    let place = (times.len() as f64 * q) as usize;
    times
        .get(place.min(times.len().saturating_sub(1)))
        .map_or(0.0, |ns| f64::from(*ns) / 1000.0)
}

fn line(path: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|v| v.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}

/// CPU time of all threads in seconds, with a resolution of 10 ms.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: Vec<f64> = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse().ok())
        .collect();
    ticks.iter().sum::<f64>() / 100.0
}
