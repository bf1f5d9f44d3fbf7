//! The program that `foxy-lab bench store library` measures. It turns a stream of requests into the
//! calls of a proxy, like wg-Hummingbird, the load generator of the Hummingbird paper (paper 004). The
//! calls go to one of several engines that store files.

mod engines;
mod files;
mod generator;
mod hummingbird;
mod rocks;
mod sqlite;

use std::collections::HashMap;
use std::io::{Read, Write};

use engines::Engine;
use foxy_base::{Clock as _, SystemClock};
use generator::{Generator, Request};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut options = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        options.insert(name, value);
    }
    let wanted = |name: &str| options.get(name).ok_or(format!("{name} is missing"));
    let folder = wanted("--path")?;
    let (disk, memory) = (wanted("--disk")?.parse()?, wanted("--memory")?.parse()?);
    let requests = std::fs::read(wanted("--requests")?)?;
    let engine: Box<dyn Engine> = match wanted("--engine")?.as_str() {
        "hummingbird" => Box::new(hummingbird::Library::open(folder, disk, memory)?),
        "rocksdb" => Box::new(rocks::Rocks::open(folder, disk, memory, false)?),
        "rocksdb-blobs" => Box::new(rocks::Rocks::open(folder, disk, memory, true)?),
        "sqlite" => Box::new(sqlite::Sqlite::open(folder, disk, memory)?),
        "files" => Box::new(files::Files::open(folder, disk)?),
        other => return Err(format!("no engine {other}").into()),
    };
    println!("{}", measure(engine, &requests)?);
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

fn measure(engine: Box<dyn Engine>, requests: &[u8]) -> Result<String, Failure> {
    let mut generator = Generator::new(engine);
    let mut times = Vec::with_capacity(requests.len() / Request::BYTES);
    let clock = SystemClock::default();
    let begun = clock.mono();
    for bytes in requests.chunks_exact(Request::BYTES) {
        let request = Request::parse(bytes)?;
        let since = clock.mono();
        generator.request(&request)?;
        times.push(clock.mono().since(since).as_nanos() as u32);
    }
    let counts = generator.finish()?;
    let seconds = clock.mono().since(begun).as_secs_f64();
    times.sort_unstable();
    let quantile = |q: f64| {
        let place = (times.len() as f64 * q) as usize;
        f64::from(times[place.min(times.len() - 1)]) / 1000.0
    };
    let fields = [
        ("seconds", seconds),
        ("hits", counts.hits as f64),
        ("stored", counts.stored as f64),
        ("p50_us", quantile(0.5)),
        ("p99_us", quantile(0.99)),
        ("p999_us", quantile(0.999)),
        ("cpu_us", cpu_seconds() * 1e6 / times.len() as f64),
    ];
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value:.6}"));
    Ok(format!("{{{}}}", fields.join(",")))
}

/// CPU time of all threads in seconds, with a resolution of 10 ms.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
