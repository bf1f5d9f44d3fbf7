//! The facts of a stored object for people, as the caching rules see them.

use foxy_base::WallTime;
use foxy_http_rules::freshness;
use foxy_store::{KeyParts, Object};

use crate::cache::stored::stored_digest;

/// Facts of a stored object at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// `forward`, or the site's name.
    pub partition: String,
    /// Its URL.
    pub url: String,
    /// For a variant, the request fields that it was selected by; empty otherwise.
    pub variant: String,
    /// Status code.
    pub status: u16,
    /// Bytes of the whole body.
    pub bytes: u64,
    /// Seconds of age.
    pub age: u32,
    /// Seconds that it stays fresh; negative for how long it has been stale.
    pub ttl: i64,
    /// A soft purge made it stale.
    pub soft_purged: bool,
}

impl Listed {
    /// The facts of `object` at `now`.
    #[must_use]
    pub fn of(object: &Object, now: WallTime) -> Self {
        let key = KeyParts::of(object.key());
        let digest = stored_digest(object);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // Line end, nonce, line end, then the values.
        let variant = key.variant.get(18..).unwrap_or_default();
        Self {
            partition: text(key.partition),
            url: text(key.url),
            variant: text(variant.trim_ascii()).replace('\n', "; "),
            status: object.meta().status,
            bytes: object.total_length(),
            age: digest.as_ref().map_or(0, |d| freshness::age(d, now)),
            ttl: digest.map_or(0, |d| freshness::ttl_ms(&d, now).div_euclid(1000)),
            soft_purged: object.is_soft_purged(),
        }
    }
}
