//! Measures the index: memory of the process per entry at every million, and lookup times.
//! `cargo run --release -p foxy-index --example index_bytes [millions, default 10]`

use std::hint::black_box;

use foxy_base::{Clock, KeyHash, Rng, SystemClock};
use foxy_index::{Address, Entry, Index, SizeClass};

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let millions: u64 = millions.unwrap_or(10);
    let clock = SystemClock::default();
    let index = Index::new();
    // What the process weighs without an index; the empty index's share is put back.
    let base = rss_bytes().saturating_sub(index.memory_bytes());
    println!("   entries  rss B/entry  own count  dropped  displaced  insert ns  hit ns  miss ns");
    for million in 1..=millions {
        let range = (million - 1) * 1_000_000..million * 1_000_000;
        let insert_ns = per_item_ns(&clock, range, |n| {
            black_box(index.insert(hash(n), entry(n)).is_stored());
        });
        let len = index.len().max(1);
        let rss = rss_bytes().saturating_sub(base) as f64 / len as f64;
        let own = index.memory_bytes() as f64 / len as f64;
        let (hit_ns, miss_ns) = lookup_ns(&clock, &index, million * 1_000_000);
        let stats = index.stats();
        println!(
            "{len:>10}  {rss:>11.2}  {own:>9.2}  {:>7}  {:>9}  {insert_ns:>9.0}  {hit_ns:>6.0}  {miss_ns:>7.0}",
            stats.dropped, stats.displaced
        );
    }
    report_false_hits(&index);
    report_memory(&clock, index.memory_bytes());
    drop(index);
    report_loading(&clock, millions);
}

/// Nanoseconds per hit and per miss, hashing of the test keys taken off.
fn lookup_ns(clock: &SystemClock, index: &Index, count: u64) -> (f64, f64) {
    const LOOKUPS: u64 = 1_000_000;
    let mut rng = Rng::new(count);
    let keys: Vec<u64> = (0..LOOKUPS).map(|_| rng.below(count)).collect();
    let key = |n: u64| keys[n as usize];
    let hashing = per_item_ns(clock, 0..LOOKUPS, |n| {
        black_box(hash(key(n)));
    });
    let hit = per_item_ns(clock, 0..LOOKUPS, |n| {
        black_box(index.lookup(hash(key(n))).is_empty());
    });
    let miss = per_item_ns(clock, 0..LOOKUPS, |n| {
        black_box(index.lookup(hash(key(n) | 1 << 40)).is_empty());
    });
    (hit - hashing, miss - hashing)
}

fn report_false_hits(index: &Index) {
    const MISSES: u64 = 10_000_000;
    let absent = (0..MISSES).filter(|n| !index.lookup(hash(n | 1 << 41)).is_empty());
    let false_hits = absent.count();
    println!(
        "false hits: {false_hits} of {MISSES} misses = {:.1e} per miss",
        false_hits as f64 / MISSES as f64
    );
}

/// What one read of as much memory costs when the next place follows from it: the floor of a
/// lookup on this machine at this moment.
fn report_memory(clock: &SystemClock, bytes: u64) {
    let words: Vec<u64> = (0..bytes / 8).collect();
    let mut last = 0;
    let ns = per_item_ns(clock, 0..1_000_000, |n| {
        let place = (hash(n ^ last).high() % words.len() as u64) as usize;
        last = black_box(words[place]);
    });
    println!("one dependent read of {bytes} bytes of memory: {ns:.0} ns");
}

/// Fills a second index as recovery does and prints what an entry took.
fn report_loading(clock: &SystemClock, millions: u64) {
    let index = Index::new();
    let reserving = per_item_ns(clock, 0..1, |_| index.reserve(millions * 1_000_000));
    let mut batch = Vec::with_capacity(1000);
    let mut stored = 0u64;
    let ns = per_item_ns(clock, 0..millions * 1000, |thousand| {
        batch.clear();
        batch.extend((thousand * 1000..(thousand + 1) * 1000).map(|n| (hash(n), entry(n))));
        index.load(&batch, |_, insert| stored += u64::from(insert.is_stored()));
    });
    let each = ns / 1000.0 + reserving / stored.max(1) as f64;
    println!("loading {stored} entries in batches, room included: {each:.0} ns each");
}

/// Time on the processor where the kernel tells it (other programs then count less), else by
/// the clock.
fn per_item_ns(clock: &SystemClock, range: std::ops::Range<u64>, mut run: impl FnMut(u64)) -> f64 {
    let items = range.end - range.start;
    let now = || cpu_ns().unwrap_or_else(|| clock.mono().nanos());
    let start = now();
    range.for_each(&mut run);
    now().saturating_sub(start) as f64 / items as f64
}

fn cpu_ns() -> Option<u64> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    schedstat.split_whitespace().next()?.parse().ok()
}

fn hash(n: u64) -> KeyHash {
    let mut rng = Rng::new(n);
    KeyHash(u128::from(rng.next_u64()) << 64)
}

fn entry(n: u64) -> Entry {
    let address = Address::from_units(n * 13 % Address::MAX.units()).unwrap_or(Address::MAX);
    Entry::new(
        address,
        SizeClass::for_bytes(6000).unwrap_or(SizeClass::MAX),
    )
}

/// Resident memory of this process as the kernel counts it; 0 where it does not say.
fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
