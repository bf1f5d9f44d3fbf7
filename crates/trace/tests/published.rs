//! Tests that the published traces have the published values. The traces are not part of the repository. If a
//! trace is absent, its test prints a note and checks nothing.

#![expect(clippy::unwrap_used, reason = "a test: a panic is its way to fail")]

use foxy_trace::analysis::{Summary, SummaryReport};
use foxy_trace::files::Known;
use foxy_trace::{Method, Options, open};

/// Returns the summary of the GETs answered by 200, 206 or 304, and the number of clients in the complete
/// trace.
fn summary(known: Known) -> Option<(SummaryReport, usize)> {
    let path = known
        .path()
        .map_err(|sentence| eprintln!("not checked: {sentence}"))
        .ok()?;
    let mut reader = open(&path, Options::default()).unwrap();
    let (mut summary, mut clients) = (Summary::default(), std::collections::HashSet::new());
    for request in reader.by_ref().map(Result::unwrap) {
        clients.insert(request.client);
        if request.method == Method::Get && matches!(request.status, 200 | 206 | 304) {
            summary.add(&request);
        }
    }
    assert_eq!(reader.bad().count, 0, "{}", reader.bad());
    let report = summary.report();
    println!("{}\n{report}", known.file_name());
    Some((report, clients.len()))
}

/// Checks that `got` differs from `want` by at most `tolerance`.
fn near(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!(
        (got - want).abs() <= tolerance,
        "{what}: {got} instead of {want}"
    );
}

#[test]
fn boston_university_1998() {
    let Some((r, _)) = summary(Known::Bu98) else {
        return;
    };
    assert_eq!((r.infinite.requests, r.infinite.objects), (66_987, 36_815));
    assert_eq!(
        (r.infinite.bytes, r.infinite.distinct_bytes),
        (485_457_552, 279_261_548)
    );
    near("hit ratio", r.infinite.hit_ratio(), 0.450, 0.0006);
    near("same size", r.infinite.same_size_ratio(), 0.378, 0.0006);
    near("byte hit ratio", r.infinite.byte_hit_ratio(), 0.426, 0.0006);
    assert_eq!(
        (r.request_sizes.quantile(0.5), r.object_sizes.quantile(0.5)),
        (2_416, 2_722)
    );
    assert_eq!(r.request_sizes.max(), 4_092_928);
    near(
        "one-timers",
        r.infinite.one_timers as f64 / r.infinite.objects as f64,
        0.811,
        0.0006,
    );
    near("Zipf, all", r.zipf.all, 0.49, 0.006);
    near("Zipf, repeated", r.zipf.repeated, 0.70, 0.006);
    near("Zipf, spaced", r.zipf.spaced, 0.76, 0.02);
    near("stack median", r.stack.quantile(0.5) as f64, 253.0, 1.0);
    near("stack p75", r.stack.quantile(0.75) as f64, 3_346.0, 2.0);
    near("stack p90", r.stack.quantile(0.9) as f64, 10_581.0, 10.0);
}

fn nasa(known: Known, want: [f64; 9], counts: [u64; 3]) {
    let Some((r, clients)) = summary(known) else {
        return;
    };
    assert_eq!(
        [r.infinite.requests, r.infinite.objects, clients as u64],
        counts
    );
    let pages = r.pages.unwrap();
    let got = [
        r.infinite.hit_ratio(),
        r.infinite.same_size_ratio(),
        r.infinite.byte_hit_ratio(),
        r.request_sizes.below(8192),
        r.zipf.all,
        r.zipf.spaced,
        r.stack.quantile(0.5) as f64,
        pages.mean,
        pages.again,
    ];
    // The fourth value, the share of requests below 8 KiB, has a larger tolerance, because the published
    // value was computed differently. There, an answer of 304 has a size even if it comes before the first
    // answer of 200 for its object.
    let tolerance = [
        0.0006, 0.0006, 0.0006, 0.0125, 0.006, 0.06, 1.0, 0.01, 0.006,
    ];
    for at in 0..want.len() {
        near(&format!("value {at}"), got[at], want[at], tolerance[at]);
    }
    assert_eq!(
        (pages.p85, pages.p95),
        if known == Known::NasaJuly {
            (4, 6)
        } else {
            (6, 6)
        }
    );
}

#[test]
fn nasa_july_1995() {
    let want = [0.916, 0.869, 0.877, 0.615, 1.30, 1.04, 35.0, 2.89, 0.77];
    nasa(Known::NasaJuly, want, [9_528, 803, 936]);
}

#[test]
fn nasa_august_1995() {
    let want = [0.879, 0.856, 0.686, 0.682, 1.15, 1.02, 41.0, 3.10, 0.75];
    nasa(Known::NasaAugust, want, [9_719, 1_176, 853]);
}
