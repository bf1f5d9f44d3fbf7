//! Receives and judges one answer. The code uses no socket: the caller passes the bytes as they arrive.

use std::ops::RangeInclusive;

use crate::body::{BodyKey, Identity};
use crate::chunked::{Dechunk, Piece};

use super::answer::{self, Framing, Served};
use super::request_spec::RequestSpec;
use super::stats::Fault;
use super::wire::{self, Mode};

/// Properties of the correct answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expect {
    pub(crate) spec: RequestSpec,
    /// Versions that the answer may have.
    pub(crate) versions: RangeInclusive<u32>,
    /// True if all body bytes are compared.
    pub(crate) full: bool,
}

/// Summary of a complete, correct answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: u16,
    pub(crate) served: Served,
    pub(crate) version: u32,
    pub(crate) body: u64,
    pub(crate) close: bool,
}

/// Result of passing bytes to an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// More bytes are needed. This number of bytes was used; the rest must be passed again.
    More(usize),
    /// The answer is complete after this many bytes.
    Done(usize, Done),
    /// The answer is wrong. The connection cannot be used any more.
    Wrong(Fault, String),
}

/// Receives one answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    expect: Expect,
    state: State,
    status: u16,
    served: Served,
    version: u32,
    close: bool,
    key: Option<BodyKey>,
    /// Length that the complete body must have.
    size: u64,
    /// Number of body bytes so far.
    at: u64,
}

#[derive(Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Dechunk),
    UntilClose,
}

impl Exchange {
    pub(crate) fn new(expect: Expect) -> Self {
        Self {
            expect,
            state: State::Head,
            status: 0,
            served: Served::Unknown,
            version: 0,
            close: false,
            key: None,
            size: 0,
            at: 0,
        }
    }

    /// True if the complete head of the answer has arrived.
    pub(crate) const fn begun(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Number of body bytes that may be dropped without a check.
    pub(crate) const fn skippable(&self) -> u64 {
        match self.state {
            State::Length(left) if self.key.is_none() => left,
            _ => 0,
        }
    }

    /// Skips this number of body bytes, which is at most [`skippable`](Self::skippable). Returns the result
    /// if the body is then complete.
    pub(crate) fn skip(&mut self, bytes: u64) -> Option<Done> {
        let State::Length(left) = &mut self.state else {
            return None;
        };
        *left -= bytes;
        self.at += bytes;
        (*left == 0).then(|| self.done())
    }

    /// Processes received bytes.
    pub(crate) fn feed(&mut self, mode: &Mode, input: &[u8]) -> Fed {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match self.state {
                State::Head => self.head(mode, rest),
                State::Length(_) => self.length(rest),
                State::Chunked(_) => self.chunked(rest),
                State::UntilClose => self.data(rest).map(|()| (rest.len(), None)),
            };
            match step {
                Err((fault, text)) => return Fed::Wrong(fault, text),
                Ok((n, Some(done))) => return Fed::Done(used + n, done),
                Ok((n, None)) => {
                    used += n;
                    if n == 0 || used == input.len() {
                        return Fed::More(used);
                    }
                }
            }
        }
    }

    /// Handles the end of the connection.
    pub(crate) fn end(&self) -> Fed {
        if matches!(self.state, State::UntilClose) && self.at == self.size {
            Fed::Done(0, self.done())
        } else {
            Fed::Wrong(
                Fault::Cut,
                format!("connection closed after {} body bytes", self.at),
            )
        }
    }

    fn head(&mut self, mode: &Mode, input: &[u8]) -> Step {
        let parsed = answer::parse(input).map_err(|e| (Fault::Head, e.to_owned()))?;
        let Some(head) = parsed else {
            return Ok((0, None));
        };
        if (100..200).contains(&head.status) {
            return Ok((head.length, None));
        }
        self.status = head.status;
        self.served = head.served;
        self.close = head.close;
        if head.status != 200 {
            return Err((Fault::Status, format!("status {}", head.status)));
        }
        self.judge(mode, head.claim)?;
        self.state = match head.framing {
            Framing::Length(n) if n != self.size => {
                let text = format!("Content-Length {n}, body has {}", self.size);
                return Err((Fault::Length, text));
            }
            Framing::Length(0) => return Ok((head.length, Some(self.done()))),
            Framing::Length(n) => State::Length(n),
            Framing::Chunked => State::Chunked(Dechunk::default()),
            Framing::UntilClose => State::UntilClose,
        };
        Ok((head.length, None))
    }

    /// Compares the claimed identity of the answer with the request.
    fn judge(&mut self, mode: &Mode, claim: Option<answer::Claim<'_>>) -> Result<(), Wrong> {
        let Some(claim) = claim else {
            return Err((Fault::Identity, "no Bench-Object field".to_owned()));
        };
        let spec = &self.expect.spec;
        let mut host = Vec::with_capacity(16);
        wire::body_host(mode, spec.server, &mut host);
        if claim.host != host || claim.id != spec.id {
            return Err((
                Fault::Identity,
                format!("answer is for {} {}", claim.host.escape_ascii(), claim.id),
            ));
        }
        let newest = *self.expect.versions.end();
        if claim.version < *self.expect.versions.start() {
            let text = format!("version {}, superseded by {newest}", claim.version);
            return Err((Fault::Superseded, text));
        }
        if claim.version > newest || (claim.version == spec.version && claim.size != spec.size) {
            let text = format!(
                "version {} size {} was never made",
                claim.version, claim.size
            );
            return Err((Fault::Identity, text));
        }
        self.version = claim.version;
        self.size = claim.size;
        if self.expect.full {
            let identity = Identity {
                host: &host,
                id: spec.id,
                version: claim.version,
                size: claim.size,
            };
            self.key = Some(identity.key());
        }
        Ok(())
    }

    fn length(&mut self, input: &[u8]) -> Step {
        let State::Length(left) = self.state else {
            return Ok((0, None));
        };
        let n = left.min(input.len() as u64);
        self.data(&input[..n as usize])?;
        self.state = State::Length(left - n);
        Ok((n as usize, (left == n).then(|| self.done())))
    }

    fn chunked(&mut self, input: &[u8]) -> Step {
        let State::Chunked(decoder) = &mut self.state else {
            return Ok((0, None));
        };
        if input.is_empty() {
            return Ok((0, None));
        }
        match decoder
            .next(input)
            .map_err(|e| (Fault::Framing, e.to_owned()))?
        {
            Piece::Framing(n) => Ok((n, None)),
            Piece::Data(n) => self.data(&input[..n]).map(|()| (n, None)),
            Piece::End(n) if self.at == self.size => Ok((n, Some(self.done()))),
            Piece::End(_) => Err((
                Fault::Length,
                format!("{} body bytes of {}", self.at, self.size),
            )),
        }
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        if self.at + bytes.len() as u64 > self.size {
            return Err((Fault::Length, format!("more than {} body bytes", self.size)));
        }
        if let Some(key) = self.key {
            key.check(self.at, bytes).map_err(|at| {
                let claim = (self.version, self.size);
                (
                    Fault::Bytes,
                    format!("byte {at} is wrong (version {}, size {})", claim.0, claim.1),
                )
            })?;
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    const fn done(&self) -> Done {
        Done {
            status: self.status,
            served: self.served,
            version: self.version,
            body: self.at,
            close: self.close,
        }
    }
}

type Wrong = (Fault, String);
/// Number of used bytes, and the result if the answer is complete.
type Step = Result<(usize, Option<Done>), Wrong>;

#[cfg(test)]
mod tests;
