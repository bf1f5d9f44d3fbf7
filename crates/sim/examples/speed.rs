//! Measures the simulator itself, on one core. For each policy it prints the number of requests per second
//! through the cache levels. For each layout it prints the number of operations per second on the modelled
//! disk. It also prints the time in which a stream passes through levels, layout and disk. Finally it runs
//! Foxy's policies and those of libCacheSim on the same log. For libCacheSim, `pip install libcachesim` is
//! necessary; the environment variable `PYTHON` may name an interpreter other than `python3`. Times are real
//! times of this machine, so measure on an idle machine.
//!
//! `cargo run --release -p foxy-sim --example speed [million requests, default 4] [levels|POLICY|layouts|LAYOUT|stream|libcachesim ...]`

use std::io::Write as _;
use std::process::Command;

use foxy_base::{Clock as _, SystemClock};
use foxy_policy::{CachePolicy, Fifo, Lru, S3Fifo, Sieve};
use foxy_sim::{
    layout::LayoutSpec,
    levels::{Levels, LevelsConfig, PolicyKind},
    run::{OpStream, RunConfig, RunError, Workload, run, run_ops},
};
use foxy_trace::{
    Request,
    export::{Export, OutputFormat},
};

const SCRIPT: &str = include_str!("speed.py");

const LAYOUTS: [&str; 9] = [
    "simple",
    "squid",
    "multiple-dirs",
    "buddy",
    "stream",
    "stream-packetizer",
    "lazy-reads",
    "loc:128",
    "lazy-reads-loc:128",
];

const POLICIES: [PolicyKind; 4] = [
    PolicyKind::Lru,
    PolicyKind::Fifo,
    PolicyKind::S3Fifo,
    PolicyKind::Sieve,
];

fn main() -> Result<(), RunError> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let millions = match words.first().and_then(|n| n.parse::<u64>().ok()) {
        Some(number) => {
            words.remove(0);
            number.max(1)
        }
        None => 4,
    };
    let policies = chosen(&POLICIES, "levels", &words);
    if !policies.is_empty() {
        levels(millions, &policies)?;
    }
    let names = chosen(&LAYOUTS, "layouts", &words);
    if !names.is_empty() {
        layouts(millions, &names)?;
    }
    let beside = chosen(&["libcachesim"], "libcachesim", &words);
    if !beside.is_empty() {
        libcachesim(millions)?;
    }
    let whole = chosen(&["stream"], "stream", &words);
    if !whole.is_empty() {
        stream(25)?;
    }
    if policies.is_empty() && names.is_empty() && whole.is_empty() && beside.is_empty() {
        let text = format!("nothing is named {}", words.join(" or "));
        return Err(RunError::Config(text));
    }
    Ok(())
}

/// Returns the elements of `all` whose names are in `words`. Returns all elements if `words` is empty or
/// contains `part`, the name of the group of these elements.
fn chosen<T: Copy + ToString>(all: &[T], part: &str, words: &[String]) -> Vec<T> {
    let is_named = |one: &&T| {
        let name = one.to_string();
        words.is_empty() || words.iter().any(|word| *word == part || *word == name)
    };
    all.iter().filter(is_named).copied().collect()
}

/// Returns the seconds that `work` takes, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let clock = SystemClock::default();
    let start = clock.mono();
    let done = work();
    (clock.mono().since(start).as_secs_f64(), done)
}

fn levels(millions: u64, policies: &[PolicyKind]) -> Result<(), RunError> {
    let stream = Workload::dec(millions * 1_000_000).open(1)?;
    let requests = stream.collect::<Result<Vec<Request>, _>>()?;
    println!("Cache levels, 512 MB before 2 GB, {millions} M requests of the DEC stream");
    for &policy in policies {
        let config = LevelsConfig {
            ram_policy: policy,
            disk_policy: policy,
            ..LevelsConfig::lru(512 << 20, 2 << 30)
        };
        let (mut levels, mut ops) = (Levels::new(config), Vec::new());
        let (seconds, ()) = timed(|| {
            for request in &requests {
                ops.clear();
                levels.request(request, &mut ops);
            }
        });
        println!(
            "{policy:>20}: {:5.2} M requests/s, hit ratio {:.3}",
            requests.len() as f64 / seconds / 1e6,
            levels.counts().hit_ratio()
        );
    }
    Ok(())
}

/// Runs one cache level of 2 GB on the same log file, under each policy of Foxy and under the same policy of
/// libCacheSim. Times include reading the log.
fn libcachesim(millions: u64) -> Result<(), RunError> {
    const CAPACITY: u64 = 2 << 30;
    let failed = |error: std::io::Error| RunError::Config(error.to_string());
    let folder = tempfile::tempdir().map_err(failed)?;
    let (log, script) = (folder.path().join("log"), folder.path().join("speed.py"));
    std::fs::write(&script, SCRIPT).map_err(failed)?;
    let file = std::fs::File::create(&log).map_err(failed)?;
    let mut export = Export::new(OutputFormat::OracleGeneral, file).map_err(failed)?;
    for request in Workload::dec(millions * 1_000_000).open(1)? {
        export.write(&request?).map_err(failed)?;
    }
    export.finish().map_err(failed)?;
    let rules = ["lru", "fifo", "sieve", "s3-fifo"];
    println!(
        "One level of 2 GB, {millions} M requests of the DEC stream read from a file: ours, libCacheSim"
    );
    for _ in 0..2 {
        let theirs = Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()))
            .args([script.as_os_str(), log.as_os_str()])
            .arg(CAPACITY.to_string())
            .args(rules)
            .output()
            .map_err(failed)?;
        let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
        for rule in rules {
            let (seconds, (requests, hits)) = timed(|| pass(rule, CAPACITY, &log));
            let line = theirs.lines().find_map(|line| line.strip_prefix(rule));
            let mut words = line.unwrap_or_default().split_whitespace();
            let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
            let (their_seconds, missed) = (number().unwrap_or(f64::NAN), number());
            let count = requests as f64 / 1e6;
            println!(
                "{rule:>20}: {:5.2} and {:5.2} M requests/s, hit ratio {:.4} and {:.4}",
                count / seconds,
                count / their_seconds,
                hits as f64 / requests as f64,
                1.0 - missed.unwrap_or(f64::NAN)
            );
        }
        std::io::stdout().flush().map_err(failed)?;
    }
    Ok(())
}

/// Feeds the log file `log` to a cache. Returns the number of requests and the number of hits. As in
/// libCacheSim, a hit does not change the size of the stored object.
fn pass(rule: &str, capacity: u64, log: &std::path::Path) -> (u64, u64) {
    match rule {
        "lru" => through(Lru::new(capacity), log),
        "fifo" => through(Fifo::new(capacity), log),
        "sieve" => through(Sieve::new(capacity), log),
        _ => through(S3Fifo::new(capacity), log),
    }
}

fn through(mut cache: impl CachePolicy<u64, ()>, log: &std::path::Path) -> (u64, u64) {
    const RECORD: usize = 24;
    let log = std::fs::read(log).unwrap_or_default();
    let (mut evicted, mut hits) = (Vec::new(), 0);
    for record in log.chunks_exact(RECORD) {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| record[at + n]));
        let object = u64::from(word(4)) | u64::from(word(8)) << 32;
        if cache.get(&object).is_some() {
            hits += 1;
            continue;
        }
        evicted.clear();
        let _ = cache.insert(object, (), u64::from(word(12)), &mut evicted);
    }
    ((log.len() / RECORD) as u64, hits)
}

fn layouts(millions: u64, names: &[&str]) -> Result<(), RunError> {
    let config = |layout| RunConfig {
        ops: millions * 1_000_000,
        ..RunConfig::published(layout)
    };
    let ops = OpStream::make(&config(LayoutSpec::Stream))?;
    println!("Layouts on the modelled ST15150WC with UFS, {millions} M operations on 2 GB");
    for name in names {
        let layout: LayoutSpec = name.parse().map_err(RunError::Config)?;
        let (seconds, result) = timed(|| run_ops(&config(layout), &ops));
        println!(
            "{name:>20}: {:5.2} M operations/s, the modelled disk does {:.0}/s",
            ops.ops.len() as f64 / seconds / 1e6,
            result?.ops_per_s
        );
    }
    Ok(())
}

fn stream(millions: u64) -> Result<(), RunError> {
    println!("{millions} M requests end to end: generated, levels, layout, modelled disk");
    for name in ["squid", "lazy-reads-loc:128"] {
        let config = RunConfig {
            workload: Workload::dec(millions * 1_000_000),
            ops: 0,
            ..RunConfig::published(name.parse().map_err(RunError::Config)?)
        };
        let (seconds, result) = timed(|| run(&config));
        println!("{name:>20}: {seconds:.0} s for {} requests", result?.gets);
    }
    Ok(())
}
