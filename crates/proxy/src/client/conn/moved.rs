//! Redirects of a site: from http to https, and the redirects in its rewriting rules.

use foxy_http1::{Authority, RequestHead, Scheme};

use crate::access::refusal::Refusal;
use crate::sites::local_responses::ToHttps;

/// Returns status, reason and field lines that send a client to the same URL with https. Host, path and query
/// stay the same.
pub(super) fn to_https(head: &RequestHead<'_>, to: ToHttps) -> (Refusal, Vec<u8>) {
    let Some(url) = head.url(Scheme::Http) else {
        let refusal = Refusal {
            status: 400,
            reason: "missing-host",
        };
        return (refusal, Vec::new());
    };
    let mut fields = b"Location: https://".to_vec();
    let authority = Authority {
        port: Some(to.port),
        ..url.authority
    };
    authority.write_normalised(Scheme::Https, &mut fields);
    fields.extend_from_slice(if url.path.is_empty() { b"/" } else { url.path });
    fields.extend_from_slice(b"\r\n");
    let refusal = Refusal {
        status: to.status,
        reason: "https-only",
    };
    (refusal, fields)
}

/// Returns status, reason and field lines that send a client to another URL, as a rule of the site states.
pub(super) fn elsewhere(status: u16, url: &[u8]) -> (Refusal, Vec<u8>) {
    let refusal = Refusal {
        status,
        reason: "redirect",
    };
    let mut fields = Vec::new();
    foxy_http1::write::field(&mut fields, b"Location", url);
    (refusal, fields)
}
