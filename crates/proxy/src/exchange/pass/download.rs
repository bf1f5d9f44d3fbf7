//! Passes the answer from the origin to the client.

use foxy_base::{FieldBlock, FieldBlockBuilder, eq_name, first};
use foxy_http_rules::CacheStatus;
use foxy_http_rules::rules::BypassWhy;
use foxy_http1::{
    BodyFraming, BodyReader, Method, ResponseHead, ResponseParts, Upgrade, Version, write,
};

use super::save::{Saving, freshen};
use super::unanswered::Unanswered;
use super::upload::Upload;
use super::{PassError, Way, invalidate};
use crate::Outcome;
use crate::access::parents::WANTS_LOGIN;
use crate::cache::owned_request::OwnedRequest;
use crate::http::connection::{last_chunk, write_piece};
use crate::http::net::{Io, Transport};
use crate::http::reply::{Mode, OwnFields, Scratch, own_fields};
use crate::http::rewriting::ResponseContext;
use crate::origin::UpstreamError;
use crate::origin::exchange::Upstream;
use crate::state::finish::Finish;
use crate::state::local::Local;

/// The state needed to pass an answer on.
pub(super) struct Download<'a, T> {
    pub(super) local: &'a Local,
    pub(super) io: &'a Io<T>,
    pub(super) req: &'a OwnedRequest,
    pub(super) way: Way<'a>,
    pub(super) unanswered: &'a Unanswered<'a>,
    pub(super) keep: bool,
    pub(super) upload: &'a Upload,
    pub(super) scratch: &'a mut Scratch,
}

/// The result of passing an answer on.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) finish: Finish,
    pub(super) then: Then,
}

/// The state of both connections after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The connection to the origin can be used again.
    Reuse,
    /// The connection to the origin ends.
    Close,
    /// The answer was 101: both connections use another protocol from now on.
    Upgraded,
    /// Bytes of the answer are missing: the client's connection has to be aborted.
    Abort,
}

impl<T: Transport> Download<'_, T> {
    /// Passes the interim answers and the final answer on to the client. `first` is a head that is already in
    /// the buffer.
    pub(super) async fn receive(
        &mut self,
        up: &mut Upstream,
        first: Option<ResponseParts>,
    ) -> Result<Answered, PassError> {
        let mut parts = match first {
            Some(parts) => parts,
            None => self.next_head(up).await?,
        };
        while parts.is_interim() {
            self.interim(up, parts).await?;
            up.buf.consume(parts.len());
            parts = self.next_head(up).await?;
        }
        let method = self.req.head().method();
        let framing = parts.framing(method);
        if framing == BodyFraming::Tunnel && self.req.head().upgrade() != Upgrade::WebSocket {
            return Err(PassError::Origin(UpstreamError::BadResponse(
                "unexpected-upgrade",
            )));
        }
        let head = parts.head(up.buf.filled(), &up.slots);
        if head.status() == 407 && self.req.parents().is_some() {
            // The parent proxy requests a login from Foxy, not from the client.
            return Err(PassError::Origin(UpstreamError::BadResponse(WANTS_LOGIN)));
        }
        if self.way.spares(self.local, self.req, head.status()) {
            return Err(PassError::Status(head.status()));
        }
        let is_head = method == Method::Head;
        if self.req.is_document() && !is_head && head.status() == 200 {
            // A mirror's document in a passed answer would reach the client without being rewritten.
            return Err(PassError::Origin(UpstreamError::BadResponse(
                "document-past-the-cache",
            )));
        }
        invalidate(self.local, self.req, &head);
        self.unanswered.answered();
        let saving = if self.req.bypass.is_none() && !self.req.is_document() {
            freshen(self.local, self.req, &head, self.way.sent).await;
            let length = framing.length();
            Saving::start(self.local, self.req, up, &head, length, self.way.sent)
        } else {
            None
        };
        let mode = self.mode(parts, framing);
        // If the answer comes before the end of the request, nobody will read the rest of the request. So the
        // connection must end.
        self.keep &= mode != Mode::UntilClose && self.upload.is_done();
        let fields = self.write_head(&head, mode, framing);
        up.buf.consume(parts.len());
        let finish = Finish {
            outcome: Outcome::Bypass,
            reason: match self.req.bypass {
                Some(why) => why.as_str(),
                None => self.way.reason.as_str(),
            },
            status: parts.status(),
            origin_status: parts.status(),
            origin: Some(up.peer),
            fields,
            keep: self.keep,
            ..Finish::default()
        };
        if framing == BodyFraming::Tunnel {
            self.flush(parts.status()).await?;
            return Ok(Answered {
                finish,
                then: Then::Upgraded,
            });
        }
        let passed = (parts, framing, mode);
        self.body(up, passed, finish, saving).await
    }

    async fn next_head(&self, up: &mut Upstream) -> Result<ResponseParts, PassError> {
        loop {
            match up.next_head(self.local).await {
                // Silence of the origin is no failure while the request is still being sent.
                Err(UpstreamError::FirstByteTimeout)
                    if self.upload.excuses(self.local, up.timeouts.first_byte) =>
                {
                    up.wait_on();
                }
                other => {
                    let noted = other.inspect_err(|error| self.local.origin_failed(*error));
                    return noted.map_err(PassError::Origin);
                }
            }
        }
    }

    async fn interim(&mut self, up: &Upstream, parts: ResponseParts) -> Result<(), PassError> {
        if self.req.head().version() == Version::Http11 {
            let head = parts.head(up.buf.filled(), &up.slots);
            let text = crate::fill::fetch::interim_text(&head);
            // No other answer may begin while only a part of the interim head is written.
            self.upload.answering(true);
            let sent = self.io.write(&text, self.local.timeouts.progress).await;
            sent.map_err(|_| PassError::Client(0))?;
            self.upload.answering(false);
        }
        if parts.status() == 100 {
            self.upload.release();
        }
        Ok(())
    }

    fn mode(&self, parts: ResponseParts, framing: BodyFraming) -> Mode {
        let bare = matches!(parts.status(), 204 | 304) || framing == BodyFraming::Tunnel;
        if bare || self.req.head().method() == Method::Head {
            return Mode::Bare;
        }
        Mode::of(framing.length(), self.req.head().version())
    }

    /// Writes the head for the client into the scratch buffer.
    fn write_head(
        &mut self,
        head: &ResponseHead<'_>,
        mode: Mode,
        framing: BodyFraming,
    ) -> Option<FieldBlock> {
        let out = &mut self.scratch.head;
        out.clear();
        write::status_line_with(out, head.status(), reason(head));
        let mut kept = FieldBlockBuilder::default();
        for (name, value) in head.forward_fields() {
            // If the answer has no body (HEAD, 304), the origin's Content-Length is passed on unchanged.
            let length = eq_name(name, b"content-length");
            if !length || mode == Mode::Bare && !self.req.is_document() {
                write::field(out, name, value);
            }
            if eq_name(name, b"content-type") {
                let _ = kept.push(name, value);
            }
        }
        if first(head, "Date").is_none() {
            self.local.push_date(self.local.wall(), out);
        }
        if framing == BodyFraming::Tunnel {
            out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
        }
        let cache = CacheStatus {
            cache: &self.local.proxy.config.headers.name,
            fwd: Some(self.way.reason),
            fwd_status: Some(head.status()),
            detail: self.req.bypass.map(BypassWhy::as_str),
            rule: self.local.proxy.rule_name(self.req.rule),
            ..CacheStatus::default()
        };
        let to = ResponseContext::new(&self.req.role, &self.req.client);
        let own = OwnFields {
            mode,
            age: None,
            cache: Some(&cache),
            keep: self.keep || framing == BodyFraming::Tunnel,
            head: Some(&self.req.head()),
            to: Some(to),
            varies: to.varies(head),
        };
        own_fields(out, self.local, &own);
        Some(kept.finish())
    }

    async fn flush(&mut self, status: u16) -> Result<(), PassError> {
        self.upload.answering(true);
        let sent = self
            .io
            .write(&self.scratch.head, self.local.timeouts.progress)
            .await;
        self.scratch.head.clear();
        sent.map_err(|_| PassError::Client(status))
    }

    async fn body(
        &mut self,
        up: &mut Upstream,
        (parts, framing, mode): (ResponseParts, BodyFraming, Mode),
        mut finish: Finish,
        mut saving: Option<Saving<'_>>,
    ) -> Result<Answered, PassError> {
        let status = parts.status();
        let mut reader = BodyReader::new(framing, &self.local.limits);
        loop {
            // The head is sent together with the first bytes of the body if these bytes are already in the
            // buffer. Otherwise the head is sent immediately.
            if !reader.is_done() && up.buf.is_empty() && !self.scratch.head.is_empty() {
                self.flush(status).await?;
            }
            let piece = up.next_piece(&mut reader, up.timeouts.progress).await;
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    self.local.origin_failed(error);
                    let sent = self.flush(status).await;
                    return sent.map(|()| truncated(finish, error));
                }
            };
            let data = &up.buf.filled()[piece.range];
            if piece.end {
                if mode == Mode::Chunked {
                    let last = last_chunk(self.local, data);
                    self.scratch.head.extend_from_slice(&last);
                }
                up.buf.consume(piece.consumed);
                if let Some(saving) = saving {
                    saving.finish();
                }
                self.flush(status).await?;
                let method = self.req.head().method();
                let reusable = parts.persistent(method) && reader.is_done();
                return Ok(Answered {
                    finish,
                    then: match reusable {
                        true => Then::Reuse,
                        false => Then::Close,
                    },
                });
            }
            finish.body += data.len() as u64;
            if let Some(saving) = &mut saving {
                saving.push(data);
            }
            self.upload.answering(true);
            let (before, is_chunk) = (&self.scratch.head, mode == Mode::Chunked);
            let timeout = self.local.timeouts.progress;
            let sent = write_piece(self.io, before, data, is_chunk, timeout).await;
            sent.map_err(|_| PassError::Client(status))?;
            self.scratch.head.clear();
            up.buf.consume(piece.consumed);
        }
    }
}

/// Ends a truncated answer. The client's connection has to be aborted, so that the client notices.
fn truncated(finish: Finish, error: UpstreamError) -> Answered {
    Answered {
        finish: Finish {
            outcome: error.outcome(),
            reason: error.reason(),
            keep: false,
            ..finish
        },
        then: Then::Abort,
    }
}

/// Returns the origin's reason phrase, or the registered phrase if the origin sent none.
fn reason<'b>(head: &ResponseHead<'b>) -> &'b [u8] {
    match head.reason() {
        b"" => write::reason_phrase(head.status()).as_bytes(),
        phrase => phrase,
    }
}
