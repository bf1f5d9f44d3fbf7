//! Measures every cache policy on one skewed stream: requests per second on one core, and hit ratio.
//! `cargo run --release -p foxy-policy --example requests_per_second [million requests, default 5]`

use foxy_base::{Clock as _, Rng, SystemClock};
use foxy_policy::{CachePolicy, Clock, Fifo, LfuAging, Lru, LruTh, S3Fifo, Sieve, WTinyLfu};

const KEYS: f64 = 1_000_000.0;
const CAPACITY: u64 = 600 << 20;

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let requests = requests(1_000_000 * millions.unwrap_or(5));
    run(Lru::new(CAPACITY), &requests);
    run(LruTh::new(CAPACITY, 32 << 10), &requests);
    run(Fifo::new(CAPACITY), &requests);
    run(Clock::new(CAPACITY), &requests);
    run(Sieve::new(CAPACITY), &requests);
    run(S3Fifo::new(CAPACITY), &requests);
    run(LfuAging::new(CAPACITY), &requests);
    run(WTinyLfu::new(CAPACITY), &requests);
}

/// Returns requests for keys with a Zipf-like distribution (the density falls as 1/rank). The size of an
/// object follows from its key.
fn requests(count: usize) -> Vec<(u64, u64)> {
    let mut rng = Rng::new(1);
    let request = |_| {
        let key = KEYS.powf(rng.unit()) as u64;
        (key, 500 + Rng::new(key).below(11_000))
    };
    (0..count).map(request).collect()
}

fn run(mut cache: impl CachePolicy<u64, ()>, requests: &[(u64, u64)]) {
    let clock = SystemClock::default();
    let (mut hits, mut evicted) = (0u64, Vec::new());
    let start = clock.mono();
    for (key, size) in requests {
        if cache.get(key).is_some() {
            hits += 1;
        } else {
            let _ = cache.insert(*key, (), *size, &mut evicted);
            evicted.clear();
        }
    }
    let seconds = clock.mono().since(start).as_secs_f64();
    println!(
        "{:>10}: {:>5.1} M requests/s, hit ratio {:.4}, {} objects",
        cache.name(),
        requests.len() as f64 / seconds / 1e6,
        hits as f64 / requests.len() as f64,
        cache.len()
    );
}
