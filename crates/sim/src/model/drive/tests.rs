//! Compares each drive with its data sheet.

use foxy_base::Rng;
use proptest::prelude::*;

use super::{Drive, Kind, Request, SeekTimes, disk::Disk};
use crate::model::SimTime;

fn mechanical(name: &str) -> (Drive, super::DiskParams) {
    (
        Drive::named(name).unwrap(),
        Drive::disk_params(name).unwrap(),
    )
}

fn inner(drive: &Drive) -> &Disk {
    match &drive.kind {
        Kind::Disk(disk) => disk,
        Kind::Flash(_) => panic!("a disk"),
    }
}

/// Mean time of `n` random requests of `len` bytes, one at a time.
fn random(drive: &mut Drive, n: u64, len: u64, write: bool) -> f64 {
    let mut rng = Rng::new(1);
    let mut now = SimTime::ZERO;
    for _ in 0..n {
        let at = rng.below(drive.capacity() - len) / 512 * 512;
        // A random pause, so that the platter's angle does not depend on the last request.
        now += SimTime::from_micros(rng.below(20_000));
        now = drive.serve(
            now,
            if write {
                Request::write(at, len)
            } else {
                Request::read(at, len)
            },
        );
    }
    drive.stats().busy.as_millis() / n as f64
}

/// MB/s when `mb` megabytes from `at` on are read in pieces of 256 KB without pauses.
fn sequential(drive: &mut Drive, at: u64, mb: u64) -> f64 {
    let mut now = drive.serve(drive.ready_at(), Request::read(at, 262_144));
    let start = now;
    for i in 1..=mb * 4 {
        now = drive.serve(now, Request::read(at + i * 262_144, 262_144));
    }
    mb as f64 * 1.048_576 / (now - start).as_secs()
}

/// Time of one seek over `distance` cylinders, in ms. It includes settling, but no rotation.
fn seek(drive: &Drive, distance: u32) -> f64 {
    let mut drive = drive.clone();
    let from = inner(&drive).cylinder_start(100);
    let to = inner(&drive).cylinder_start(100 + distance);
    let now = drive.serve(SimTime::ZERO, Request::read(from, 512));
    drive.serve(SimTime::from_secs(1.0), Request::read(from, 512));
    let before = drive.stats().seeking;
    // Read-ahead ended on the cylinder of `from` long before this time, so the arm crosses `distance`
    // cylinders.
    let far = now + SimTime::from_secs(5.0);
    drive.serve(far, Request::read(to, 512));
    (drive.stats().seeking - before).as_millis()
}

struct Sheet {
    name: &'static str,
    gigabytes: f64,
    seek: SeekTimes,
    half_revolution: f64,
    /// MB/s at the outer and inner edge. The model must match them within 6 %.
    rates: (f64, f64),
}

const SHEETS: [Sheet; 7] = [
    Sheet {
        name: "st15150wc",
        gigabytes: 4.29,
        seek: SeekTimes {
            single: 0.6,
            average: 8.0,
            full: 17.0,
        },
        half_revolution: 4.17,
        rates: (7.2, 4.6),
    },
    Sheet {
        name: "st118202fc",
        gigabytes: 18.2,
        seek: SeekTimes {
            single: 0.98,
            average: 5.2,
            full: 12.2,
        },
        half_revolution: 2.99,
        rates: (19.0, 12.7),
    },
    Sheet {
        name: "st318275lc",
        gigabytes: 18.2,
        seek: SeekTimes {
            single: 0.8,
            average: 6.9,
            full: 15.0,
        },
        half_revolution: 4.16,
        rates: (17.1, 12.5),
    },
    Sheet {
        name: "st318203fsun18g",
        gigabytes: 18.2,
        seek: SeekTimes {
            single: 0.78,
            average: 5.2,
            full: 10.8,
        },
        half_revolution: 2.99,
        rates: (26.4, 18.7),
    },
    Sheet {
        name: "atlas10k2",
        gigabytes: 73.4,
        seek: SeekTimes {
            single: 0.6,
            average: 4.7,
            full: 12.0,
        },
        half_revolution: 2.99,
        rates: (40.4, 23.0),
    },
    Sheet {
        name: "atlas10k2-x3",
        gigabytes: 220.2,
        seek: SeekTimes {
            single: 0.6,
            average: 4.7,
            full: 12.0,
        },
        half_revolution: 2.99,
        rates: (121.0, 69.0),
    },
    Sheet {
        name: "hdd20t",
        gigabytes: 20_000.0,
        seek: SeekTimes {
            single: 0.5,
            average: 8.0,
            full: 15.0,
        },
        half_revolution: 4.17,
        rates: (285.0, 131.0),
    },
];

fn near(what: &str, name: &str, value: f64, sheet: f64, tolerance: f64) {
    let off = (value / sheet - 1.0).abs();
    assert!(
        off <= tolerance,
        "{name} {what}: {value:.3}, sheet {sheet:.3}"
    );
}

#[test]
fn capacities_are_those_of_the_sheets() {
    for sheet in &SHEETS {
        let drive = Drive::named(sheet.name).unwrap();
        near(
            "capacity",
            sheet.name,
            drive.capacity() as f64 / 1e9,
            sheet.gigabytes,
            0.015,
        );
    }
}

#[test]
fn seeks_are_those_of_the_sheets() {
    for sheet in &SHEETS {
        let (drive, params) = mechanical(sheet.name);
        // The first track of the next cylinder is under another head. So the drive also switches the head,
        // and the longer of these two operations determines the time.
        let single = seek(&drive, 1);
        let longest = sheet.seek.single.max(params.head_switch);
        assert!(
            single > sheet.seek.single - 1e-3 && single < longest + 1e-3,
            "{} {single}",
            sheet.name
        );
        let full = seek(&drive, drive.cylinders() - 101);
        near("full stroke", sheet.name, full, sheet.seek.full, 0.05);
    }
}

#[test]
fn a_random_read_takes_seek_half_a_revolution_overhead_and_transfer() {
    for sheet in &SHEETS {
        let (mut drive, params) = mechanical(sheet.name);
        let mean = random(&mut drive, 4_000, 4_096, false);
        let bus = 4.096 / params.bus_mb as f64;
        let expected = sheet.seek.average + sheet.half_revolution + params.overhead + 0.2 + bus;
        near("random read", sheet.name, mean, expected, 0.05);
        let seeking = drive.stats().seeking.as_millis() / 4_000.0;
        near(
            "average seek",
            sheet.name,
            seeking,
            sheet.seek.average,
            0.05,
        );
        let rotating = drive.stats().rotating.as_millis() / 4_000.0;
        near("latency", sheet.name, rotating, sheet.half_revolution, 0.04);
    }
}

#[test]
fn random_writes_settle_longer_without_a_cache() {
    let (mut drive, params) = mechanical("st15150wc");
    let mean = random(&mut drive, 4_000, 4_096, true);
    let expected = params.write_seek.average + 4.17 + params.overhead + 0.6;
    near("random write", "st15150wc", mean, expected, 0.05);
}

#[test]
fn sequential_rates_are_those_of_the_zones() {
    for sheet in &SHEETS {
        let mut drive = Drive::named(sheet.name).unwrap();
        near(
            "outer MB/s",
            sheet.name,
            sequential(&mut drive, 0, 32),
            sheet.rates.0,
            0.06,
        );
        let mut drive = Drive::named(sheet.name).unwrap();
        let last = drive.capacity() - (40 << 20);
        near(
            "inner MB/s",
            sheet.name,
            sequential(&mut drive, last / 512 * 512, 32),
            sheet.rates.1,
            0.06,
        );
    }
}

#[test]
fn a_write_cache_hides_the_platter_until_it_is_full() {
    let mut drive = Drive::named("st118202fc").unwrap();
    let first = drive.serve(SimTime::ZERO, Request::write(9 << 30, 65_536));
    assert!(first < SimTime::from_millis(1.5), "{first}");
    let done = drive.flush(first);
    assert!(done > SimTime::from_millis(5.0), "{done}");
    // In the long run, the write cache does not speed up random writes without pauses: each takes the time
    // that the platter needs.
    let mut rng = Rng::new(3);
    let (mut now, start) = (done, done);
    for _ in 0..500 {
        now = drive.serve(
            now,
            Request::write(rng.below(1 << 33) / 65_536 * 65_536, 65_536),
        );
    }
    let each = (drive.flush(now) - start).as_millis() / 500.0;
    assert!((6.0..13.0).contains(&each), "{each}");
}

#[test]
fn the_buffer_answers_what_was_just_read_and_loses_what_is_written() {
    let mut drive = Drive::named("st15150wc").unwrap();
    let mut now = drive.serve(SimTime::ZERO, Request::read(1 << 30, 8_192));
    now += SimTime::from_millis(50.0);
    let next = drive.serve(now, Request::read((1 << 30) + 8_192, 65_536));
    assert_eq!(drive.stats().buffer_hits, 1);
    assert!(next - now < SimTime::from_millis(8.0), "{}", next - now);
    // Read-ahead continues during the pause, so the next read is answered from the buffer. Then a write makes
    // a part of the buffered data stale.
    now = next + SimTime::from_millis(60.0);
    now = drive.serve(now, Request::read((1 << 30) + 120_000, 8_192));
    assert_eq!(drive.stats().buffer_hits, 2);
    now = drive.serve(now, Request::write((1 << 30) + 150_000, 4_096));
    now = drive.serve(now, Request::read((1 << 30) + 150_000, 512));
    assert_eq!(drive.stats().buffer_hits, 2);
    drive.serve(now, Request::read((1 << 30) + 150_000, 512));
    assert_eq!(drive.stats().buffer_hits, 3);
}

#[test]
fn another_surface_of_the_cylinder_costs_a_head_switch() {
    let mut drive = Drive::named("st15150wc").unwrap();
    let now = drive.serve(SimTime::ZERO, Request::write(0, 512));
    let before = drive.stats().seeking;
    drive.serve(now, Request::write(5 * 131 * 512, 512));
    assert_eq!(drive.stats().seeking - before, SimTime::from_millis(0.8));
    assert_eq!(drive.stats().cylinders, 0);
}

#[test]
fn an_uncached_write_that_comes_late_loses_a_revolution() {
    let mut drive = Drive::named("st15150wc").unwrap();
    let mut now = drive.serve(SimTime::ZERO, Request::write(0, 8_192));
    let start = now;
    for i in 1..=100u64 {
        now = drive.serve(now, Request::write(i * 8_192, 8_192));
    }
    let each = (now - start).as_millis() / 100.0;
    assert!((8.33..9.8).contains(&each), "{each}");
}

#[test]
fn same_requests_same_times_and_the_end_of_the_drive_is_kept() {
    let run = || {
        let mut drive = Drive::named("hdd20t").unwrap();
        let mut rng = Rng::new(9);
        (0..2_000).fold(SimTime::ZERO, |now, i| {
            let at = rng.below(drive.capacity());
            drive.serve(
                now,
                if i % 3 == 0 {
                    Request::write(at, 4_096)
                } else {
                    Request::read(at, 65_536)
                },
            )
        })
    };
    assert_eq!(run(), run());
    let mut drive = Drive::named("st15150wc").unwrap();
    let end = drive.capacity();
    assert_eq!(
        drive.serve(SimTime::ZERO, Request::read(end, 512)),
        SimTime::ZERO
    );
    assert!(drive.serve(SimTime::ZERO, Request::read(end - 512, 1 << 20)) > SimTime::ZERO);
    assert_eq!(drive.stats().read_bytes, 512);
    assert!(Drive::named("floppy").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    /// No request ends before its arrival, or in less time than the transfer of its bytes takes. No request
    /// takes 75 ms or more. If the drive has a write cache, the limit is 3 s instead of 75 ms, because the
    /// drive may first have to write the full cache to the platter.
    #[test]
    fn times_stay_within_what_the_mechanism_allows(seed in any::<u64>(), which in 0..Drive::NAMES.len()) {
        let name = Drive::NAMES[which];
        let mut drive = Drive::named(name).unwrap();
        let (bus, write_cache) = Drive::disk_params(name).map_or((20_000, 0), |p| (p.bus_mb, p.write_cache));
        let mut rng = Rng::new(seed);
        let (mut now, mut bytes) = (SimTime::ZERO, 0);
        for _ in 0..150 {
            let len = 512 * (1 + rng.below(200));
            let at = if rng.chance(0.5) { drive.head() } else { rng.below(drive.capacity()) / 512 * 512 };
            let at = at.min(drive.capacity() - len);
            let write = rng.chance(0.4);
            let end = drive.serve(now, if write { Request::write(at, len) } else { Request::read(at, len) });
            let span = (end - now).as_millis();
            prop_assert!(span >= len as f64 / bus as f64 / 1_000.0, "{} {}", name, span);
            let worst = if write_cache > 0 { 3_000.0 } else { 75.0 };
            prop_assert!(span < worst, "{} {}", name, span);
            now = end + SimTime::from_micros(rng.below(3) * rng.below(9_000));
            bytes += len;
        }
        let stats = drive.stats();
        prop_assert_eq!(stats.read_bytes + stats.written_bytes, bytes);
        prop_assert_eq!(stats.distance.iter().sum::<u64>(), stats.requests());
        prop_assert!(drive.flush(now) >= now);
    }
}
