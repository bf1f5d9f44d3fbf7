//! Cache systems: conservation of requests, and Squid's rules as published.

use std::collections::HashMap;

use foxy_trace::generate::{ZipfWeb, ZipfWebConfig};

use super::*;
use crate::{
    layout::fake::FakeFiles,
    levels::{Levels, LevelsConfig, Watermarks},
    run::Backend,
};

const MB: u64 = 1 << 20;

fn small() -> SquidConfig {
    SquidConfig {
        cache_mem: 2 * MB,
        ..SquidConfig::published(20 * MB)
    }
}

fn stream(requests: u64) -> impl Iterator<Item = Request> {
    let config = ZipfWebConfig {
        requests,
        objects: 20_000,
        modified: 0.01,
        ..Default::default()
    };
    ZipfWeb::new(config, 5)
}

#[test]
fn squid_never_serves_another_version_and_keeps_between_its_marks() {
    let mut squid = Squid::new(FakeFiles::new(), small()).unwrap();
    let mut latest = HashMap::new();
    for (number, request) in stream(30_000).enumerate() {
        let outcome = squid.request(&request).unwrap();
        let before = latest.insert(request.object, (request.version, request.size));
        if matches!(outcome, Outcome::RamHit | Outcome::DiskHit) {
            assert_eq!(before, Some((request.version, request.size)));
        }
        assert!(squid.files().live() == squid.len());
        if number % 50 != 0 {
            continue;
        }
        let used = squid.files().live_bytes();
        assert!(used <= (20 * MB) * 95 / 100 + request.size, "{used}");
    }
    assert!(squid.files().live_bytes() >= 20 * MB * 85 / 100);
}

/// One LRU list over all hits: with memory off, the same hits as an LRU disk level with the same
/// marks.
#[test]
fn squid_without_memory_is_lru_between_marks() {
    let config = SquidConfig {
        cache_mem: 0,
        ..small()
    };
    let mut squid = Squid::new(FakeFiles::new(), config).unwrap();
    let marks = Watermarks {
        low: 0.90,
        high: 0.95,
    };
    let mut levels = Levels::new(LevelsConfig {
        watermarks: Some(marks),
        ..LevelsConfig::lru(0, 20 * MB)
    });
    let mut ops = Vec::new();
    for request in stream(30_000) {
        assert_eq!(
            squid.request(&request).unwrap(),
            levels.request(&request, &mut ops)
        );
    }
    assert!(levels.counts().disk_hits > 5_000);
}

#[test]
fn a_hit_in_memory_counts_as_a_use_on_disk() {
    let config = SquidConfig {
        cache_mem: 10_000,
        watermarks: Watermarks {
            low: 1.0,
            high: 1.0,
        },
        ..SquidConfig::published(2_000)
    };
    let mut squid = Squid::new(FakeFiles::new(), config).unwrap();
    let mut ask = |object| {
        squid
            .request(&Request {
                object,
                size: 1_000,
                ..Request::default()
            })
            .unwrap()
    };
    use Outcome::{Miss, RamHit};
    assert_eq!(
        [1, 2, 1, 3, 1, 2].map(&mut ask),
        [Miss, Miss, RamHit, Miss, RamHit, Miss]
    );
}

#[test]
fn directories_are_eight_for_each_gigabyte() {
    assert_eq!(SquidConfig::published(9 << 30).top_directories(), 72);
    assert_eq!(SquidConfig::published(1).top_directories(), 1);
}

#[test]
fn the_figures_of_a_run_fit_together() {
    let files = Backend::default().ufs().unwrap();
    let mut squid = Squid::new(files, small()).unwrap();
    let result = run_system(&mut squid, stream(5_000).map(Ok), Replay::default()).unwrap();
    assert_eq!(result.requests, 5_000);
    let reads = result.hit_ratio * 5_000.0 * result.read_ms;
    let writes = (1.0 - result.hit_ratio) * 5_000.0 * result.write_ms;
    assert!((reads + writes) / 1e3 <= result.seconds + 1e-6);
    assert!(result.device_ios() > 0 && result.requests_per_s > 1.0 && result.io_ms > 0.1);
}
