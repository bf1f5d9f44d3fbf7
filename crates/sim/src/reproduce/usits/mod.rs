//! Repeats figures 2 to 8 and tables 1 and 2 of USITS'99 ("Secondary storage management for web proxies"),
//! and the additions of the journal version (WebCoSM, Transactions on Networking 2002).
//!
//! Conditions (sections 3.2 to 3.6): figures 4 and 5 and the upper half of table 2 use a disk of 1 GB. Figure
//! 5 has 400,000 operations; figure 4 and the upper half of table 2 have 300,000. Figures 6 to 8, table 1 and
//! the lower half of table 2 use 2 GB with a million operations. Figures 6 to 8 use one operation stream, and
//! the size of the file is 2 GB divided by the utilisation. The published "URL-gets/s" of table 2 equal
//! operations divided by completion time, so operations per second are compared.

mod calls;
mod disk;
mod one_gigabyte;
mod second;
mod two_gigabytes;
mod workload;

pub(super) use calls::CALLS;
pub(super) use disk::DISK;
pub(super) use one_gigabyte::FILES;
pub(super) use second::SECOND;
pub(super) use two_gigabytes::STREAM;
pub(super) use workload::WORKLOAD;

use super::{Conditions, section::figure};
use crate::{
    layout::{LayoutSpec, buddy},
    reproduce::Progress,
    run::{RunConfig, RunError, RunResult, sweep},
};

const MILLION: u64 = 1_000_000;
const BUDDY: LayoutSpec = LayoutSpec::Buddy(buddy::THRESHOLD);

fn runs(
    conditions: &Conditions,
    progress: Progress<'_>,
    what: &str,
    configs: &[RunConfig],
) -> Result<Vec<RunResult>, RunError> {
    let tell = |done, of| progress(what, done, of);
    sweep(configs, &conditions.options(&tell))
}

/// A short name that fits below two bars.
fn short(layout: &str) -> String {
    layout
        .replace("multiple-dirs", "multi-dirs")
        .replace("stream-packetizer", "packetizer")
        .replace("lazy-reads-loc", "lazy-loc")
}
