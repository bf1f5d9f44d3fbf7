//! The request in the form that the origin receives. The fields of this form select variants, by `Vary` or by
//! the key parts of the operator's rules. The client's own fields are not sufficient for this, because Foxy
//! removes or replaces some of them and adds other fields. Fields that Connection names never reach the
//! origin either.
//!
//! The fields that select variants are nearly always the same in the client's request and in the request for
//! the origin. Then the client's request is used directly, and no other request is built.

use std::borrow::Borrow;

use foxy_base::{FieldBlock, FieldBlockBuilder, Fields, FieldsIter, eq_name, rule};
use foxy_http_rules::vary;
use foxy_http1::{Method, RequestHead, Version, goes_on, write};

use crate::Role;
use crate::http::client_identity::ClientIdentity;
use crate::http::rewriting::Requested;
use crate::http::via::{self, Changes, Forwarding, Hop};
use crate::state::local::Local;

/// The changes for the usual request of a fill (a fetch that several requests can share): it requests the
/// complete object, with the cache's own conditions instead of the client's.
const FILL: Changes<'static> = Changes {
    drop_conditions: true,
    drop_range: true,
    as_get: true,
    add: &[],
};

/// A request in the form that the origin receives: with the fields that Foxy adds (see [`Hop`]), and without
/// the fields that Foxy removes.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a, F> {
    fields: F,
    version: Version,
    /// True if the Connection field may name other fields of the request, which are then removed.
    lists_names: bool,
    way: Way<'a>,
}

/// Source of the [`Hop`], which contains Foxy's changes to the request. For a client's request, the [`Hop`]
/// is made only when a Vary list must be compared, because most answers have no Vary list.
#[derive(Clone, Copy)]
enum Way<'a> {
    Client(&'a Local, &'a Role, &'a ClientIdentity),
    Made(&'a Hop<'a>),
}

impl<'a> Way<'a> {
    fn hop(&self) -> Hop<'a> {
        match *self {
            Self::Client(local, role, identity) => Hop::of(local, role, identity),
            Self::Made(hop) => *hop,
        }
    }

    /// Returns true if the site may change fields.
    fn changes(&self) -> bool {
        match self {
            Self::Client(_, role, _) => role.rewriting().is_some(),
            Self::Made(hop) => hop.changed.is_some(),
        }
    }
}

impl<'a, F: Borrow<RequestHead<'a>>> Sent<'a, F> {
    /// Wraps a client's request.
    pub(crate) fn of(
        head: F,
        local: &'a Local,
        role: &'a Role,
        identity: &'a ClientIdentity,
    ) -> Self {
        Self::by(head, Way::Client(local, role, identity))
    }

    fn by(head: F, way: Way<'a>) -> Self {
        Self {
            version: head.borrow().version(),
            lists_names: head.borrow().lists_names(),
            fields: head,
            way,
        }
    }
}

impl<'a, 'b> Sent<'a, &'b FieldBlock> {
    /// Wraps a request that no client has sent.
    pub(crate) fn imagined(fields: &'b FieldBlock, hop: &'a Hop<'a>) -> Self {
        Self {
            fields,
            version: Version::Http11,
            lists_names: true,
            way: Way::Made(hop),
        }
    }
}

impl<F: Requested> Sent<'_, F> {
    /// Returns true if the request selects the variant that is stored with `values` under the Vary list
    /// `list`.
    pub(crate) fn matches(&self, list: &[u8], values: &[u8]) -> bool {
        match self.written(list) {
            None => vary::matches(list, values, &self.fields),
            Some(sent) => vary::matches(list, values, &sent),
        }
    }

    /// Appends the values by which the request selects a variant under the Vary list `list`.
    pub(crate) fn selecting_values(&self, list: &[u8], out: &mut Vec<u8>) {
        match self.written(list) {
            None => vary::selecting_values(list, &self.fields, out),
            Some(sent) => vary::selecting_values(list, &sent, out),
        }
    }

    /// Returns true if a stored variant has the language that the request prefers, although the selecting
    /// values differ. Only the values of Accept-Language may differ.
    pub(crate) fn satisfied_by_language<S: Fields>(
        &self,
        list: &[u8],
        values: &[u8],
        stored: &S,
    ) -> bool {
        match self.written(list) {
            None => vary::satisfied_by_language(list, values, stored, &self.fields),
            Some(sent) => vary::satisfied_by_language(list, values, stored, &sent),
        }
    }

    /// Returns the fields for the origin. Returns `None` if the client's own fields have the same values for
    /// all names in `list`.
    fn written(&self, list: &[u8]) -> Option<FieldBlock> {
        if list == b"accept-encoding" && !self.lists_names && !self.way.changes() {
            return None;
        }
        let hop = self.way.hop();
        let changes = |name| {
            let touched = hop.changed.is_some_and(|changed| changed.touches(name));
            touched || via::is_own(name) || !self.passes(name, &hop.forwarding)
        };
        let differs = rule!(
            "variants: they are selected by what the origin gets",
            vary::field_names(list).any(changes),
            false
        );
        differs.then(|| self.write(&hop))
    }

    fn passes(&self, name: &[u8], forwarding: &Forwarding) -> bool {
        goes_on(&self.fields, self.lists_names, name) && via::passes(name, forwarding, &FILL)
    }

    /// Returns all fields for the origin except Host, which is part of the key.
    fn write(&self, hop: &Hop<'_>) -> FieldBlock {
        let mut text = Vec::new();
        for (name, value) in FieldsIter::new(&self.fields) {
            if self.passes(name, &hop.forwarding) && !eq_name(name, b"host") {
                write::field(&mut text, name, value);
            }
        }
        via::own_fields(&mut text, &self.fields, (Method::Get, self.version), hop);
        if let Some(changed) = &hop.changed {
            text = changed.lines(&text, hop.identity, self.fields.head());
        }
        let mut sent = FieldBlockBuilder::default();
        let lines = text.split_inclusive(|b| *b == b'\n');
        for line in lines.filter_map(|line| line.strip_suffix(b"\r\n")) {
            if let Some(colon) = line.iter().position(|b| *b == b':') {
                sent.push_any(&line[..colon], line[colon + 1..].trim_ascii());
            }
        }
        sent.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ForwardedMode, HeaderConfig};
    use foxy_http1::{FieldSlots, HeadScanner, Limits};

    const MODES: [ForwardedMode; 4] = [
        ForwardedMode::Append,
        ForwardedMode::Replace,
        ForwardedMode::Remove,
        ForwardedMode::Transparent,
    ];

    fn with<T>(fields: &str, look: impl FnOnce(RequestHead<'_>) -> T) -> T {
        let text = format!("GET http://a/ HTTP/1.1\nHost: a\n{fields}\n").replace('\n', "\r\n");
        let (mut slots, mut scanner) = (FieldSlots::new(), HeadScanner::new());
        let limits = Limits::default();
        let head = RequestHead::parse(text.as_bytes(), &mut scanner, &mut slots, &limits);
        look(head.unwrap().unwrap())
    }

    fn hop(config: &HeaderConfig, client: &str) -> Hop<'static> {
        Hop {
            instance: "me",
            forwarding: Forwarding::of(config, &Role::Forward, false),
            identity: Box::leak(Box::new(ClientIdentity::imagined(client.parse().unwrap()))),
            changed: None,
            surrogate: Some("foxy"),
        }
    }

    fn values(fields: &str, list: &str, mode: ForwardedMode) -> String {
        let config = HeaderConfig {
            x_forwarded_for: Some(mode),
            forwarded: Some(mode),
            ..HeaderConfig::default()
        };
        with(fields, |head| {
            let hop = hop(&config, "192.0.2.9");
            let sent = Sent::by(head, Way::Made(&hop));
            let mut out = Vec::new();
            sent.selecting_values(list.as_bytes(), &mut out);
            assert!(sent.matches(list.as_bytes(), &out));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn fields_that_do_not_reach_the_origin_select_nothing() {
        let append = ForwardedMode::Append;
        for (fields, list, wanted) in [
            ("HX-Request: true\n", "hx-request", "hx-request=true\n"),
            (
                "HX-Request: true\nConnection: close, hx-request\n",
                "hx-request",
                "hx-request\n",
            ),
            (
                "Cookie: a=b\nConnection: cookie\n",
                "cookie",
                "cookie=a=b\n",
            ),
            (
                "Cookie: a=b\nConnection: cookie\n",
                "cookie:a",
                "cookie:a=b\n",
            ),
            (
                "TE: trailers\nConnection: TE\nAccept: x\n",
                "accept,te",
                "accept=x\nte\n",
            ),
            (
                "Range: bytes=0-1\nIf-None-Match: *\n",
                "if-none-match,range",
                "if-none-match\nrange\n",
            ),
            (
                "Proxy-Authorization: Basic x\n",
                "proxy-authorization",
                "proxy-authorization\n",
            ),
            ("Expect: 100-continue\n", "expect", "expect\n"),
            ("Max-Forwards: 3\n", "max-forwards", "max-forwards=3\n"),
            ("Accept: x\n", "host", "host\n"),
            ("Via: 1.0 you\n", "via", "via=1.0 you,1.1 me\n"),
        ] {
            assert_eq!(values(fields, list, append), wanted, "{fields}");
        }
    }

    #[test]
    fn the_clients_address_counts_as_it_is_sent() {
        let fields = "X-Forwarded-For: 10.0.0.1\n";
        let wanted = ["=10.0.0.1,192.0.2.9", "=192.0.2.9", "", "=10.0.0.1"];
        for (mode, wanted) in MODES.into_iter().zip(wanted) {
            let got = values(fields, "x-forwarded-for", mode);
            assert_eq!(got, format!("x-forwarded-for{wanted}\n"), "{mode:?}");
        }
    }

    #[test]
    fn every_field_that_foxy_writes_is_known_to_be_its_own() {
        for mode in MODES {
            let config = HeaderConfig {
                x_forwarded_for: Some(mode),
                forwarded: Some(mode),
                ..HeaderConfig::default()
            };
            with(
                "Max-Forwards: 1\nForwarded: for=x\nX-Forwarded-For: y\n",
                |head| {
                    let mut own = Vec::new();
                    let (hop, to) = (hop(&config, "::1"), (Method::Get, Version::Http11));
                    via::own_fields(&mut own, &head, to, &hop);
                    for line in String::from_utf8(own).unwrap().lines() {
                        let name = line.split(':').next().unwrap();
                        assert!(via::is_own(name.to_ascii_lowercase().as_bytes()), "{line}");
                    }
                },
            );
        }
    }
}
