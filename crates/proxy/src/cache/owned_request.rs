//! A request that outlives the connection's buffer. It owns its bytes. The tasks of a worker share it as
//! `Rc<OwnedRequest>`.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{KeyHash, key_hash};
use foxy_http_rules::rules::BypassWhy;
use foxy_http_rules::{Failure, Fwd, RequestFacts, RuleId, stale_on_failure};
use foxy_http1::{BodyFraming, FieldSlots, Method, RequestHead, RequestParts, Upgrade, Url};
use foxy_store::Object;

use crate::Role;
use crate::access::parents::Parents;
use crate::cache::key;
use crate::cache::stored::{request_facts, stored_facts};
use crate::http::client_identity::ClientIdentity;
use crate::http::connection::Received;
use crate::http::destination::{Destination, destination};
use crate::http::rewriting::ResponseContext;
use crate::http::route::{self, escapes};
use crate::http::sent::Sent;
use crate::state::local::Local;

/// An owned request head, and the facts that follow from the head.
#[derive(Debug)]
pub(crate) struct OwnedRequest {
    bytes: Bytes,
    slots: FieldSlots,
    parts: RequestParts,
    pub(crate) role: Rc<Role>,
    pub(crate) client: ClientIdentity,
    pub(crate) facts: RequestFacts,
    pub(crate) to: Destination,
    /// Path and query of the client's URL. For a request that uses the cache, path and query have the same
    /// form as in the key.
    target: Bytes,
    /// Path and query sent to the origin, if the site rewrites them.
    rewritten: Option<Vec<u8>>,
    /// True if the answer may be stored under the key and may update the object that is stored there. This
    /// requires that `target` equals the path and query in the key. If the request bypasses the cache,
    /// `rewritten` must also be `None`.
    pub(crate) by_key: bool,
    /// The primary key.
    pub(crate) base: Bytes,
    pub(crate) base_hash: KeyHash,
    /// The operator's rule (`[[rule]]`) that applies to the request.
    pub(crate) rule: RuleId,
    /// Reason why a caching rule or an access rule makes the request bypass the cache. `None` if no such rule
    /// applies.
    pub(crate) bypass: Option<BypassWhy>,
}

/// The client of a request, the role of its listener (forward proxy or site), and its worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) role: &'a Rc<Role>,
    pub(crate) client: &'a ClientIdentity,
    pub(crate) local: &'a Local,
}

impl<'a> RequestContext<'a> {
    pub(crate) const fn new(
        role: &'a Rc<Role>,
        client: &'a ClientIdentity,
        local: &'a Local,
    ) -> Self {
        Self {
            role,
            client,
            local,
        }
    }
}

impl OwnedRequest {
    /// Returns true if missing parts of a stored object may be fetched for this request.
    pub(crate) fn may_fetch_parts(&self) -> bool {
        !self.facts.only_if_cached && self.role.objects().is_none()
    }

    pub(crate) fn new(
        bytes: &[u8],
        slots: &FieldSlots,
        parts: RequestParts,
        url: &Url<'_>,
        context: &RequestContext<'_>,
    ) -> Self {
        let (role, proxy) = (context.role, &context.local.proxy);
        let rules = &proxy.config.user_rules;
        let bytes = Bytes::copy_from_slice(&bytes[..parts.len()]);
        let slots = slots.clone();
        let head = parts.head(&bytes, &slots);
        let mut base = Vec::with_capacity(parts.len());
        let rule = key::primary(rules, role.partition(), url, &mut base);
        let facts = request_facts(
            &ResponseContext::new(role, context.client),
            &head,
            proxy.rules(rule),
        );
        // The conditions of a bypass are compared with the fields that the client sent, even if rules change
        // these fields on the way to the origin. This is safe: a client that causes a bypass by its fields
        // cannot harm the cache.
        let bypass = rules.get(rule).and_then(|rule| rule.bypass.of(&head));
        let by_access_rule = context
            .client
            .pass
            .as_ref()
            .is_some_and(|pass| pass.bypasses_cache());
        let bypass = bypass.or_else(|| by_access_rule.then_some(BypassWhy::Access));
        let base = Bytes::from(base);
        // A request that bypasses the cache keeps the client's query. For other requests, the operator's
        // rules may change the query.
        let cached = bypass.is_none() && bypass_reason(&parts).is_none();
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
        // If the path of a request that bypasses the cache is rewritten, fields of the answer refer to the
        // origin's URLs. Such an answer must not be stored under the key.
        let by_key = by_key && (cached || rewritten.is_none());
        Self {
            target,
            rewritten,
            by_key,
            bytes,
            slots,
            parts,
            role: Rc::clone(role),
            client: context.client.clone(),
            facts,
            to: Destination {
                reach: context.client.reach(),
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

    /// Returns true if this request selects the same variant as the request for which an answer was fetched.
    /// `list` is the Vary list of the answer. `values` are the values of the listed fields and cookies in the
    /// earlier request.
    pub(crate) fn selected_by(&self, local: &Local, list: &[u8], values: &[u8]) -> bool {
        self.sent(local).matches(list, values)
    }

    /// Returns true if the request carries a user's credentials (Cookie or Authorization).
    pub(crate) fn has_credentials(&self) -> bool {
        self.facts.authorization || self.facts.cookie
    }

    /// Returns the hash that stands for the key `hash` in the table `unshared` (keys whose answers cannot be
    /// shared). Requests with credentials and requests without credentials use different hashes, so one
    /// client that is logged in does not end the sharing among all other clients.
    pub(crate) fn crowd(&self, hash: KeyHash) -> KeyHash {
        if !self.has_credentials() {
            return hash;
        }
        let (low, high) = (hash.low().to_le_bytes(), hash.high().to_le_bytes());
        key_hash(&[&low[..], &high, b"personal"].concat())
    }

    /// Returns true if the answer is an index document of a mirror (package registry), which Foxy rewrites.
    pub(crate) fn is_document(&self) -> bool {
        self.role.is_document()
    }

    /// Returns true if Foxy requests only complete answers from the origin. This is necessary if the answer
    /// is rewritten or compared with a digest, because neither is possible with a part of the answer.
    pub(crate) fn comes_whole(&self) -> bool {
        self.role.mirrored().is_some_and(|part| part.comes_whole())
    }

    /// Returns true if the stale object `stored` may be sent although the origin failed with `failure`.
    pub(crate) fn may_have_stale(
        &self,
        local: &Local,
        stored: Option<&Arc<Object>>,
        failure: Failure,
    ) -> bool {
        let facts = stored.and_then(|object| stored_facts(object));
        facts.is_some_and(|stored| {
            let config = local.proxy.rules(self.rule);
            stale_on_failure(&self.facts, &stored, local.wall(), failure, config).is_some()
        })
    }

    /// Returns true if this status means that the registry behind a mirror no longer accepts the client's
    /// credential, either for all URLs or for this URL. Everything that was fetched with the credential must
    /// then be forgotten.
    pub(crate) fn is_refused(&self, status: u16) -> bool {
        let own = self.role.mirrored().is_some_and(|part| part.is_own());
        own && matches!(status, 401 | 403 | 404 | 410)
    }

    /// Returns the request as its origin receives it.
    pub(crate) fn sent<'a>(&'a self, local: &'a Local) -> Sent<'a, RequestHead<'a>> {
        Sent::of(self.head(), local, &self.role, &self.client)
    }

    /// Returns the parents (other proxies) through which the request is sent.
    pub(crate) fn parents(&self) -> Option<&Parents> {
        self.client.pass.as_ref()?.parents.as_deref()
    }

    /// Returns path and query of the client's URL, or `*`.
    pub(crate) fn target(&self) -> &[u8] {
        &self.target
    }

    pub(crate) fn url(&self) -> Option<Url<'_>> {
        route::url_of(&self.head(), &self.role)
    }

    /// Returns the length in bytes of the head that the client sent.
    pub(crate) const fn head_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns path and query of the request for the origin.
    pub(crate) fn target_at_origin(&self) -> &[u8] {
        self.rewritten.as_deref().unwrap_or(&self.target)
    }
}

impl Received<'_> {
    /// Returns an owned copy of the request.
    pub(crate) fn ask(
        &self,
        parts: RequestParts,
        url: &Url<'_>,
        context: &RequestContext<'_>,
    ) -> OwnedRequest {
        let (bytes, slots) = self.parts();
        OwnedRequest::new(bytes, slots, parts, url, context)
    }
}

/// Returns the reason why a request bypasses the cache because of its method, its body or a WebSocket
/// upgrade. Returns `None` if there is no such reason.
pub(crate) fn bypass_reason(parts: &RequestParts) -> Option<Fwd> {
    match parts.method() {
        Method::Get | Method::Head => {}
        _ => return Some(Fwd::Method),
    }
    let plain = matches!(parts.framing(), BodyFraming::None | BodyFraming::Length(0))
        && parts.upgrade() != Upgrade::WebSocket;
    (!plain).then_some(Fwd::Bypass)
}
