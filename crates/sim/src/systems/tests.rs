//! Tests of cache systems: one test suite for all systems, and Squid's published rules.

use std::collections::HashMap;

use foxy_trace::{
    Request,
    generate::{SessionConfig, Sessions, ZipfWeb, ZipfWebConfig},
};

use super::*;
use crate::{
    layout::fake::FakeFiles,
    levels::{Levels, LevelsConfig, Outcome, Watermarks},
    run::{Backend, FsKind},
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

/// The requests of clients that visit pages, so that hints and sites have an effect.
fn pages(requests: u64) -> impl Iterator<Item = Request> {
    let config = SessionConfig {
        requests,
        pages: 3_000,
        clients: 50,
        modified: 0.02,
        ..SessionConfig::isp()
    };
    Sessions::new(config, 9).filter(|r| r.size <= 60 << 10)
}

fn config(spec: SystemSpec) -> SystemConfig {
    SystemConfig {
        ram: 4 * MB,
        cache_mem: MB,
        disk: 40 * MB,
        life_minutes: 0.5,
        cluster: 32 << 10,
        ..SystemConfig::hummingbird(spec)
    }
}

/// Only the latest version is a hit. A request is `Modified` only if another version was requested before.
/// Simulated time never goes back. A second run gives the same result.
#[test]
fn every_system_keeps_the_promises_of_a_cache() {
    for spec in SystemSpec::ALL {
        let run = |requests: u64| {
            let mut system = config(spec).build().unwrap();
            let mut latest = HashMap::new();
            let mut outcomes = Vec::new();
            for request in pages(requests).chain(stream(requests / 2)) {
                let before = system.now();
                let outcome = system.request(&request).unwrap();
                assert!(system.now() >= before);
                let known = latest.insert(request.object, (request.version, request.size));
                let same = known == Some((request.version, request.size));
                match outcome {
                    Outcome::RamHit | Outcome::DiskHit => assert!(same, "{spec}: {request:?}"),
                    Outcome::Modified => assert!(!same && known.is_some(), "{spec}: {request:?}"),
                    Outcome::Miss | Outcome::Bypass => {}
                }
                outcomes.push(outcome);
            }
            system.finish().unwrap();
            (outcomes, system.now(), system.extras())
        };
        let first = run(12_000);
        assert_eq!(first, run(12_000), "{spec}");
        let count = |o: Outcome| first.0.iter().filter(|x| **x == o).count();
        assert!(count(Outcome::RamHit) > 1_000, "{spec}");
        assert!(
            count(Outcome::DiskHit) > 300,
            "{spec}: {}",
            count(Outcome::DiskHit)
        );
        assert!(count(Outcome::Modified) > 50, "{spec}");
    }
}

#[test]
fn systems_are_where_the_papers_put_them() {
    let run = |spec, fs| {
        let config = SystemConfig { fs, ..config(spec) };
        let mut system = config.build().unwrap();
        run_system(&mut *system, pages(12_000).map(Ok), Replay::default()).unwrap()
    };
    let sync = run(SystemSpec::Squid, FsKind::Ufs);
    let asynchronous = run(SystemSpec::Squid, FsKind::Async);
    let mapped = run(SystemSpec::SquidMl, FsKind::Ufs);
    let ucfs = run(SystemSpec::Ucfs, FsKind::Ufs);
    let hummingbird = run(SystemSpec::Hummingbird, FsKind::Ufs);
    assert!(asynchronous.seconds < sync.seconds && mapped.seconds < sync.seconds);
    assert!(ucfs.seconds < mapped.seconds && hummingbird.seconds < asynchronous.seconds);
    assert!(ucfs.prefetch_hit_ratio > 0.05 && hummingbird.prefetch_hit_ratio > 0.05);
    assert!(hummingbird.ios_per_request < 0.5 * sync.ios_per_request);
}

#[test]
fn a_sweep_gives_what_single_runs_give_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let configs: Vec<_> = [SystemSpec::Ucfs, SystemSpec::Squid]
        .map(|spec| SystemConfig {
            workload: "isp:3000".parse().unwrap(),
            ..config(spec)
        })
        .into();
    let options = crate::run::SweepOptions {
        threads: 2,
        resume: Some(folder.path().join("runs.jsonl")),
        progress: None,
    };
    let first = crate::run::sweep(&configs, &options).unwrap();
    assert_eq!(first[0], configs[0].run().unwrap());
    assert_eq!(first, crate::run::sweep(&configs, &options).unwrap());
    let table = systems_table(&configs, &first).csv();
    assert_eq!(table.lines().count(), 3);
    let histogram: u64 = first[0].read_times.0.iter().sum();
    assert_eq!(
        histogram,
        (first[0].hit_ratio * first[0].requests as f64).round() as u64
    );
}

#[test]
fn squid_never_serves_another_version_and_keeps_between_its_marks() {
    let mut squid = Squid::new(FakeFiles::new(), small()).unwrap();
    for (number, request) in stream(30_000).enumerate() {
        squid.request(&request).unwrap();
        assert!(squid.files().live() == squid.len());
        if number % 50 != 0 {
            continue;
        }
        let used = squid.files().live_bytes();
        assert!(used <= (20 * MB) * 95 / 100 + request.size, "{used}");
    }
    assert!(squid.files().live_bytes() >= 20 * MB * 85 / 100);
}

/// Replacement uses one LRU list of all objects, and hits in memory count as uses too. Without memory, the
/// hits are the same as those of an LRU disk level with the same marks.
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
fn a_server_has_one_directory_and_small_objects_have_no_file() {
    let config = SquidConfig {
        by_server: true,
        mapped: 0.3,
        ..small()
    };
    let mut squid = Squid::new(FakeFiles::new(), config).unwrap();
    for (object, (server, size)) in [(1, 500), (1, 9_000), (2, 9_000), (1, 9_000)]
        .iter()
        .enumerate()
    {
        let request = Request {
            object: object as u64,
            server: *server,
            size: *size,
            ..Request::default()
        };
        assert_eq!(squid.request(&request).unwrap(), Outcome::Miss);
    }
    // There are five mapped files, and one file for each of the three large objects.
    assert_eq!((squid.files().live(), squid.len()), (8, 4));
    assert_eq!(squid.name(), "squidml");
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
    assert!((result.hours() * 3.6e6 - reads - writes).abs() < 1e-3);
    assert!(result.device_ios() > 0 && result.requests_per_s > 1.0 && result.io_ms > 0.1);
}

#[test]
fn recorded_times_leave_room_and_a_warm_up_is_not_counted() {
    let mut system = config(SystemSpec::Hummingbird).build().unwrap();
    let replay = Replay {
        pace: Pace::Real(1.0),
        warm_up: 1_000,
    };
    let requests: Vec<_> = pages(3_000).collect();
    let span = (requests[requests.len() - 1].time_ms - requests[1_000].time_ms) as f64 / 1e3;
    let result = run_system(&mut *system, requests.iter().copied().map(Ok), replay).unwrap();
    assert_eq!(result.requests as usize, requests.len() - 1_000);
    assert!(result.seconds > 0.95 * span && result.seconds < 1.2 * span + 10.0);
}

#[test]
fn systems_with_a_partition_answer_the_same_on_a_real_one() {
    let folder = tempfile::tempdir().unwrap();
    for spec in [SystemSpec::Ucfs, SystemSpec::Hummingbird] {
        // Without lifetimes the results do not depend on the speed of the device.
        let modelled = SystemConfig {
            life_minutes: 0.0,
            ..config(spec)
        };
        let real = SystemConfig {
            device: Some(folder.path().join(spec.to_string())),
            ..modelled.clone()
        };
        let run = |config: &SystemConfig| {
            let requests = pages(6_000).map(Ok);
            run_system(&mut *config.build().unwrap(), requests, config.replay).unwrap()
        };
        let (modelled, first, again) = (run(&modelled), run(&real), run(&real));
        for real in [first, again] {
            assert_eq!(real.requests, modelled.requests);
            let off = (real.hit_ratio - modelled.hit_ratio).abs();
            assert!(
                off < 0.02,
                "{spec}: {} {}",
                real.hit_ratio,
                modelled.hit_ratio
            );
            let ios = real.device_ios() as f64 / modelled.device_ios() as f64;
            assert!((0.9..1.1).contains(&ios), "{spec}: {ios}");
            assert!(real.seconds > 0.0 && real.device_writes > 0, "{spec}");
        }
        // A file with foreign contents is not overwritten, and systems that keep files accept no device.
        let path = real.device.clone().unwrap();
        std::fs::write(&path, "letters ".repeat(1_000)).unwrap();
        let refused = real.build().err().unwrap().to_string();
        assert!(refused.contains("holds something"), "{refused}");
        let squid = SystemConfig {
            spec: SystemSpec::Squid,
            ..real
        };
        assert!(squid.check().unwrap_err().to_string().contains("--device"));
    }
}
