//! Heads of answers, written from reusable buffers.

use std::io::{self, IoSlice};

use foxy_http_rules::CacheStatus;
use foxy_http1::{RequestHead, Version, write};

use crate::errors;
use crate::local::Local;
use crate::net::{Io, Transport};
use crate::route::Refusal;

/// Buffers of one connection, reused from request to request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The cache key.
    pub(crate) key: Vec<u8>,
    /// Status line and fields.
    pub(crate) head: Vec<u8>,
    /// Fields that follow stored ones, and the blank line.
    pub(crate) tail: Vec<u8>,
}

/// How the body of an answer is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Content-Length.
    Length(u64),
    /// Chunked.
    Chunked,
    /// The end of the connection.
    UntilClose,
    /// No body, and nothing said about one.
    Bare,
}

impl Mode {
    /// For a body of this length, or unknown, to a client of this version.
    pub(crate) fn of(length: Option<u64>, version: Version) -> Self {
        match (length, version) {
            (Some(n), _) => Self::Length(n),
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClose,
        }
    }
}

/// What Foxy adds to an answer's fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub(crate) mode: Mode,
    pub(crate) age: Option<u32>,
    pub(crate) cache: Option<CacheStatus<'a>>,
    /// The connection lasts.
    pub(crate) keep: bool,
    /// The client's version.
    pub(crate) version: Version,
}

/// Appends Foxy's own fields and the blank line.
pub(crate) fn own_fields(out: &mut Vec<u8>, local: &Local, own: &Own<'_>) {
    match own.mode {
        Mode::Length(n) => write::number_field(out, b"Content-Length", n),
        Mode::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Mode::UntilClose | Mode::Bare => {}
    }
    if let Some(age) = own.age {
        write::number_field(out, b"Age", u64::from(age));
    }
    out.extend_from_slice(&local.proxy.via_line);
    if let Some(cache) = &own.cache
        && local.proxy.config.headers.cache_status
    {
        out.extend_from_slice(b"Cache-Status: ");
        cache.write(out);
        out.extend_from_slice(b"\r\n");
    }
    match (own.keep, own.version) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, Version::Http11) => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Sends an answer that Foxy makes itself; the number of body bytes.
pub(crate) async fn send_page<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    refusal: Refusal,
    head: Option<&RequestHead<'_>>,
    keep: bool,
) -> io::Result<u64> {
    let Refusal { status, reason } = refusal;
    let body = errors::body(status, reason);
    let out = &mut scratch.head;
    out.clear();
    write::status_line(out, status);
    local.push_date(local.wall(), out);
    out.extend_from_slice(b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n");
    if status == 405 {
        out.extend_from_slice(b"Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH\r\n");
    }
    let cache = CacheStatus {
        cache: &local.proxy.config.headers.name,
        detail: Some(reason),
        ..CacheStatus::default()
    };
    let own = Own {
        mode: Mode::Length(body.len() as u64),
        age: None,
        cache: Some(cache),
        keep,
        version: head.map_or(Version::Http11, |head| head.version()),
    };
    own_fields(out, local, &own);
    let no_body = head.is_some_and(|head| head.method() == foxy_http1::Method::Head);
    let body: &[u8] = if no_body { &[] } else { &body };
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    io.write_all(&mut slices, local.patience.progress).await?;
    Ok(body.len() as u64)
}

/// Sends an answer without page: `OPTIONS` that ends here, and the echo of `TRACE`.
pub(crate) async fn send_plain<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    fields: &str,
    body: &[u8],
    own: (bool, Version),
) -> io::Result<u64> {
    let out = &mut scratch.head;
    out.clear();
    write::status_line(out, 200);
    local.push_date(local.wall(), out);
    out.extend_from_slice(fields.as_bytes());
    let own = Own {
        mode: Mode::Length(body.len() as u64),
        age: None,
        cache: None,
        keep: own.0,
        version: own.1,
    };
    own_fields(out, local, &own);
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    io.write_all(&mut slices, local.patience.progress).await?;
    Ok(body.len() as u64)
}
