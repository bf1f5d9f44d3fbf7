//! Advice for the operator, in a few sentences.
//!
//! The advice is about Foxy if Foxy is among the compared candidates, and otherwise about the policy with the
//! most hits over all sizes. The advice on memory uses the best of the other policies, because Foxy's curve
//! (the hit ratio over the cache size) includes the effect of Foxy's memory. The recommended disk is the
//! smallest size after which no doubling adds one percentage point of hits or more. The recommended memory is
//! the smallest memory that, without a disk, reaches at least half of the disk's hits. The cheapest step is
//! chosen separately for requests and for bytes. If a setting adds a percentage point, the cheapest step is
//! that setting. Otherwise the cheapest step is a doubling of the disk, if the doubling adds a percentage
//! point. A curve that falls while the cache grows is explained. The advice is valid only for the evaluated
//! log.

use super::candidate::{FILTERED, FOXY};
use super::{Curve, Point, SizeReport};
use crate::report::readable;

/// Least increase of the hit ratio for which a doubling of the disk is recommended.
const WORTH: f64 = 0.01;

pub(super) fn sentences(report: &SizeReport) -> String {
    let untold = report.curves.iter().all(|c| c.points.is_empty());
    if untold && !report.too_small.is_empty() {
        return format!(
            "All sizes that were asked for are too small to be told by this log; try --sizes {} or \
             more, or leave --sizes out.",
            readable(report.least.next_power_of_two())
        );
    }
    let Some(best) = best(&report.curves).filter(|_| report.requests > 0) else {
        return "The log has too few cacheable requests to advise anything.".to_owned();
    };
    let Some(disk) = knee(&best.points) else {
        return "The log has too few distinct objects to compare sizes.".to_owned();
    };
    let memory = memory(&report.curves, &disk);
    let next = best.points.iter().find(|p| p.bytes >= disk.bytes * 2);
    let more = next.map_or_else(
        || "no larger size was tried".to_owned(),
        |n| {
            format!(
                "doubling it would add {:.1} points",
                100.0 * (n.hit_ratio - disk.hit_ratio)
            )
        },
    );
    format!(
        "With {} a cache of {} answers {:.1} % of the requests and {:.1} % of the bytes, saving \
         {} of {} fetched ({more}){memory}; no cache could answer more than {:.1} %.{}{}{}",
        best.policy,
        readable(disk.bytes),
        100.0 * disk.hit_ratio,
        100.0 * disk.byte_hit_ratio,
        readable((report.request_bytes as f64 * disk.byte_hit_ratio) as u64),
        readable(report.request_bytes),
        100.0 * report.ceiling,
        filters(&report.curves, &disk),
        steps(report, best, &disk),
        falling(report),
    )
}

/// Sentences on the hits and writes of Foxy with each admission rule, on a disk of the same size as `disk`.
/// With such a rule, Foxy writes fewer objects to the disk.
fn filters(curves: &[Curve], disk: &Point) -> String {
    let filtered = curves.iter().filter(|c| c.policy.starts_with(FILTERED));
    let said = filtered.filter_map(|curve| {
        let point = curve.points.iter().find(|p| p.bytes == disk.bytes)?;
        Some(format!(
            " With {} it would answer {:.1} % of the requests, and write {:.0} % of the bytes \
             asked for in place of {:.0} %.",
            curve.policy,
            100.0 * point.hit_ratio,
            100.0 * point.written,
            100.0 * disk.written,
        ))
    });
    said.collect()
}

/// A sentence on the cheapest step from `disk` that adds a percentage point to the hit ratio of requests, and
/// a sentence on the cheapest step for bytes. A setting costs nothing; a doubling requires one more disk.
fn steps(report: &SizeReport, best: &Curve, disk: &Point) -> String {
    let by = |what: &str, value: fn(&Point) -> f64| {
        let now = value(disk);
        let at_size = |c: &Curve| c.points.iter().find(|p| p.bytes == disk.bytes).map(value);
        let filtered = report
            .curves
            .iter()
            .filter(|c| c.policy.starts_with(FILTERED));
        let setting = filtered
            .filter_map(|c| Some((c.policy.as_str(), at_size(c)?)))
            .filter(|(_, then)| then - now >= WORTH)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((policy, then)) = setting {
            let rule = policy.trim_start_matches(FILTERED);
            return format!(
                " For {what} the cheapest step is a setting, not hardware: admission {rule} gives \
                 {:.1} % in place of {:.1} %.",
                100.0 * then,
                100.0 * now
            );
        }
        let larger = best.points.iter().find(|p| p.bytes >= 2 * disk.bytes);
        match larger.filter(|p| value(p) - now >= WORTH) {
            Some(point) => format!(
                " For {what} the cheapest step is a disk of {}: {:.1} % in place of {:.1} %.",
                readable(point.bytes),
                100.0 * value(point),
                100.0 * now
            ),
            None => String::new(),
        }
    };
    by("requests", |p| p.hit_ratio) + &by("bytes", |p| p.byte_hit_ratio)
}

/// Names the candidates whose hit ratio falls while the cache grows, and the reason.
fn falling(report: &SizeReport) -> String {
    let falls = |c: &&Curve| {
        let pairs = c.points.windows(2);
        pairs
            .into_iter()
            .any(|w| w[1].hit_ratio < w[0].hit_ratio - WORTH / 2.0)
    };
    let names: Vec<&str> = report
        .curves
        .iter()
        .filter(falls)
        .map(|c| c.policy.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        " The curve of {} falls where the cache grows: an object larger than a cache is not stored in it, \
         but one that just fits pushes out many small ones. A limit (max_size) keeps such objects \
         out.",
        names.join(", ")
    )
}

/// A sentence on memory without a disk: the smallest memory that reaches half of the disk's hits.
fn memory(curves: &[Curve], disk: &Point) -> String {
    let others: Vec<_> = curves
        .iter()
        .filter(|c| c.policy != FOXY && !c.policy.starts_with(FILTERED))
        .cloned()
        .collect();
    let half = |p: &&Point| p.hit_ratio >= disk.hit_ratio / 2.0;
    let ram = best(&others).and_then(|c| c.points.iter().find(half));
    ram.map_or_else(String::new, |ram| {
        format!(
            "; {} of memory would give {:.1} % by itself",
            readable(ram.bytes),
            100.0 * ram.hit_ratio
        )
    })
}

fn best(curves: &[Curve]) -> Option<&Curve> {
    if let Some(foxy) = curves.iter().find(|c| c.policy == FOXY) {
        return Some(foxy);
    }
    let sum = |c: &Curve| c.points.iter().map(|p| p.hit_ratio).sum::<f64>();
    // Among equal candidates the first wins, because the operator chose the order.
    curves
        .iter()
        .filter(|c| !c.points.is_empty())
        .reduce(|a, b| if sum(b) > sum(a) { b } else { a })
}

/// The smallest size after which no doubling adds a point or more.
fn knee(points: &[Point]) -> Option<Point> {
    let worth_more = |n: usize| {
        points
            .get(n + 1)
            .is_some_and(|next| next.hit_ratio - points[n].hit_ratio >= WORTH)
    };
    let last = (0..points.len()).rev().find(|n| worth_more(*n));
    points.get(last.map_or(0, |n| n + 1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(hits: &[f64]) -> Vec<Point> {
        let point = |(n, h): (usize, &f64)| Point {
            bytes: 1 << (20 + n),
            hit_ratio: *h,
            byte_hit_ratio: h / 2.0,
            written: 1.0 - h,
            between: (*h, *h),
        };
        hits.iter().enumerate().map(point).collect()
    }

    #[test]
    fn the_knee_is_where_doubling_stops_to_pay() {
        let size = |hits: &[f64]| knee(&points(hits)).map(|p| p.bytes >> 20);
        assert_eq!(size(&[0.1, 0.3, 0.4, 0.405, 0.407]), Some(4));
        // A flat part of the curve before another rise is not the knee (the recommended size).
        assert_eq!(size(&[0.1, 0.104, 0.3, 0.304]), Some(4));
        assert_eq!(size(&[0.1, 0.1]), Some(1));
        assert_eq!(size(&[]), None);
    }

    #[test]
    fn the_sentence_names_sizes_and_savings() {
        let curve = |policy: &str, hits: &[f64]| Curve {
            policy: policy.into(),
            points: points(hits),
        };
        let report = SizeReport {
            requests: 100,
            request_bytes: 10 << 30,
            left_out: super::super::LeftOut::default(),
            sampled: 1.0,
            sample_requests: 100,
            objects: 50,
            object_bytes: 8 << 20,
            ceiling: 0.5,
            byte_ceiling: 0.25,
            load: super::super::Load::default(),
            least: 1,
            too_small: Vec::new(),
            curves: vec![
                curve("lru", &[0.1, 0.3, 0.4, 0.405]),
                curve("s3-fifo", &[0.22, 0.35, 0.42, 0.42]),
            ],
            advice: String::new(),
        };
        let text = sentences(&report);
        for part in [
            "With s3-fifo a cache of 4 MiB answers 42.0 %",
            "saving 2.1 GiB of 10 GiB",
            "1 MiB of memory would give 22.0 %",
            "doubling it would add 0.0 points",
            "more than 50.0 %",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("in place of"), "{text}");
        let filtered = SizeReport {
            curves: vec![
                curve("foxy", &[0.1, 0.3, 0.4, 0.405]),
                curve("foxy:second-use", &[0.2, 0.35, 0.39, 0.4]),
            ],
            ..report.clone()
        };
        let text = sentences(&filtered);
        for part in [
            "With foxy a cache of 4 MiB answers 40.0 %",
            "With foxy:second-use it would answer 39.0 % of the requests, and write 61 % of the bytes",
            "in place of 60 %",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(
            !text.contains("of memory"),
            "no policy of memory was asked for: {text}"
        );
        let untold = SizeReport {
            curves: Vec::new(),
            ..report
        };
        assert!(sentences(&untold).contains("too few"));
    }
    fn with_curves(curves: Vec<Curve>) -> SizeReport {
        SizeReport {
            requests: 100,
            request_bytes: 10 << 30,
            left_out: super::super::LeftOut::default(),
            sampled: 1.0,
            sample_requests: 100,
            objects: 50,
            object_bytes: 8 << 20,
            ceiling: 0.9,
            byte_ceiling: 0.5,
            load: super::super::Load::default(),
            least: 1,
            too_small: Vec::new(),
            curves,
            advice: String::new(),
        }
    }

    #[test]
    fn the_cheapest_step_is_a_setting_before_a_disk() {
        let curve = |policy: &str, hits: &[f64]| Curve {
            policy: policy.into(),
            points: points(hits),
        };
        let both = with_curves(vec![
            curve("foxy", &[0.2, 0.5, 0.505, 0.506]),
            curve("foxy:max_size:1MiB", &[0.3, 0.7, 0.7, 0.7]),
            curve("foxy:second-use", &[0.2, 0.52, 0.5, 0.5]),
        ]);
        let text = sentences(&both);
        assert!(
            text.contains(
                "For requests the cheapest step is a setting, not hardware: admission max_size:1MiB \
                 gives 70.0 % in place of 50.0 %."
            ),
            "{text}"
        );
        assert!(
            text.contains("For bytes the cheapest step is a setting"),
            "{text}"
        );
        // No setting helps, so a larger disk is recommended. The hit ratio of bytes still rises where the hit
        // ratio of requests no longer does.
        let mut rising = points(&[0.2, 0.5, 0.505]);
        rising[2].byte_hit_ratio = 0.4;
        let alone = with_curves(vec![Curve {
            policy: "foxy".into(),
            points: rising,
        }]);
        let text = sentences(&alone);
        assert!(!text.contains("For requests"), "{text}");
        assert!(
            text.contains(
                "For bytes the cheapest step is a disk of 4 MiB: 40.0 % in place of 25.0 %."
            ),
            "{text}"
        );
    }

    #[test]
    fn a_curve_that_falls_is_explained() {
        let curve = |hits: &[f64]| Curve {
            policy: "lru".into(),
            points: points(hits),
        };
        let odd = sentences(&with_curves(vec![curve(&[0.4, 0.3, 0.5])]));
        assert!(
            odd.contains("The curve of lru falls where the cache grows"),
            "{odd}"
        );
        let plain = sentences(&with_curves(vec![curve(&[0.3, 0.4, 0.5])]));
        assert!(!plain.contains("falls"), "{plain}");
    }
}
