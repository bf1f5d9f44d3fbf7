//! The input of the caching rules: the facts about a request and the facts about a stored object.

use foxy_base::{first, rule};
use foxy_http_rules::range::ContentRange;
use foxy_http_rules::{CachingFacts, Config, Flags, RequestFacts, RuleId, old};
use foxy_http1::RequestHead;
use foxy_store::Object;

use crate::Proxy;
use crate::http::rewriting::ResponseContext;

/// Returns the request in the form that the caching rules use. If a site sends the name in the client's
/// certificate to the origin, a request with a certificate counts as a request with credentials.
#[inline]
pub(crate) fn request_facts(
    to: &ResponseContext<'_>,
    head: &RequestHead<'_>,
    config: &Config,
) -> RequestFacts {
    let mut facts = RequestFacts::new(head.method_text(), head).under(config);
    if let Some(rewriting) = to.role.rewriting() {
        let known = to.client.arrival.certificate.is_some();
        facts.authorization |= known && rewriting.requests.contains_certificate();
    }
    if let Some(part) = to.role.mirrored() {
        // The request is for a mirror. The registry behind it receives no Cookie. It may receive the client's
        // own credential. Answers to requests with this credential are stored under keys that belong to the
        // credential, so they need no further protection here. Layers of container images are stored once for
        // all clients. But each client needs a proof from the registry that its credential permits the layer.
        // Documents and proofs are always requested completely, so a range in the client's request does not
        // count. A precondition of the client does not count either.
        (facts.authorization, facts.cookie) = (false, false);
        if part.is_document() || part.image().is_some_and(|image| image.is_proof()) {
            (facts.range, facts.if_range, facts.precondition) = (false, false, false);
        }
    }
    if to.role.objects().is_some() {
        // Clients store the objects of a build cache in Foxy itself. No origin has them, so there is no newer
        // version to request.
        facts = RequestFacts {
            authorization: false,
            cookie: false,
            ..facts.under(&Config {
                obey_request: false,
                ..Config::default()
            })
        };
    }
    if to.client.login_is_spent() {
        // The client's login is for Foxy itself, and Foxy checks each request before the lookup. So an answer
        // to this request may be stored and sent to other users.
        facts.authorization = false;
    }
    facts
}

/// Returns the input of the caching rules for a stored object: its caching facts, with a flag if a soft purge
/// has made it stale. Returns `None` if the facts are unreadable. Also returns `None` if an older version of
/// Foxy stored the object, and the present rules would not store it.
#[inline]
pub(crate) fn stored_facts(object: &Object) -> Option<CachingFacts> {
    let mut facts = CachingFacts::decode(&object.meta().rules)?;
    if !old::admits(&mut facts, object.fields()) {
        return None;
    }
    if rule!(
        "purge: a soft one makes stale",
        object.is_soft_purged(),
        false
    ) {
        facts.flags = facts.flags.with(Flags::SOFT_PURGED);
    }
    Some(facts)
}

impl Proxy {
    /// Returns the caching facts of an object that was found for a request. `rule` is the operator's rule
    /// that decides about the request. Returns `None` if the object must not be used.
    #[inline]
    pub(crate) fn admitted(&self, object: &Object, rule: RuleId) -> Option<CachingFacts> {
        let facts = stored_facts(object)?;
        let doubtful = Flags::OLD_RULES.with(Flags::COOKIE_BY_RULE);
        if facts.flags.any(doubtful) && self.is_withdrawn(facts.flags, rule) {
            return None;
        }
        Some(facts)
    }

    /// Returns true if an answer like this object would not be stored under the present rules.
    #[cold]
    fn is_withdrawn(&self, flags: Flags, rule: RuleId) -> bool {
        // An older version of Foxy did not decode the names of query parameters before it compared them with
        // a rule. So the origin may have received parameters that differ from those in the key.
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

/// Returns the range of a stored part. Returns `None` if the object is not a part.
pub(crate) fn held(object: &Object) -> Option<ContentRange> {
    let facts = CachingFacts::decode(&object.meta().rules)?;
    if !facts.flags.has(Flags::PARTIAL) {
        return None;
    }
    let range = ContentRange::parse(first(object.fields(), "Content-Range")?)?;
    let whole = range.span?.len() == object.body().len() as u64 && !object.is_large();
    whole.then_some(range)
}
