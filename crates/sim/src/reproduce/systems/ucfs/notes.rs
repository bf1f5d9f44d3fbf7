//! Notes on the differences from the published results of UCFS, and the assignment of notes to missed claims.

use super::{SOURCE, Section, SystemResult};

/// Heading of a note. The constants below are headings of notes too.
const RECORDED: &str = "At recorded times";
const ONE_TIMERS: &str = "One-timers";
const READING: &str = "Where reads are the time";

pub(super) fn notes(ucfs: &SystemResult, root: &SystemResult, out: &mut Section) {
    out.note(
        "What can be compared",
        "Cluster size, shares of the buffers, sizes and times of the paper are lost, and so are its logs. We \
         test whether the order is the same. We also test whether any choice of the lost values brings the \
         factors near the ranges that the abstract states. A real implementation by the same group later \
         gained 2.5 to 3 times on two logs.",
    );
    out.note(
        RECORDED,
        "At recorded times UCFS waits for almost no write, because it writes its clusters later, during \
         pauses. So these factors mean little. The published factors are for total latency over a week. The \
         paper does not say whether the requests came at recorded times or back to back.",
    );
    out.note(
        ONE_TIMERS,
        "If clusters are dropped after six hours, two percentage points of hits are lost, and the disk's \
         time falls to half. So this factor does not show a higher speed.",
    );
    out.note(
        READING,
        format!(
            "On the stream of the NLANR proxies {:.0} % of the requests are hits on disk, and UCFS spends \
             nearly all of its time on reads of clusters. Where UCFS reads one cluster, async FFS needs two \
             or three shorter reads. So the factor over async FFS is the factor of the reads.",
            100.0 * root.hit_ratio * (1.0 - root.ram_share)
        ),
    );
    out.note(
        "Prefetching",
        format!(
            "On the DEC stream a disk hit also reads {:.1} other files, and {:.1} % of these files are \
             requested while they are in memory. On the stream of the NLANR proxies a disk hit also reads \
             {:.1} other files, and {:.1} % of these files are requested in time, although that stream has \
             five times as many hits on disk. With 192 MB of memory, the files that came along usually leave \
             memory before their page is visited again. Most of the gain over Squid on FFS comes from \
             writing: UCFS writes many files with one request, and FFS needs several synchronous requests \
             for each file.",
            ucfs.prefetched_per_read,
            100.0 * ucfs.prefetch_hit_ratio,
            root.prefetched_per_read,
            100.0 * root.prefetch_hit_ratio
        ),
    );
    out.because(SOURCE, &["at recorded times"], RECORDED);
    out.because(SOURCE, &["one-timers", "largest factor"], ONE_TIMERS);
    out.because(SOURCE, &["NLANR stream"], READING);
}
