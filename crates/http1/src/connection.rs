//! Fields that concern only one connection, and fields that are forwarded (RFC 9110 section 7.6.1).
//!
//! Two rules decide which fields are dropped. Fields that are hop-by-hop by definition are always dropped.
//! Fields that the sender names in Connection are also dropped, but protected fields are not. Protected
//! fields are fields that every recipient needs, and RFC 9110 forbids senders to name them in Connection. If
//! protected fields were dropped, an attacker could remove a cookie, a length, a validator or the client's
//! address before the request reaches the origin.

use foxy_base::{Fields, FieldsIter, eq_name};

use crate::facts::members;
use crate::slots::FieldView;

/// Names of fields that are never forwarded, even if Connection does not name them. `Proxy-Authorization` and
/// `Proxy-Authenticate` concern only the client and this proxy. `HTTP2-Settings` belongs to an h2c upgrade,
/// which is not forwarded.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Names of fields that are forwarded although Connection names them.
const PROTECTED: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "cdn-cache-control",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-security-policy",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    "referer",
    "retry-after",
    "set-cookie",
    "strict-transport-security",
    "surrogate-control",
    "trailer",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// True if fields of this name are never forwarded.
#[must_use]
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    // These are the lengths of the names in `HOP_BY_HOP`. Most fields can be excluded by their length.
    matches!(name.len(), 2 | 7 | 10 | 14 | 16..=19 | 25) && one_of(name, HOP_BY_HOP)
}

fn one_of(name: &[u8], list: &[&str]) -> bool {
    list.iter().any(|known| eq_name(name, known.as_bytes()))
}

/// The fields of a head that are forwarded, in order.
#[derive(Clone, Copy, Debug)]
pub struct ForwardFields<'b> {
    fields: FieldView<'b>,
    next: usize,
    check_listed: bool,
    drop_host: bool,
    drop_expect: bool,
    drop_length: bool,
}

/// Returns the fields that are forwarded. If `lists_names` is false, Connection is not searched. So a caller
/// may pass false only if Connection names no field. Transfer-Encoding is never forwarded: code that forwards
/// the body in chunks writes a new field.
#[must_use]
pub fn forward_fields(fields: FieldView<'_>, lists_names: bool) -> ForwardFields<'_> {
    ForwardFields {
        fields,
        next: 0,
        check_listed: lists_names,
        drop_host: false,
        drop_expect: false,
        drop_length: false,
    }
}

impl ForwardFields<'_> {
    /// Also drops Host.
    #[must_use]
    pub const fn without_host(mut self) -> Self {
        self.drop_host = true;
        self
    }

    /// Also drops Expect. This is for HTTP/1.0 requests, in which Expect has no effect (RFC 9110 section
    /// 10.1.1). These requests are forwarded as HTTP/1.1 requests, in which the origin would obey Expect.
    #[must_use]
    pub const fn without_expect(mut self) -> Self {
        self.drop_expect = true;
        self
    }

    /// Also drops Content-Length. This is for messages that are forwarded with another framing, and for
    /// responses that must not have this field.
    #[must_use]
    pub const fn without_length(mut self) -> Self {
        self.drop_length = true;
        self
    }

    fn goes_on(&self, name: &[u8]) -> bool {
        goes_on(&self.fields, self.check_listed, name)
            && !(self.drop_host && eq_name(name, b"host")
                || self.drop_expect && eq_name(name, b"expect")
                || self.drop_length && eq_name(name, b"content-length"))
    }
}

/// True if fields of this name are forwarded. For `lists_names` see [`forward_fields`].
#[must_use]
pub fn goes_on<F: Fields>(fields: &F, lists_names: bool, name: &[u8]) -> bool {
    !(is_hop_by_hop(name) || lists_names && is_listed(fields, name) && !one_of(name, PROTECTED))
}

fn is_listed<F: Fields>(fields: &F, name: &[u8]) -> bool {
    FieldsIter::new(fields)
        .filter(|(field, _)| eq_name(field, b"connection"))
        .flat_map(|(_, value)| members(value))
        .any(|option| eq_name(option, name))
}

impl<'b> Iterator for ForwardFields<'b> {
    type Item = (&'b [u8], &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.fields.count() {
            let span = self.fields.spans[self.next];
            self.next += 1;
            let name = span.name.get(self.fields.bytes);
            if self.goes_on(name) {
                return Some((name, span.value.get(self.fields.bytes)));
            }
        }
        None
    }
}
