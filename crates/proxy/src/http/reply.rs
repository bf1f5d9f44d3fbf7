//! Heads of answers, written from reusable buffers.

use std::borrow::Cow;
use std::io::{self, IoSlice};

use foxy_http_rules::CacheStatus;
use foxy_http1::{RequestHead, Version, write};

use crate::access::refusal::Refusal;
use crate::http::errors;
use crate::http::net::{Io, Transport};
use crate::http::rewriting::{Facts, ResponseContext};
use crate::sites::local_responses::MAINTENANCE;
use crate::sites::objects::METHODS;
use crate::state::local::Local;

/// The buffers of one connection. They are reused from request to request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The cache key.
    pub(crate) key: Vec<u8>,
    /// Status line and fields.
    pub(crate) head: Vec<u8>,
    /// Fields that follow the stored fields, and the blank line.
    pub(crate) tail: Vec<u8>,
}

/// The way in which the body of an answer is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The answer has a Content-Length field.
    Length(u64),
    /// The answer is chunked.
    Chunked,
    /// The end of the connection ends the body.
    UntilClose,
    /// The answer has no body, and no field about a body.
    Bare,
}

impl Mode {
    /// Returns the mode for a body of this length (`None` if the length is unknown), and for a client of this
    /// version.
    pub(crate) fn of(length: Option<u64>, version: Version) -> Self {
        match (length, version) {
            (Some(n), _) => Self::Length(n),
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClose,
        }
    }
}

/// The fields that Foxy adds to an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnFields<'a> {
    pub(crate) mode: Mode,
    pub(crate) age: Option<u32>,
    pub(crate) cache: Option<&'a CacheStatus<'a>>,
    /// True if the connection stays open after the answer.
    pub(crate) keep: bool,
    /// True if the answer gets `Vary: Accept-Encoding`, because other requests may get it compressed.
    pub(crate) varies: bool,
    /// The request. `None` if it could not be read.
    pub(crate) head: Option<&'a RequestHead<'a>>,
    /// The client and its site. `None` means that nothing is rewritten.
    pub(crate) to: Option<ResponseContext<'a>>,
}

/// Appends Foxy's own fields and the blank line. Before the call, `out` contains the status line and the
/// other fields. At the end, the function applies the site's rules for fields to the complete head.
pub(crate) fn own_fields(out: &mut Vec<u8>, local: &Local, own: &OwnFields<'_>) {
    match own.mode {
        Mode::Length(n) => write::number_field(out, b"Content-Length", n),
        Mode::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Mode::UntilClose | Mode::Bare => {}
    }
    if let Some(age) = own.age {
        write::number_field(out, b"Age", u64::from(age));
    }
    if own.varies {
        out.extend_from_slice(b"Vary: Accept-Encoding\r\n");
    }
    out.extend_from_slice(&local.proxy.via_line);
    if let Some(cache) = own.cache
        && local.proxy.config.headers.cache_status
    {
        push_cache_status(out, &local.proxy.hit_line, cache);
    }
    let version = own.head.map_or(Version::Http11, |head| head.version());
    match (own.keep, version) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, Version::Http11) => {}
    }
    out.extend_from_slice(b"\r\n");
    if let Some(to) = own.to
        && let Some(rules) = to.rules()
    {
        rules.change_head(
            out,
            &Facts::of(local, to, own.head.copied(), own.cache.copied()),
        );
    }
}

const CACHE_STATUS: &[u8] = b"Cache-Status: ";
const TTL: &[u8] = b"; ttl=";

/// Returns the beginning of the Cache-Status line of a hit, up to the value of `ttl`. It is the same for all
/// hits.
pub(crate) fn hit_line(name: &str) -> Vec<u8> {
    let hit = CacheStatus {
        cache: name,
        hit: true,
        ..CacheStatus::default()
    };
    let mut line = CACHE_STATUS.to_vec();
    hit.write(&mut line);
    line.extend_from_slice(TTL);
    line
}

/// Appends the Cache-Status line. The line of a usual hit begins with the prepared text `hit_line`. The
/// parameter `detail` of this line is an outcome word, so it needs no quotes.
fn push_cache_status(out: &mut Vec<u8>, hit_line: &[u8], cache: &CacheStatus<'_>) {
    match *cache {
        CacheStatus {
            hit: true,
            ttl: Some(ttl @ 0..=0xffff_ffff),
            key: None,
            detail: Some(word),
            rule: None,
            ..
        } => {
            out.extend_from_slice(hit_line);
            out.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            out.extend_from_slice(b"; detail=");
            out.extend_from_slice(word.as_bytes());
        }
        _ => {
            out.extend_from_slice(CACHE_STATUS);
            cache.write(out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Sends an answer that Foxy makes itself. Returns the number of body bytes.
pub(crate) async fn send_page<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    page: (Refusal, ResponseContext<'_>),
    head: Option<&RequestHead<'_>>,
    keep: bool,
) -> io::Result<u64> {
    send_page_with(local, io, scratch, page, &Extra::default(), head, keep).await
}

/// Contents of a page, in addition to its reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra<'a> {
    /// Additional field lines.
    pub(crate) fields: &'a [u8],
    /// A text that the operator has written for people.
    pub(crate) text: &'a str,
    /// The name of the rule that decided.
    pub(crate) rule: Option<&'a str>,
}

/// Does the same as [`send_page`], with additional contents.
pub(crate) async fn send_page_with<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    (refusal, to): (Refusal, ResponseContext<'_>),
    extra: &Extra<'_>,
    head: Option<&RequestHead<'_>>,
    keep: bool,
) -> io::Result<u64> {
    let Refusal { status, reason } = refusal;
    let local_responses = to.role.local_responses();
    let own_page = local_responses.and_then(|responses| responses.page(status));
    let (content_type, body) = match own_page {
        _ if let Some((content_type, body)) = of_mirror(refusal, to, head) => {
            (content_type, Cow::Owned(body))
        }
        Some(page) => (page.content_type, Cow::Borrowed(&page.body[..])),
        None => (
            errors::CONTENT_TYPE,
            Cow::Owned(errors::body(status, reason, extra.text)),
        ),
    };
    let out = &mut scratch.head;
    out.clear();
    write::status_line(out, status);
    local.push_date(local.wall(), out);
    write::field(out, b"Content-Type", content_type.as_bytes());
    out.extend_from_slice(b"Cache-Control: no-store\r\n");
    out.extend_from_slice(extra.fields);
    if status == 405 {
        let allowed = match to.role.objects() {
            Some(_) => METHODS,
            None => "GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH",
        };
        write::field(out, b"Allow", allowed.as_bytes());
    }
    if status == 429 && extra.fields.is_empty() || refusal == crate::http::connection::MEMORY {
        out.extend_from_slice(b"Retry-After: 1\r\n");
    }
    if let Some(responses) = local_responses.filter(|_| refusal == MAINTENANCE) {
        write::number_field(out, b"Retry-After", responses.retry_after.as_secs());
    }
    let cache = CacheStatus {
        cache: &local.proxy.config.headers.name,
        detail: Some(reason),
        rule: extra.rule,
        ..CacheStatus::default()
    };
    let own = OwnFields {
        mode: Mode::Length(body.len() as u64),
        age: None,
        cache: Some(&cache),
        keep,
        head,
        varies: false,
        to: Some(to),
    };
    own_fields(out, local, &own);
    let no_body = head.is_some_and(|head| head.method() == foxy_http1::Method::Head);
    let body: &[u8] = if no_body { &[] } else { &body };
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    io.write_all(&mut slices, local.timeouts.progress).await?;
    Ok(body.len() as u64)
}

/// Returns the page for a refusal by a mirror's rules about versions of packages. The clients of the package
/// registry show a page of this form to their users.
fn of_mirror(
    refusal: Refusal,
    to: ResponseContext<'_>,
    head: Option<&RequestHead<'_>>,
) -> Option<(&'static str, Vec<u8>)> {
    let (part, head) = (to.role.mirrored()?, head?);
    let refused = part.refusal(head.target().path)?;
    (refused.reason() == refusal.reason).then(|| part.page(&refused))
}

/// Sends an answer without a page: the answer to `OPTIONS` for Foxy itself, or the echo of `TRACE`.
pub(crate) async fn send_plain<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    fields: &str,
    body: &[u8],
    (keep, head): (bool, &RequestHead<'_>),
) -> io::Result<u64> {
    let out = &mut scratch.head;
    out.clear();
    write::status_line(out, 200);
    local.push_date(local.wall(), out);
    out.extend_from_slice(fields.as_bytes());
    let own = OwnFields {
        mode: Mode::Length(body.len() as u64),
        age: None,
        cache: None,
        keep,
        head: Some(head),
        varies: false,
        to: None,
    };
    own_fields(out, local, &own);
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    io.write_all(&mut slices, local.timeouts.progress).await?;
    Ok(body.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn prepared_lines_say_what_the_rules_write() {
        let words = Outcome::ALL.iter().map(|outcome| Some(outcome.as_str()));
        let ttls = [Some(5), Some(-5), Some(0), Some(i64::MAX), None];
        let hits: Vec<_> = words
            .chain([None])
            .flat_map(|word| ttls.map(|ttl| (ttl, word)))
            .collect();
        for name in ["foxy", "my cache", ""] {
            for &(ttl, detail) in &hits {
                let cache = CacheStatus {
                    cache: name,
                    hit: true,
                    ttl,
                    detail,
                    rule: (ttl == Some(0)).then_some("r"),
                    ..CacheStatus::default()
                };
                let mut expected = CACHE_STATUS.to_vec();
                cache.write(&mut expected);
                expected.extend_from_slice(b"\r\n");
                let mut written = Vec::new();
                push_cache_status(&mut written, &hit_line(name), &cache);
                assert_eq!(written, expected, "{cache:?}");
            }
        }
    }
}
