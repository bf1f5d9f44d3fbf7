//! Measurements on a stream of requests.

mod cascade;
mod idle;
mod infinite;
mod pages;
mod popularity;
mod site_sets;
mod sizes;
mod stack;
mod summary;

pub use cascade::{Cascade, CascadeReport};
pub use idle::IdleTime;
pub use infinite::{Infinite, InfiniteReport};
pub use pages::{Pages, PagesReport};
pub use popularity::{ZipfFit, zipf_fit};
pub use site_sets::{SiteSets, SiteSetsReport};
pub use sizes::SizeCounts;
pub use stack::StackDistances;
pub use summary::{Summary, SummaryReport};

/// `part / whole`; 0 if `whole` is 0.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
