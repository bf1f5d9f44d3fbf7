//! Absurd parameters: the exit code is 2, and a message describes the permitted values.

use super::call;

#[test]
fn absurd_parameters_are_refused_with_what_would_do() {
    for (line, words) in [
        ("run --disk 0", "at least 64 KiB"),
        (
            "run --disk 900GiB --layout squid",
            "do not fit on drive st15150wc",
        ),
        ("run --disk 99999999999TiB", "too large"),
        ("run --ram -5", "such as 4096, 64MB"),
        ("run --utilisation -1", "above 0 and at most 1"),
        ("run --utilisation 2", "above 0 and at most 1"),
        ("run --timeout-ms nan", "milliseconds from 0 on"),
        ("run --timeout-ms -3", "milliseconds from 0 on"),
        ("run --page 1000", "power of two"),
        ("run --buffer 1", "at least 512"),
        ("run --layout steam", "choose simple, squid"),
        ("run --layout lazy-reads:0", "at least 1"),
        ("run --disk-policy lruu", "choose lru, lru-th:SIZE"),
        ("run --watermarks 0.9", "LOW:HIGH"),
        ("run --drive floppy", "choose "),
        ("run --fs ext2", "choose ufs"),
        ("run --layout stream,squid", "use sweep"),
        ("run --workload dec:many", "dec"),
        (
            "run --system hummingbird --cluster 900GiB --workload isp:9",
            "from 4 KiB to 16 MiB",
        ),
        (
            "run --system hummingbird --disk 0 --workload isp:9",
            "at least 16 MiB",
        ),
        (
            "run --system ucfs --ram 0 --workload isp:9",
            "memory must hold",
        ),
        ("run --system squid --pace slow", "throttle"),
        ("reproduce --parts nonsense", "workload "),
        ("reproduce --scale 0", "from 1 to 1000"),
        ("size {} --sizes 0", "above 0"),
        ("size {} --sample 0", "at least 1"),
        ("size {} --policies belady", "s3-fifo"),
    ] {
        let (code, out, error) = call(line, "no-such-log".as_ref());
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {error}");
        assert!(error.contains(words), "{line}: {error}");
        assert!(error.starts_with("error: "), "{line}: {error}");
    }
}
