//! Measures the simulator itself, on one core:
//! requests per second through the cache levels, by policy; operations per second through each
//! layout on the modelled disk; and a stream end to end. The clock is this machine's, so the
//! figures are of a quiet one.
//!
//! `cargo run --release -p foxy-sim --example speed [million requests, default 4] [levels|POLICY|layouts|LAYOUT|stream ...]`

use foxy_base::{Clock as _, SystemClock};
use foxy_sim::{
    layout::LayoutSpec,
    levels::{Levels, LevelsConfig, PolicyKind},
    run::{OpStream, RunConfig, RunError, Workload, run, run_ops},
};
use foxy_trace::Request;

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
    let whole = chosen(&["stream"], "stream", &words);
    if !whole.is_empty() {
        stream(25)?;
    }
    if policies.is_empty() && names.is_empty() && whole.is_empty() {
        let text = format!("nothing is named {}", words.join(" or "));
        return Err(RunError::Config(text));
    }
    Ok(())
}

/// Those of a part that are named, by themselves or with the whole part; all if nothing is.
fn chosen<T: Copy + ToString>(all: &[T], part: &str, words: &[String]) -> Vec<T> {
    let is_named = |one: &&T| {
        let name = one.to_string();
        words.is_empty() || words.iter().any(|word| *word == part || *word == name)
    };
    all.iter().filter(is_named).copied().collect()
}

/// Seconds that `work` takes, and what it gives.
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
