//! A request that outlives the connection's buffer: owned, cheap to share on its worker.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{KeyHash, key_hash};
use foxy_http_rules::rules::BypassWhy;
use foxy_http_rules::{Failure, Fwd, RequestDigest, RuleId, stale_on_failure};
use foxy_http1::{BodyFraming, FieldSlots, Method, RequestHead, RequestParts, Upgrade, Url};
use foxy_store::Object;

use crate::Role;
use crate::access::parents::Parents;
use crate::cache::key;
use crate::cache::stored::{request_digest, stored_digest};
use crate::http::asker::Asker;
use crate::http::connection::Received;
use crate::http::destination::{Destination, destination};
use crate::http::rewriting::Recipient;
use crate::http::route::{self, escapes};
use crate::http::sent::Sent;
use crate::state::local::Local;

/// An owned request head, and what follows from it.
#[derive(Debug)]
pub(crate) struct Ask {
    bytes: Bytes,
    slots: FieldSlots,
    parts: RequestParts,
    pub(crate) role: Rc<Role>,
    pub(crate) client: Asker,
    pub(crate) digest: RequestDigest,
    pub(crate) to: Destination,
    /// Path and query of the client's URL, as the rules of the operator have them.
    target: Bytes,
    /// Path and query sent to the origin, if the site rewrites them.
    rewritten: Option<Vec<u8>>,
    /// The answer may be stored under the key and may update what is stored there: the target equals the
    /// one in the key, and a request past the cache is not rewritten.
    pub(crate) by_key: bool,
    /// The primary key.
    pub(crate) base: Bytes,
    pub(crate) base_hash: KeyHash,
    /// The rule of the operator that decides.
    pub(crate) rule: RuleId,
    /// Why that rule sends the request past the cache, if it does.
    pub(crate) bypass: Option<BypassWhy>,
}

/// Client, listener role and worker of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) role: &'a Rc<Role>,
    pub(crate) client: &'a Asker,
    pub(crate) local: &'a Local,
}

impl<'a> Who<'a> {
    pub(crate) const fn new(role: &'a Rc<Role>, client: &'a Asker, local: &'a Local) -> Self {
        Self {
            role,
            client,
            local,
        }
    }
}

impl Ask {
    /// True if parts of a stored object that are missing may be fetched for this request.
    pub(crate) fn may_fetch_parts(&self) -> bool {
        !self.digest.only_if_cached && self.role.objects().is_none()
    }

    pub(crate) fn new(
        bytes: &[u8],
        slots: &FieldSlots,
        parts: RequestParts,
        url: &Url<'_>,
        who: &Who<'_>,
    ) -> Self {
        let (role, proxy) = (who.role, &who.local.proxy);
        let rules = &proxy.config.user_rules;
        let bytes = Bytes::copy_from_slice(&bytes[..parts.len()]);
        let slots = slots.clone();
        let head = parts.head(&bytes, &slots);
        let mut base = Vec::with_capacity(parts.len());
        let rule = key::primary(rules, role.partition(), url, &mut base);
        let digest = request_digest(&Recipient::new(role, who.client), &head, proxy.rules(rule));
        // Judged by the fields that the client sent: a bypassing request cannot harm the cache.
        let bypass = rules.get(rule).and_then(|rule| rule.bypass.of(&head));
        let past = who.client.pass.as_ref().is_some_and(|pass| pass.is_past());
        let bypass = bypass.or_else(|| past.then_some(BypassWhy::Access));
        let base = Bytes::from(base);
        // A request past the cache keeps the client's query.
        let cached = bypass.is_none() && past_the_cache(&parts).is_none();
        let of_key = key::target_at(role.partition(), &base).map(|at| base.slice(at..));
        let rewrite = |target: &[u8]| match role.rewriting() {
            Some(rewriting) if target.starts_with(b"/") => rewriting.paths.map(target),
            _ => None,
        };
        let (target, by_key): (Bytes, _) = match of_key {
            Some(of_key) if cached => (of_key, true),
            of_key => {
                let mut target = Vec::new();
                let escapes = escapes(rules, role.partition());
                head.target()
                    .write_origin_form(head.method(), escapes, &mut target);
                let by_key = of_key.is_some_and(|of_key| of_key == target);
                (target.into(), by_key)
            }
        };
        let own = role.mirrored().and_then(|part| part.target());
        let rewritten = own.map_or_else(|| rewrite(&target), |own| Some(own.to_vec()));
        // Past the cache, fields of the answer speak of the origin's URLs.
        let by_key = by_key && (cached || rewritten.is_none());
        Self {
            target,
            rewritten,
            by_key,
            bytes,
            slots,
            parts,
            role: Rc::clone(role),
            client: who.client.clone(),
            digest,
            to: Destination {
                reach: who.client.reach(),
                ..destination(role, url, &proxy.config.upstream.tls)
            },
            base_hash: proxy.engine.keys().hash(&base),
            base,
            rule,
            bypass,
        }
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        self.parts.head(&self.bytes, &self.slots)
    }

    /// True if an answer with this Vary list was selected by values like those of this request.
    pub(crate) fn selected_by(&self, local: &Local, list: &[u8], values: &[u8]) -> bool {
        self.sent(local).matches(list, values)
    }

    /// True if the request carries a user's credentials (Cookie or Authorization).
    pub(crate) fn is_personal(&self) -> bool {
        self.digest.authorization || self.digest.cookie
    }

    /// Hash under which the `unshared` mark for the key `hash` is kept. Requests with and without
    /// credentials use different hashes: one signed-in visitor does not end the sharing among all
    /// others.
    pub(crate) fn crowd(&self, hash: KeyHash) -> KeyHash {
        if !self.is_personal() {
            return hash;
        }
        let (low, high) = (hash.low().to_le_bytes(), hash.high().to_le_bytes());
        key_hash(&[&low[..], &high, b"personal"].concat())
    }

    /// True if its answer is a document that is rewritten.
    pub(crate) fn is_document(&self) -> bool {
        self.role.is_document()
    }

    /// True if the upstream is asked only for the whole: parts can be neither rewritten nor compared with
    /// a digest.
    pub(crate) fn comes_whole(&self) -> bool {
        self.role.mirrored().is_some_and(|part| part.comes_whole())
    }

    /// True if `stored` may be sent, stale, in place of this failure of the origin.
    pub(crate) fn may_have_stale(
        &self,
        local: &Local,
        stored: Option<&Arc<Object>>,
        failure: Failure,
    ) -> bool {
        let digest = stored.and_then(|object| stored_digest(object));
        digest.is_some_and(|stored| {
            let config = local.proxy.rules(self.rule);
            stale_on_failure(&self.digest, &stored, local.wall(), failure, config).is_some()
        })
    }

    /// True if the registry no longer accepts the client's credential, at all or for this URL: what the
    /// credential has brought before must be forgotten.
    pub(crate) fn is_refused(&self, status: u16) -> bool {
        let own = self.role.mirrored().is_some_and(|part| part.is_own());
        own && matches!(status, 401 | 403 | 404 | 410)
    }

    /// The request as its origin gets it.
    pub(crate) fn sent<'a>(&'a self, local: &'a Local) -> Sent<'a, RequestHead<'a>> {
        Sent::of(self.head(), local, &self.role, &self.client)
    }

    /// The parents that it is sent through.
    pub(crate) fn parents(&self) -> Option<&Parents> {
        self.client.pass.as_ref()?.parents.as_deref()
    }

    /// Path and query of the client's URL, or `*`.
    pub(crate) fn target(&self) -> &[u8] {
        &self.target
    }

    pub(crate) fn url(&self) -> Option<Url<'_>> {
        route::url_of(&self.head(), &self.role)
    }

    /// Length of the head that the client sent.
    pub(crate) const fn head_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Path and query of the request for the origin.
    pub(crate) fn target_at_origin(&self) -> &[u8] {
        self.rewritten.as_deref().unwrap_or(&self.target)
    }
}

impl Received<'_> {
    /// An owned copy of the request.
    pub(crate) fn ask(&self, parts: RequestParts, url: &Url<'_>, who: &Who<'_>) -> Ask {
        let (bytes, slots) = self.parts();
        Ask::new(bytes, slots, parts, url, who)
    }
}

/// Requests that the cache has nothing to do with.
pub(crate) fn past_the_cache(parts: &RequestParts) -> Option<Fwd> {
    match parts.method() {
        Method::Get | Method::Head => {}
        _ => return Some(Fwd::Method),
    }
    let plain = matches!(parts.framing(), BodyFraming::None | BodyFraming::Length(0))
        && parts.upgrade() != Upgrade::WebSocket;
    (!plain).then_some(Fwd::Bypass)
}
