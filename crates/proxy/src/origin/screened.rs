//! Requests index documents of mirrors, and screens them: removes the versions that the mirror's rules hide.
//! Each document is read to its end before a client gets its head. There are two reasons. The freshness and
//! the ETag in the head depend on the versions that are hidden. And a document may name a version first and
//! state its date only later.
//!
//! The ETag of a screened document consists of the upstream's ETag, a time, and the mark that all rewritten
//! documents have. The time states when the next hidden version is old enough to be shown. Until then, Foxy
//! validates the screened document with the upstream's ETag. After that, Foxy requests the complete document
//! again.

use std::io::Write;

use flate2::write::MultiGzDecoder;
use foxy_base::{Fields as _, eq_name, tokens};
use foxy_http1::{BodyReader, Method, ResponseParts, write};
use foxy_mirror::{Body, Screened};
use tokio::sync::OwnedSemaphorePermit;

use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::mirrors::Mirrored;
use crate::mirrors::images::heads::fields;
use crate::origin::exchange::{Leased, Upstream};
use crate::origin::{UpstreamError, parents};
use crate::state::ledger::{Entry, Use};
use crate::state::local::Local;

/// Longest document in bytes, after decoding.
const BYTES_MAX: usize = 64 << 20;
/// Length in bytes above which a document is long. A long document waits for one of [`LONG_AT_ONCE`] permits.
const LONG_BYTES: usize = 4 << 20;
/// Largest number of long documents that are in memory at the same time, over all workers.
pub(crate) const LONG_AT_ONCE: usize = 2;
/// Longest document, in bytes, that is screened on the thread of the worker.
const SHORT_BYTES: usize = 256 << 10;
/// Number of encoded bytes that are decoded in one step. The number is small, because the decoded text can be
/// a thousand times as long.
const DECODE_AT_ONCE: usize = 1 << 10;
/// Number of bytes of a screened document that are returned in one piece.
const PIECE: usize = 32 << 10;

const CODING: UpstreamError = UpstreamError::BadResponse("document-coding");
const TOO_LONG: UpstreamError = UpstreamError::BadResponse("document-too-long");
const NO_MEMORY: UpstreamError = UpstreamError::BadResponse("document-without-memory");
const NOT_WHOLE: UpstreamError = UpstreamError::BadResponse("document-not-whole");
const NOT_ASKED: UpstreamError = UpstreamError::BadResponse("unexpected-not-modified");

/// Fields of the upstream's answer that describe the document before it was screened, or the connection. They
/// are removed.
const REPLACED: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "etag",
    "keep-alive",
    "last-modified",
    "trailer",
    "transfer-encoding",
];

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

/// A screened document in memory, until it is read as the body of the answer. A long document also has one of
/// the [`LONG_AT_ONCE`] permits.
#[derive(Debug)]
pub(crate) struct Held {
    body: Body,
    _permit: Option<OwnedSemaphorePermit>,
    _memory: Entry,
}

impl Held {
    /// Returns the next bytes. Returns no bytes at the end.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut piece = Vec::with_capacity(PIECE);
        self.body.next(PIECE, &mut piece);
        piece
    }
}

/// The facts about a stored document that its ETag contains.
struct Known {
    /// The ETag of the stored document, but without the mark of rewritten documents. The caller has removed
    /// this mark (`foxy_mirror::of_origin`).
    etag: Vec<u8>,
    origin: Vec<u8>,
    matures: Option<i64>,
}

/// Returns the ETag of a screened document, without the mark of rewritten documents. `origin` is the
/// upstream's ETag. `matures` is the time, in seconds since 1970, at which the next hidden version is old
/// enough.
fn marked(origin: &[u8], matures: Option<i64>) -> Option<Vec<u8>> {
    let inner = origin.strip_suffix(b"\"")?;
    let time = matures.map_or(String::new(), |time| time.to_string());
    inner
        .contains(&b'"')
        .then(|| [inner, b"~", time.as_bytes(), b"\""].concat())
}

impl Known {
    /// Parses an ETag that [`marked`] has written.
    fn read(etag: &[u8]) -> Option<Self> {
        let inner = etag.strip_suffix(b"\"")?;
        let at = inner.iter().rposition(|b| *b == b'~')?;
        let time = std::str::from_utf8(&inner[at + 1..]).ok()?;
        let matures = match time {
            "" => None,
            time => Some(time.parse().ok()?),
        };
        Some(Self {
            etag: etag.to_vec(),
            origin: [&inner[..at], b"\""].concat(),
            matures,
        })
    }

    /// Returns the seconds until the next hidden version is old enough. The lifetime of the document must not
    /// be longer.
    fn fresh(&self, now: i64) -> Option<u32> {
        self.matures.map(|time| seconds_until(time, now))
    }
}

/// Returns the seconds until a time, or 0 if the time has passed.
fn seconds_until(time: i64, now: i64) -> u32 {
    u32::try_from(time.saturating_sub(now).max(0)).unwrap_or(u32::MAX)
}

/// Requests a document and screens it. Returns the head for the cache. The body waits in the connection.
pub(crate) async fn ask(
    local: &Local,
    req: &OwnedRequest,
    part: &Mirrored,
    request: &[u8],
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let known = fields(request)
        .find(|(name, _)| eq_name(name, b"if-none-match"))
        .and_then(|(_, etag)| Known::read(etag))
        .filter(|known| known.matures.is_none_or(|time| time > now(local)));
    let text = with_condition(request, known.as_ref());
    let asked = match req.parents() {
        Some(_) => parents::ask(local, req, &text, true).await?,
        None => Leased::ask_one(local, &req.to, &text, true).await?,
    };
    let (mut leased, parts) = asked;
    let parts = leased.up.final_head(local, parts, |_| {}).await?;
    let is_head = req.head().method() == Method::Head;
    let status = parts.status();
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    let mut own = (0..head.count()).map(|i| head.field(i)).collect::<Vec<_>>();
    match status {
        200 if !is_head => {
            let fields: Lines = own
                .iter()
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect();
            let read = whole(local, &mut leased.up, parts).await?;
            screened(local, req, part, &mut leased.up, (fields, read)).await
        }
        304 => {
            let known = known.ok_or(NOT_ASKED)?;
            own.retain(|(name, _)| !is_replaced(name) && !eq_name(name, b"content-type"));
            own.push((b"ETag", &known.etag));
            let fresh = known.fresh(now(local));
            let text = head_of(
                local,
                part,
                (status, fresh),
                &own,
                parts.persistent(Method::Get),
            );
            leased.up.replace_head(local, parts, &text)
        }
        200 => {
            // This is the answer to HEAD. Without the document, Foxy does not know the head of the screened
            // document. This answer does not prolong the lifetime of the stored document, because the answer
            // does not state when the next hidden version is old enough.
            own.retain(|(name, _)| !is_replaced(name) && !eq_name(name, b"content-type"));
            let answer = part.answer((status, Some(0)), None, own.iter().copied());
            leased.up.answered_by(local, parts, &answer)
        }
        // Every 2xx status other than 200 is refused. Such an answer may be a part of the document, or a copy
        // that a server between the upstream and Foxy has changed. Clients would use it as the complete
        // document.
        201..=299 => Err(NOT_WHOLE),
        _ => {
            let answer = part.answer((status, None), None, own.iter().copied());
            leased.up.answered_by(local, parts, &answer)
        }
    }
    .map(|parts| (leased, parts))
}

fn now(local: &Local) -> i64 {
    local.wall().0.div_euclid(1000)
}

fn is_replaced(name: &[u8]) -> bool {
    REPLACED.iter().any(|own| eq_name(name, own.as_bytes()))
}

/// Returns the request without its conditions. If `known` is given, adds a condition with the upstream's own
/// ETag.
fn with_condition(request: &[u8], known: Option<&Known>) -> Vec<u8> {
    let end = request.windows(2).position(|part| part == b"\r\n");
    let mut out = request[..end.map_or(request.len(), |end| end + 2)].to_vec();
    for (name, value) in fields(request) {
        if !eq_name(name, b"if-none-match") && !eq_name(name, b"if-modified-since") {
            write::field(&mut out, name, value);
        }
    }
    if let Some(known) = known {
        write::field(&mut out, b"If-None-Match", &known.origin);
    }
    write::end(&mut out);
    out
}

/// Returns a head for the cache.
fn head_of(
    local: &Local,
    part: &Mirrored,
    (status, fresh): (u16, Option<u32>),
    fields: &[(&[u8], &[u8])],
    persistent: bool,
) -> Vec<u8> {
    let answer = part.answer((status, fresh), None, fields.iter().copied());
    if answer.unlisted.is_some() {
        local.count(Event::MirrorLeft);
    }
    let mut text = Vec::new();
    write::status_line(&mut text, answer.status);
    text.extend_from_slice(&answer.lines);
    if !persistent {
        text.extend_from_slice(b"Connection: close\r\n");
    }
    write::end(&mut text);
    text
}

/// The upstream's document after decoding, before it is screened.
struct Read {
    text: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
    memory: Entry,
    persistent: bool,
}

/// Reads the body of an answer to its end. After that, the head is no longer in the buffer.
async fn whole(
    local: &Local,
    up: &mut Upstream,
    parts: ResponseParts,
) -> Result<Read, UpstreamError> {
    let head = parts.head(up.buf.filled(), &up.slots);
    let mut coded = false;
    for coding in tokens(&head, "Content-Encoding") {
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        match is(b"gzip") || is(b"x-gzip") {
            true if !coded => coded = true,
            _ if is(b"identity") => {}
            _ => return Err(CODING),
        }
    }
    let mut reader = BodyReader::new(parts.framing(Method::Get), &local.limits);
    up.buf.consume(parts.len());
    let mut decoder = coded.then(|| MultiGzDecoder::new(Vec::new()));
    let mut read = Read {
        text: Vec::new(),
        permit: None,
        memory: local.proxy.ledger.empty(Use::Buffers),
        persistent: parts.persistent(Method::Get),
    };
    loop {
        let piece = up.next_piece(&mut reader, up.timeouts.progress).await?;
        if piece.end {
            up.buf.consume(piece.consumed);
            break;
        }
        let bytes = &up.buf.filled()[piece.range];
        match &mut decoder {
            None => read.take(bytes)?,
            Some(decoder) => {
                for part in bytes.chunks(DECODE_AT_ONCE) {
                    decoder.write_all(part).map_err(|_| CODING)?;
                    read.take(&std::mem::take(decoder.get_mut()))?;
                }
            }
        }
        up.buf.consume(piece.consumed);
        if read.permit.is_none() && read.text.len() > LONG_BYTES {
            let permits = local.proxy.long_documents.clone();
            read.permit = permits.acquire_owned().await.ok();
        }
    }
    if let Some(mut decoder) = decoder {
        decoder.try_finish().map_err(|_| CODING)?;
        read.take(&std::mem::take(decoder.get_mut()))?;
    }
    // The result of the screening replaces this body. Bytes that are left in the buffer would be read as a
    // part of the result. So they are discarded, and the connection is not used again.
    read.persistent &= reader.is_done() && up.buf.is_empty();
    up.buf.clear();
    Ok(read)
}

impl Read {
    fn take(&mut self, bytes: &[u8]) -> Result<(), UpstreamError> {
        if self.text.len() + bytes.len() > BYTES_MAX {
            return Err(TOO_LONG);
        }
        let room = self.text.capacity() - self.text.len();
        if bytes.len() > room {
            let more = self.text.len().max(bytes.len()).max(PIECE);
            let more = more.min(BYTES_MAX - self.text.len());
            self.text.reserve_exact(more);
            let grown = self.text.capacity().saturating_sub(self.memory.bytes());
            if !self.memory.grow(grown) {
                return Err(NO_MEMORY);
            }
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }
}

/// Screens a document. Then replaces the upstream's answer by the result and its head.
async fn screened(
    local: &Local,
    req: &OwnedRequest,
    part: &Mirrored,
    up: &mut Upstream,
    (mut fields, read): (Lines, Read),
) -> Result<ResponseParts, UpstreamError> {
    let named = |name: &str| {
        let found = fields.iter().find(|(own, _)| eq_name(own, name.as_bytes()));
        found.map(|(_, value)| value.clone())
    };
    let (content_type, etag) = (named("Content-Type").unwrap_or_default(), named("ETag"));
    let result = judged(local, req, part, read.text, content_type).await?;
    let matures = result.matures;
    let etag = match etag.and_then(|etag| marked(&etag, matures)) {
        Some(etag) => etag,
        // The upstream sent no usable ETag, so an ETag is made from the hash of the document. `Known::read`
        // rejects this ETag, so it is never sent to the upstream as a condition.
        None => format!("\"~{:016x}.{}\"", result.body.hash(), matures.unwrap_or(0)).into_bytes(),
    };
    local.counters().add(Event::MirrorHidden, result.hidden);
    fields.retain(|(name, _)| !is_replaced(name));
    if let Some(content_type) = result.content_type {
        fields.retain(|(name, _)| !eq_name(name, b"content-type"));
        fields.push((b"Content-Type".to_vec(), content_type.as_bytes().to_vec()));
    }
    fields.push((b"ETag".to_vec(), etag));
    let length = result.body.left().to_string();
    fields.push((b"Content-Length".to_vec(), length.into_bytes()));
    let fields: Vec<(&[u8], &[u8])> = fields.iter().map(|(n, v)| (&n[..], &v[..])).collect();
    let fresh = matures.map(|time| seconds_until(time, now(local)));
    let text = head_of(local, part, (200, fresh), &fields, read.persistent);
    let (mut memory, mut permit) = (read.memory, read.permit);
    memory.set(result.body.bytes());
    if result.body.bytes() <= LONG_BYTES {
        permit = None;
    }
    let held = Held {
        body: result.body,
        _permit: permit,
        _memory: memory,
    };
    up.put(local, &text, held)
}

/// Screens the text of a document. If it is longer than [`SHORT_BYTES`], this is done on another thread.
async fn judged(
    local: &Local,
    req: &OwnedRequest,
    part: &Mirrored,
    text: Vec<u8>,
    content_type: Vec<u8>,
) -> Result<Screened, UpstreamError> {
    let (mirror, class, form) = part.screening();
    let target = req.target();
    let end = target.iter().position(|b| *b == b'?');
    let path = target[..end.unwrap_or(target.len())].to_vec();
    let (now, is_short) = (now(local), text.len() <= SHORT_BYTES);
    let work = move || {
        let rules = mirror.screens(class)?;
        Some(rules.screen(text, &content_type, form, &path, now))
    };
    let done = match is_short {
        true => work(),
        false => tokio::task::spawn_blocking(work).await.ok().flatten(),
    };
    done.ok_or(UpstreamError::GivenUp)?
        .map_err(|error| UpstreamError::BadResponse(error.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_say_when_the_next_version_is_old_enough() {
        for (origin, matures) in [
            ("\"abc\"", Some(1_795_608_000)),
            ("\"abc\"", None),
            ("W/\"a~b\"", Some(1)),
            ("\"\"", None),
        ] {
            let etag = marked(origin.as_bytes(), matures).unwrap();
            let known = Known::read(&etag).unwrap();
            assert_eq!(
                (&known.origin[..], known.matures),
                (origin.as_bytes(), matures)
            );
        }
        assert_eq!(marked(b"abc", None), None);
        for foreign in ["\"abc\"", "\"~00ff.12\"", "\"a~x\"", "a~1"] {
            assert!(Known::read(foreign.as_bytes()).is_none(), "{foreign}");
        }
    }

    #[test]
    fn only_the_validator_of_the_upstream_is_sent() {
        let request = b"GET /a HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x~5\"\r\nIf-Modified-Since: y\r\nAccept: z\r\n\r\n";
        let known = Known::read(b"\"x~5\"");
        let sent = with_condition(request, known.as_ref());
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            "GET /a HTTP/1.1\r\nHost: a\r\nAccept: z\r\nIf-None-Match: \"x\"\r\n\r\n"
        );
        let sent = with_condition(request, None);
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            "GET /a HTTP/1.1\r\nHost: a\r\nAccept: z\r\n\r\n"
        );
    }
}
