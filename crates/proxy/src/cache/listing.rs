//! Facts about a stored object in a form for people. The caching rules compute the age of the object and the
//! time until it is stale.

use foxy_base::WallTime;
use foxy_http_rules::freshness;
use foxy_store::{KeyParts, Object};

use crate::cache::stored::stored_facts;

/// Facts about a stored object at one point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// `forward`, or the site's name.
    pub partition: String,
    /// URL of the object.
    pub url: String,
    /// The request fields that select the variant. Empty if the object is not a variant.
    pub variant: String,
    /// Status code.
    pub status: u16,
    /// Length of the complete body in bytes.
    pub bytes: u64,
    /// Age in seconds.
    pub age: u32,
    /// Seconds that the object stays fresh. A negative number is the time for which it has been stale.
    pub ttl: i64,
    /// True if a soft purge made the object stale.
    pub soft_purged: bool,
}

impl Listed {
    /// Returns the facts about `object` at the time `now`.
    #[must_use]
    pub fn of(object: &Object, now: WallTime) -> Self {
        let key = KeyParts::of(object.key());
        let facts = stored_facts(object);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // `key.variant` consists of a line end, the 16 digits of the nonce, a line end and the selecting
        // values.
        let variant = key.variant.get(18..).unwrap_or_default();
        Self {
            partition: text(key.partition),
            url: text(key.url),
            variant: text(variant.trim_ascii()).replace('\n', "; "),
            status: object.meta().status,
            bytes: object.total_length(),
            age: facts.as_ref().map_or(0, |d| freshness::age(d, now)),
            ttl: facts.map_or(0, |d| freshness::ttl_ms(&d, now).div_euclid(1000)),
            soft_purged: object.is_soft_purged(),
        }
    }
}
