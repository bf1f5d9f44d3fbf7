//! Measures the cache levels: requests per second on one core, by policy.
//! `cargo run --release -p foxy-sim --example levels_speed [million requests, default 5]`

use foxy_base::{Clock as _, SystemClock};
use foxy_sim::{
    levels::{Levels, LevelsConfig, PolicyKind},
    run::Workload,
};
use foxy_trace::Request;

fn main() {
    let millions = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(5);
    let workload = Workload::dec(millions * 1_000_000);
    let Ok(stream) = workload.open(1) else { return };
    let requests: Vec<Request> = stream.filter_map(Result::ok).collect();
    for policy in [
        PolicyKind::Lru,
        PolicyKind::Fifo,
        PolicyKind::S3Fifo,
        PolicyKind::Sieve,
    ] {
        let config = LevelsConfig {
            ram_policy: policy,
            disk_policy: policy,
            ..LevelsConfig::lru(512 << 20, 2 << 30)
        };
        let (mut levels, mut ops) = (Levels::new(config), Vec::new());
        let clock = SystemClock::default();
        let start = clock.mono();
        for request in &requests {
            ops.clear();
            levels.request(request, &mut ops);
        }
        let seconds = clock.mono().since(start).as_secs_f64();
        let rate = requests.len() as f64 / seconds / 1e6;
        println!(
            "{policy:>8}: {rate:.1} M requests/s, hit ratio {:.3}",
            levels.counts().hit_ratio()
        );
    }
}
