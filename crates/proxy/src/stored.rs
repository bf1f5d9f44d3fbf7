//! The input of the caching rules for a stored object.

use foxy_base::rule;
use foxy_http_rules::{Digest, Flags, old};
use foxy_store::Object;

/// Input of the caching rules for a stored object: its digest, with the mark of a soft purge.
/// `None` if it is unreadable, or was stored by an older Foxy and must not be used any more.
#[inline]
pub(crate) fn stored_digest(object: &Object) -> Option<Digest> {
    let mut digest = Digest::decode(&object.meta().rules)?;
    if !old::admits(&mut digest, object.fields()) {
        return None;
    }
    if rule!(
        "purge: a soft one makes stale",
        object.is_soft_purged(),
        false
    ) {
        digest.flags = digest.flags.with(Flags::SOFT_PURGED);
    }
    Some(digest)
}
