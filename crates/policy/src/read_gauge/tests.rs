//! Tests of the gauge with simulated devices of several kinds.

use super::*;
use foxy_base::Rng;

const SPAN: u64 = 1 << 40;

/// A device: milliseconds for the movement of the head, the rotation of the platter, and everything else.
struct Model {
    way: f64,
    revolution: f64,
    fixed: f64,
    /// Number of reads carried out at once.
    width: usize,
}

const DISK: Model = Model {
    way: 15.0,
    revolution: 8.3,
    fixed: 0.5,
    width: 1,
};
const SSD: Model = Model {
    way: 0.0,
    revolution: 0.05,
    fixed: 0.08,
    width: 16,
};
/// A device that is as slow as a disk, but whose times do not depend on the distance.
const REMOTE: Model = Model {
    way: 0.0,
    revolution: 6.0,
    fixed: 3.0,
    width: 64,
};

/// Feeds the gauge with reads, `depth` of them in flight, at random positions in a part of the device (`part`
/// is its fraction of the whole). Returns the kind of device that the gauge detects.
fn told(model: &Model, part: f64, depth: usize, reads: usize, seed: u64) -> Device {
    let mut rng = Rng::new(seed);
    let mut gauge = ReadGauge::new((SPAN as f64 * part) as u64);
    let (mut now, mut head) = (1.0, 0u64);
    let mut lanes = vec![0.0f64; model.width];
    let mut ends: Vec<f64> = Vec::new();
    let mono = |ms: f64| MonoTime((ms * 1e6) as u64);
    for _ in 0..reads {
        while ends.len() < depth {
            let at = rng.below((SPAN as f64 * part) as u64);
            gauge.begins(at, || mono(now));
            let far = (at.abs_diff(head) as f64 / SPAN as f64).sqrt();
            let chance = rng.below(1_000_000) as f64 / 1e6;
            let took = model.fixed + model.way * far + model.revolution * chance;
            head = at;
            let lane = lanes
                .iter_mut()
                .min_by(|a, b| a.total_cmp(b))
                .expect("a lane");
            *lane = lane.max(now) + took;
            ends.push(*lane);
        }
        ends.sort_by(|a, b| b.total_cmp(a));
        now = ends.pop().expect("one under way").max(now);
        gauge.ends(false, || mono(now));
    }
    gauge.device()
}

#[test]
fn a_disk_is_known_by_reads_alone_and_by_many_at_once() {
    for seed in 0..20 {
        assert_eq!(told(&DISK, 1.0, 1, 256, seed), Device::Rotating);
        assert_eq!(told(&DISK, 1.0, 8, 256, seed), Device::Rotating);
        // Only a tenth of the disk is used. So head movements are short, and detection takes longer.
        assert_eq!(told(&DISK, 0.1, 1, 4_000, seed), Device::Rotating);
    }
}

#[test]
fn an_ssd_is_fast_at_any_depth() {
    for (seed, depth) in [1, 2, 4, 32].into_iter().cycle().take(40).enumerate() {
        let device = told(&SSD, 1.0, depth, 70, seed as u64);
        assert_eq!(device, Device::Fast, "{depth} under way");
    }
}

#[test]
fn a_remote_device_is_slow_but_no_disk() {
    let wrong = (0..50).filter(|seed| told(&REMOTE, 1.0, 1, 2_000, *seed) == Device::Rotating);
    assert!(wrong.count() <= 1);
    assert_eq!(told(&REMOTE, 1.0, 1, 2_000, 77), Device::Even);
    assert_eq!(told(&REMOTE, 1.0, 32, 2_000, 77), Device::Fast);
}

#[test]
fn few_reads_tell_nothing() {
    assert_eq!(told(&DISK, 1.0, 1, 30, 1), Device::Unknown);
    assert_eq!(told(&SSD, 1.0, 1, 30, 1), Device::Unknown);
}

/// A device that is known to be fast is hardly timed. So the gauge takes little time on the path of a hit.
#[test]
fn the_clock_is_seldom_asked_for_a_fast_device() {
    let asked = std::cell::Cell::new(0u32);
    let mut gauge = ReadGauge::new(SPAN);
    for n in 0..100_000u64 {
        let now = || {
            asked.set(asked.get() + 1);
            MonoTime(1 + n * 100_000)
        };
        gauge.begins(n, now);
        gauge.ends(false, now);
    }
    assert_eq!(gauge.device(), Device::Fast);
    assert!(asked.get() < 6_000, "{} times", asked.get());
}

#[test]
fn a_disk_that_was_replaced_by_a_fast_one_is_noticed() {
    let mut gauge = ReadGauge::new(SPAN);
    let mut now = 1;
    for (times, step) in [(200u64, 9_000_000), (200, 100_000)] {
        for n in 0..times {
            for lane in 0..4 {
                gauge.begins(n << 20 | lane, || MonoTime(now));
            }
            for _ in 0..4 {
                now += step;
                gauge.ends(false, || MonoTime(now));
            }
        }
        let wanted = if step > 1_000_000 {
            Device::Rotating
        } else {
            Device::Fast
        };
        assert_eq!(gauge.device(), wanted);
    }
}
