//! Words on the differences from the figures of UCFS, and which of them explains which miss.

use super::{SOURCE, Section, SystemResult};

/// Headings of the notes.
const RECORDED: &str = "At recorded times";
const ONE_TIMERS: &str = "One-timers";
const READING: &str = "Where reads are the time";

pub(super) fn notes(ucfs: &SystemResult, root: &SystemResult, out: &mut Section) {
    out.note(
        "What can be compared",
        "Cluster size, shares of the buffers, sizes and times of the paper are lost, and so are its \
         logs. What is asked is whether the order holds and whether the factors come near the \
         abstract's ranges for any of the lost values. A real implementation by the same group \
         later gained 2.5 to 3 times on two logs.",
    );
    out.note(
        RECORDED,
        "At recorded times UCFS waits for hardly any write: its clusters are written behind, in the \
         pauses. So these factors say little. The published factors are of total latency over a week, \
         which is not told to be at recorded times or back to back.",
    );
    out.note(
        ONE_TIMERS,
        "Throwing out clusters after six hours loses two points of hits and with them half of the disk's \
         time: that factor is not one of speed.",
    );
    out.note(
        READING,
        format!(
            "On the stream of the NLANR proxies {:.0} % of the requests are hits on disk, and nearly all \
             of UCFS' time are reads of clusters, of which async FFS needs two or three shorter ones: \
             the factor over it is that of the read parts.",
            100.0 * root.hit_ratio * (1.0 - root.ram_share)
        ),
    );
    out.note(
        "Prefetching",
        format!(
            "On the DEC stream a disk hit brings {:.1} other files, of which {:.1} % are asked for in \
             time; on the stream of the NLANR proxies {:.1}, of which {:.1} %, although hits on disk are \
             five times as many there: with 192 MB of memory a page is seldom visited again before \
             what came along has left. Most of the gain over Squid on FFS comes from writing: many files \
             by one request instead of several synchronous ones for each.",
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
