//! The compression of stored answers at a site.

use foxy_http_rules::coding::Coding;

/// The settings of compression at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compress {
    /// Codings, in the order of preference.
    pub codings: Vec<Coding>,
    /// Smallest number of bytes of a body that is compressed. Shorter bodies stay plain.
    pub bytes_min: u64,
}
