//! Framing and connection options of a head. They are collected in one pass over the fields of the head.

use crate::slots::Span;
use crate::{Limits, Method, Reject, Version};

/// The length that the fields declare. Method and status are not considered here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Length {
    #[default]
    Unsaid,
    Bytes(u64),
    Chunked,
}

/// A change of protocol that a request requires (RFC 9110 section 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// No upgrade, or an upgrade that does not count (in HTTP/1.0, or not named in Connection).
    #[default]
    None,
    /// An upgrade to `websocket` by GET with a key (RFC 6455 section 4.1).
    WebSocket,
    /// An upgrade to another protocol (`h2c` for instance). A proxy ignores such an upgrade, because requests
    /// in the tunnel would bypass the proxy's rules.
    Other,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) host: Option<Span>,
    pub(crate) length: Length,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    /// True if Connection names an option other than `close`, `keep-alive` and `upgrade`.
    pub(crate) lists_names: bool,
    pub(crate) te_trailers: bool,
    /// True if there is a Via field.
    pub(crate) via: bool,
    pub(crate) expect_continue: bool,
    expect_other: bool,
    upgrade_listed: bool,
    upgrade_offered: bool,
    websocket_offered: bool,
    websocket_key: bool,
    connection_options: u32,
    chunked: bool,
    has_length: bool,
    coded: bool,
}

impl Facts {
    /// Takes one field of a request into account. The length of the name is compared first.
    pub(crate) fn note_request(
        &mut self,
        whole: &[u8],
        (name, value): (&[u8], &[u8]),
        limits: &Limits,
    ) -> Result<(), Reject> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            2 if is(b"te") => self.te(value),
            3 if is(b"via") => self.via = true,
            4 if is(b"host") => self.host(Span::of(whole, value))?,
            6 if is(b"expect") => self.expect(value),
            7 if is(b"upgrade") => self.upgrade(value),
            17 if is(b"sec-websocket-key") => self.websocket_key = true,
            _ => self.note_response((name, value), limits)?,
        }
        Ok(())
    }

    /// Takes one field of a response into account. `note_request` handles more fields, which the codec does
    /// not need in a response.
    pub(crate) fn note_response(
        &mut self,
        (name, value): (&[u8], &[u8]),
        limits: &Limits,
    ) -> Result<(), Reject> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            10 if is(b"connection") => self.connection(value, limits),
            14 if is(b"content-length") => self.content_length(value),
            17 if is(b"transfer-encoding") => self.transfer_encoding(value),
            _ => Ok(()),
        }
    }

    /// Makes the checks for which all fields must be known.
    pub(crate) fn finish(&mut self, version: Version) -> Result<(), Reject> {
        // HTTP/1.0 has no expectations (RFC 9110 section 10.1.1).
        if self.expect_other && version == Version::Http11 {
            return Err(Reject::UNKNOWN_EXPECTATION);
        }
        if !self.coded {
            return Ok(());
        }
        if version == Version::Http10 {
            return Err(Reject::CODING_IN_HTTP10);
        }
        if self.has_length {
            return Err(Reject::LENGTH_AND_CODING);
        }
        self.length = Length::Chunked;
        Ok(())
    }

    pub(crate) fn upgrade_wanted(&self, method: Method, version: Version) -> Upgrade {
        if version == Version::Http10 || !self.upgrade_listed || !self.upgrade_offered {
            Upgrade::None
        } else if method == Method::Get && self.websocket_offered && self.websocket_key {
            Upgrade::WebSocket
        } else {
            Upgrade::Other
        }
    }

    fn host(&mut self, value: Span) -> Result<(), Reject> {
        match self.host.replace(value) {
            None => Ok(()),
            Some(_) => Err(Reject::REPEATED_HOST),
        }
    }

    fn te(&mut self, value: &[u8]) {
        self.te_trailers |= members(value).any(|m| m.eq_ignore_ascii_case(b"trailers"));
    }

    fn expect(&mut self, value: &[u8]) {
        if value.eq_ignore_ascii_case(b"100-continue") {
            self.expect_continue = true;
        } else {
            self.expect_other = true;
        }
    }

    fn upgrade(&mut self, value: &[u8]) {
        self.upgrade_offered |= !value.is_empty();
        self.websocket_offered |= members(value).any(|m| m.eq_ignore_ascii_case(b"websocket"));
    }

    fn connection(&mut self, value: &[u8], limits: &Limits) -> Result<(), Reject> {
        for option in members(value) {
            self.connection_options += 1;
            if self.connection_options as usize > limits.connection_options {
                return Err(Reject::TOO_MANY_CONNECTION_OPTIONS);
            }
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.upgrade_listed = true;
            } else if !option.is_empty() {
                self.lists_names = true;
            }
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Reject> {
        if value.contains(&b',') {
            return Err(Reject::LIST_CONTENT_LENGTH);
        }
        if std::mem::replace(&mut self.has_length, true) {
            return Err(Reject::REPEATED_CONTENT_LENGTH);
        }
        self.length = Length::Bytes(decimal(value).ok_or(Reject::BAD_CONTENT_LENGTH)?);
        Ok(())
    }

    /// Takes a Transfer-Encoding field into account. Only chunked is supported; RFC 9112 section
    /// 6.1 requires 501 for other codings.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Reject> {
        self.coded = true;
        for coding in members(value) {
            if coding.is_empty() || coding.contains(&b';') {
                return Err(Reject::BAD_TRANSFER_CODING);
            }
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            match (chunked, self.chunked) {
                (true, true) => return Err(Reject::REPEATED_CHUNKED),
                (false, true) => return Err(Reject::CHUNKED_NOT_LAST),
                (false, false) => return Err(Reject::UNKNOWN_TRANSFER_CODING),
                (true, false) => self.chunked = true,
            }
        }
        Ok(())
    }
}

/// The members of a comma-separated value, trimmed, including empty members.
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(trim_ows)
}

/// Removes spaces and tabs at both ends of `text`. No other byte counts as white space here.
pub(crate) fn trim_ows(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Reads a number that consists only of digits, up to 2^63 - 1.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut n = 0i64;
    for digit in text {
        if !digit.is_ascii_digit() {
            return None;
        }
        n = n.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    u64::try_from(n).ok()
}
