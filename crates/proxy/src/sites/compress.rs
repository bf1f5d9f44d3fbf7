//! Compression of stored answers at a site.

use foxy_http_rules::coding::Coding;

/// Compression at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compress {
    /// Codings, the preferred one first.
    pub codings: Vec<Coding>,
    /// Shorter bodies stay plain.
    pub bytes_min: u64,
}
