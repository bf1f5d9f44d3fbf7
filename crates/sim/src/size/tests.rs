//! Compares results of sampling with exact caches.

use foxy_trace::{
    Request,
    generate::{ZipfWeb, ZipfWebConfig},
};

use super::*;
use crate::levels::{Levels, LevelsConfig};

fn log(requests: u64) -> Vec<Request> {
    let config = ZipfWebConfig {
        requests,
        objects: 120_000,
        modified: 0.005,
        ..Default::default()
    };
    ZipfWeb::new(config, 11).collect()
}

fn report(log: &[Request], sample: usize) -> SizeReport {
    let options = SizeOptions {
        sizes: vec![16 << 20, 128 << 20],
        sample,
        threads: 2,
        ..Default::default()
    };
    let mut sampler = Sampler::new(sample);
    log.iter().for_each(|r| sampler.add(r));
    SizeReport::new(&mut sampler, &options, &|_, _| {})
}

#[test]
fn without_sampling_the_curves_are_exact() {
    let log = log(60_000);
    let report = report(&log, 100_000);
    assert!((report.sampled - 1.0).abs() < 1e-12);
    for curve in &report.curves {
        for point in &curve.points {
            let policy = curve.policy.parse().unwrap();
            let config = LevelsConfig {
                disk_policy: policy,
                ..LevelsConfig::lru(0, point.bytes)
            };
            let (mut levels, mut ops) = (Levels::new(config), Vec::new());
            for request in &log {
                levels.request(request, &mut ops);
            }
            let counts = levels.counts();
            assert!(
                (counts.hit_ratio() - point.hit_ratio).abs() < 1e-9,
                "{}",
                curve.policy
            );
            assert!((counts.byte_hit_ratio() - point.byte_hit_ratio).abs() < 1e-9);
            let written = counts.write_bytes as f64 / counts.request_bytes as f64;
            assert!((written - point.written).abs() < 1e-9, "{}", curve.policy);
        }
    }
}

#[test]
fn a_sample_comes_close_and_stays_bounded() {
    let log = log(400_000);
    let (exact, sampled) = (report(&log, 1 << 20), report(&log, 60_000));
    assert!(sampled.sampled < 0.2 && sampled.sample_requests <= 60_000);
    assert!((sampled.ceiling - exact.ceiling).abs() < 0.015);
    let objects = sampled.objects as f64 / exact.objects as f64;
    assert!((0.95..1.05).contains(&objects), "{objects}");
    for (a, b) in exact.curves.iter().zip(&sampled.curves) {
        for (p, q) in a.points.iter().zip(&b.points) {
            assert_eq!(p.bytes, q.bytes);
            let off = (p.hit_ratio - q.hit_ratio).abs();
            assert!(
                off < 0.015,
                "{} at {}: {} and {}",
                a.policy,
                p.bytes,
                p.hit_ratio,
                q.hit_ratio
            );
        }
    }
}

#[test]
fn the_bars_of_a_sampled_log_cover_the_exact_answer() {
    let log = log(60_000);
    let options = |sample| SizeOptions {
        policies: vec!["lru".parse().unwrap(), "s3-fifo".parse().unwrap()],
        sizes: vec![24 << 20, 96 << 20],
        sample,
        threads: 2,
        ..Default::default()
    };
    let answer = |sample, seed| {
        let mut sampler = Sampler::seeded(sample, seed);
        log.iter().for_each(|r| sampler.add(r));
        SizeReport::new(&mut sampler, &options(sample), &|_, _| {})
    };
    let exact = answer(100_000, 0);
    let (mut covered, mut all, mut width) = ([[0u32; 2]; 2], 0, 0.0);
    for seed in 1..=200 {
        let sampled = answer(8_000, seed);
        assert!(sampled.sampled < 0.2);
        all += 1;
        for (c, curve) in sampled.curves.iter().enumerate() {
            for (p, point) in curve.points.iter().enumerate() {
                let truth = exact.curves[c].points[p].hit_ratio;
                let (low, high) = point.between;
                covered[c][p] += u32::from((low..=high).contains(&truth));
                width += (high - low) / 800.0;
            }
        }
    }
    println!("covered {covered:?} of {all}, mean width {width:.4}");
    for covered in covered.into_iter().flatten() {
        assert!((180..=196).contains(&covered), "{covered} of {all}");
    }
}

#[test]
fn limits_are_tried_where_large_objects_matter() {
    let small = log(20_000);
    let mut sampler = Sampler::new(1 << 20);
    small.iter().for_each(|r| sampler.add(r));
    let large = |n: u64| Request {
        object: 1 << 40 | n,
        size: 40 << 20,
        ..whole()
    };
    (0..20).for_each(|n| sampler.add(&large(n)));
    let names: Vec<_> = Candidate::usual(&sampler)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        names,
        [
            "foxy",
            "foxy:second-use",
            "foxy:max_size:1MiB",
            "foxy:max_size:4MiB",
            "foxy:max_size:16MiB",
            "lru",
            "s3-fifo"
        ]
    );
    let mut without = Sampler::new(1 << 20);
    (0..100).for_each(|n| {
        without.add(&Request {
            object: n,
            ..whole()
        });
    });
    assert!(without.limits().is_empty());
}

#[test]
fn table_figure_and_an_empty_log() {
    let report = report(&log(60_000), 100_000);
    assert_eq!(report.table().rows().len(), 2);
    assert!(report.figure(false).svg().unwrap().contains("s3-fifo"));
    assert!(report.figure(true).svg().unwrap().contains("without end"));
    assert!(
        report
            .curves
            .iter()
            .all(|c| c.points[0].hit_ratio < c.points[1].hit_ratio)
    );
    let empty = self::report(&[], 1_000);
    assert!(empty.advice.contains("too few") && empty.requests == 0);
}

#[test]
fn sizes_double_until_everything_fits() {
    assert_eq!(sizes_up_to(5 << 20), [1 << 20, 2 << 20, 4 << 20, 8 << 20]);
}

/// An answer with all 5,000 bytes of object 1.
fn whole() -> Request {
    Request {
        size: 5_000,
        status: 200,
        object: 1,
        ..Request::default()
    }
}

#[test]
fn an_answer_of_304_is_the_object_as_it_was_and_queries_count() {
    let whole = whole();
    let not_modified = Request {
        status: 304,
        size: 250,
        ..whole
    };
    let never_sent = Request {
        object: 2,
        ..not_modified
    };
    let query = Request {
        object: 3,
        flags: foxy_trace::Flags::QUERY,
        ..whole
    };
    let error = Request {
        status: 500,
        ..whole
    };
    let log = [whole, not_modified, whole, never_sent, query, query, error];
    let report = report(&log, 1_000);
    // 3 of the 5 requests are repeats. The answer with status 304 sent no bytes.
    assert_eq!((report.requests, report.objects), (5, 2));
    assert!((report.ceiling - 0.6).abs() < 1e-9);
    assert_eq!(report.request_bytes, 20_000);
    assert!((report.byte_ceiling - 0.5).abs() < 1e-9);
    assert!(
        report
            .left_out
            .text()
            .starts_with("2 left out: 1 with a status")
    );
    assert_eq!(report.left_out.size, 1);
}

#[test]
fn parts_heads_and_broken_answers_are_no_new_versions() {
    let whole = whole();
    let part = Request {
        status: 206,
        size: 100,
        ..whole
    };
    let head = Request {
        method: foxy_trace::Method::Head,
        size: 300,
        ..whole
    };
    // nginx and Apache log only the bytes of the body, so a HEAD request has size 0 in their logs.
    let bare_head = Request { size: 0, ..head };
    let broken = Request {
        size: 2_000,
        flags: foxy_trace::Flags::ABORTED,
        ..whole
    };
    let never_whole = Request { object: 2, ..part };
    let log = [
        whole,
        part,
        head,
        bare_head,
        broken,
        whole,
        never_whole,
        never_whole,
    ];
    let report = report(&log, 1_000);
    assert_eq!((report.requests, report.objects), (8, 2));
    assert_eq!(report.left_out.size, 0);
    assert!((report.ceiling - 6.0 / 8.0).abs() < 1e-9);
    assert_eq!((report.request_bytes, report.object_bytes), (12_300, 5_100));
}
