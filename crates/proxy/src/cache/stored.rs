//! The input of the caching rules: the digest of a request and the digest of a stored object.

use foxy_base::{first, rule};
use foxy_http_rules::range::ContentRange;
use foxy_http_rules::{Config, Digest, Flags, RequestDigest, RuleId, old};
use foxy_http1::RequestHead;
use foxy_store::Object;

use crate::Proxy;
use crate::http::rewriting::Recipient;

/// Returns the request in the form that the caching rules use. A site may tell the origin the name in the
/// client's certificate. Then a request with a certificate counts as a request with credentials.
#[inline]
pub(crate) fn request_digest(
    to: &Recipient<'_>,
    head: &RequestHead<'_>,
    config: &Config,
) -> RequestDigest {
    let mut digest = RequestDigest::new(head.method_text(), head).under(config);
    if let Some(rewriting) = to.role.rewriting() {
        let known = to.client.arrival.certificate.is_some();
        digest.authorization |= known && rewriting.requests.names_user();
    }
    if let Some(part) = to.role.mirrored() {
        // The upstream receives no Cookie. It may receive the client's own credential. Answers to this
        // credential are stored under keys of this credential, so they need no further protection here.
        // Layers of images are stored once for all clients, but each client needs a proof for its credential.
        // The upstream is never asked for a part of a document.
        (digest.authorization, digest.cookie) = (false, false);
        if part.is_document() || part.image().is_some_and(|image| image.is_proof()) {
            (digest.range, digest.if_range, digest.precondition) = (false, false, false);
        }
    }
    if to.role.objects().is_some() {
        // No other server has the object, so there is no newer version to ask for.
        digest = RequestDigest {
            authorization: false,
            cookie: false,
            ..digest.under(&Config {
                obey_request: false,
                ..Config::default()
            })
        };
    }
    if to.client.login_is_spent() {
        // The client's login is for Foxy itself, and Foxy checks each request before the lookup. So an answer
        // to this request may be stored and sent to other users.
        digest.authorization = false;
    }
    digest
}

/// Returns the input of the caching rules for a stored object: its digest, with the mark of a soft purge.
/// Returns `None` if the digest is unreadable, or if an older Foxy has stored the object and it must not be
/// used any more.
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
    /// Returns the digest of an object that was found for a request. `rule` is the operator's rule that
    /// decides about the request. Returns `None` if the object must not be used.
    #[inline]
    pub(crate) fn admitted(&self, object: &Object, rule: RuleId) -> Option<Digest> {
        let digest = stored_digest(object)?;
        let doubtful = Flags::OLD_RULES.with(Flags::COOKIE_BY_RULE);
        if digest.flags.any(doubtful) && self.is_withdrawn(digest.flags, rule) {
            return None;
        }
        Some(digest)
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
    let digest = Digest::decode(&object.meta().rules)?;
    if !digest.flags.has(Flags::PARTIAL) {
        return None;
    }
    let range = ContentRange::parse(first(object.fields(), "Content-Range")?)?;
    let whole = range.span?.len() == object.body().len() as u64 && !object.is_large();
    whole.then_some(range)
}
