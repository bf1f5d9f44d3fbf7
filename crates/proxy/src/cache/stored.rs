//! The input of the caching rules for a stored object.

use foxy_base::{first, rule};
use foxy_http_rules::range::ContentRange;
use foxy_http_rules::{Digest, Flags, RuleId, old};
use foxy_store::Object;

use crate::Proxy;

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

impl Proxy {
    /// Rules digest of an object found for a request that this rule decides; `None` if the object
    /// must not be used.
    #[inline]
    pub(crate) fn admitted(&self, object: &Object, rule: RuleId) -> Option<Digest> {
        let digest = stored_digest(object)?;
        let doubtful = Flags::OLD_RULES.with(Flags::COOKIE_BY_RULE);
        if digest.flags.any(doubtful) && self.is_withdrawn(digest.flags, rule) {
            return None;
        }
        Some(digest)
    }

    /// True if the present rules would not have stored the object.
    #[cold]
    fn is_withdrawn(&self, flags: Flags, rule: RuleId) -> bool {
        // An older Foxy compared undecoded parameter names, so the origin may have seen other
        // parameters than those in the key.
        let cloaked = rule!(
            "old records: one under a key of fewer parameters is not used",
            flags.has(Flags::OLD_RULES) && self.config.user_rules.drops_parameters(rule),
            false
        );
        let rules = self.rules(rule);
        let shares = rules.store_set_cookie && !rules.strip_set_cookie;
        let cookie = rule!(
            "reload: a cookie that a rule shared is not used without the rule",
            flags.has(Flags::COOKIE_BY_RULE) && !shares,
            false
        );
        cloaked || cookie
    }
}

/// Returns the range that a stored part holds; `None` if the object is no part.
pub(crate) fn held(object: &Object) -> Option<ContentRange> {
    let digest = Digest::decode(&object.meta().rules)?;
    if !digest.flags.has(Flags::PARTIAL) {
        return None;
    }
    let range = ContentRange::parse(first(object.fields(), "Content-Range")?)?;
    let whole = range.span?.len() == object.body().len() as u64 && !object.is_large();
    whole.then_some(range)
}
