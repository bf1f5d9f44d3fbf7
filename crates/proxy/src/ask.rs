//! A request that outlives the connection's buffer: owned, cheap to share on its worker.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use foxy_base::{KeyHash, key_hash};
use foxy_http_rules::rules::BypassWhy;
use foxy_http_rules::{RequestDigest, RuleId, vary};
use foxy_http1::{FieldSlots, RequestHead, RequestParts, Url};

use crate::route::{self, destination};
use crate::upstream::Destination;
use crate::via::{self, Changes, Hop};
use crate::{Proxy, Role, key, local::Local};

/// An owned request head, and what follows from it.
#[derive(Debug)]
pub(crate) struct Ask {
    bytes: Bytes,
    slots: FieldSlots,
    parts: RequestParts,
    pub(crate) role: Rc<Role>,
    pub(crate) client: SocketAddr,
    pub(crate) digest: RequestDigest,
    pub(crate) to: Destination,
    /// The primary key.
    pub(crate) base: Bytes,
    pub(crate) base_hash: KeyHash,
    /// The rule of the operator that decides.
    pub(crate) rule: RuleId,
    /// Why that rule sends the request past the cache, if it does.
    pub(crate) bypass: Option<BypassWhy>,
}

/// Who asks, and under which rules.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) role: &'a Rc<Role>,
    pub(crate) client: SocketAddr,
    pub(crate) proxy: &'a Proxy,
}

impl<'a> Who<'a> {
    pub(crate) const fn new(role: &'a Rc<Role>, client: SocketAddr, proxy: &'a Proxy) -> Self {
        Self {
            role,
            client,
            proxy,
        }
    }
}

impl Ask {
    pub(crate) fn new(
        bytes: &[u8],
        slots: &FieldSlots,
        parts: RequestParts,
        url: &Url<'_>,
        who: &Who<'_>,
    ) -> Self {
        let (role, proxy) = (who.role, who.proxy);
        let rules = &proxy.config.user_rules;
        let bytes = Bytes::copy_from_slice(&bytes[..parts.len()]);
        let slots = slots.clone();
        let head = parts.head(&bytes, &slots);
        let mut base = Vec::with_capacity(parts.len());
        let rule = key::primary(rules, role.partition(), url, &mut base);
        let digest = RequestDigest::new(head.method_text(), &head).under(proxy.rules(rule));
        let bypass = rules.get(rule).and_then(|rule| rule.bypass.of(&head));
        Self {
            bytes,
            slots,
            parts,
            role: Rc::clone(role),
            client: who.client,
            digest,
            to: destination(role, url),
            base_hash: key_hash(&base),
            base: base.into(),
            rule,
            bypass,
        }
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        self.parts.head(&self.bytes, &self.slots)
    }

    /// Whether an answer with this Vary list was selected by values like those of this request.
    pub(crate) fn selected_by(&self, list: &[u8], values: &[u8]) -> bool {
        vary::matches(list, values, &self.head())
    }

    /// Whether the request carries something by which an origin knows its user.
    pub(crate) fn is_personal(&self) -> bool {
        self.digest.authorization || foxy_base::first(&self.head(), "Cookie").is_some()
    }

    /// Under which number it is remembered that answers for the key `hash` are not shared. Requests
    /// with and without credentials have numbers of their own, so that one signed-in visitor does
    /// not end the sharing among all others.
    pub(crate) fn crowd(&self, hash: KeyHash) -> KeyHash {
        match self.is_personal() {
            false => hash,
            true => key_hash(
                &[
                    &hash.low().to_le_bytes()[..],
                    &hash.high().to_le_bytes(),
                    b"p",
                ]
                .concat(),
            ),
        }
    }

    pub(crate) fn url(&self) -> Option<Url<'_>> {
        route::url_of(&self.head(), &self.role)
    }

    /// The head of the request for the origin.
    pub(crate) fn upstream_head(&self, local: &Local, changes: &Changes<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 128);
        let rules = &local.proxy.config.rules;
        let hop = Hop {
            config: &local.proxy.config.headers,
            instance: &local.proxy.instance,
            client: self.client.ip(),
            surrogate: rules.surrogate_control.then_some(&rules.surrogate_token),
        };
        if let Some(url) = self.url() {
            via::request(&mut out, &self.head(), &url, &hop, changes);
        }
        out
    }
}
