//! Host and port of a URL: check and normal form (RFC 3986 section 3.2, RFC 9110 section 4.2).
//!
//! This module makes two promises. If two authorities are equivalent under a scheme by RFC 9110 section
//! 4.2.3, they have the same normal form. If URL parsers of other programs could find another host in a text,
//! the text is refused. Such a text contains userinfo, percent escapes, IPv6 zones, IPvFuture addresses, or
//! bytes other than letters, digits, `-`, `.`, `_`. A dot at the end of a name is kept, because HTTP
//! distinguishes names with and without this dot (DNS does not).

use std::io::Write as _;
use std::net::Ipv6Addr;

use crate::{Reject, Scheme};

/// Length of the longest name that DNS permits, including a dot at the end (RFC 1035 section
/// 2.3.4).
const NAME_MAX: usize = 254;

/// The host of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'b> {
    /// A name or IPv4 address, in the spelling in which it was received.
    Name(&'b [u8]),
    /// An IPv6 address.
    V6(Ipv6Addr),
}

/// A host and, if given, a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'b> {
    /// The host.
    pub host: Host<'b>,
    /// The port as written, 1 to 65535; `None` if no port is written.
    pub port: Option<u16>,
}

impl<'b> Authority<'b> {
    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`. An empty port counts as no port.
    ///
    /// # Errors
    /// If there is userinfo, if the host is empty or malformed, or if the port is out of range.
    pub fn parse(text: &'b [u8]) -> Result<Self, Reject> {
        // No valid host or port contains `@`. So `@` is searched for only after parsing has failed.
        Self::parse_parts(text).map_err(|reject| {
            if text.contains(&b'@') {
                Reject::USERINFO
            } else {
                reject
            }
        })
    }

    fn parse_parts(text: &'b [u8]) -> Result<Self, Reject> {
        let (host, port) = if let Some(rest) = text.strip_prefix(b"[") {
            let close = rest
                .iter()
                .position(|b| *b == b']')
                .ok_or(Reject::BAD_HOST)?;
            (Host::V6(v6(&rest[..close])?), &rest[close + 1..])
        } else {
            let (name, rest) = text.split_at(name_length(text)?);
            (Host::Name(name), rest)
        };
        let port = match port {
            b"" | b":" => None,
            [b':', digits @ ..] => Some(port_number(digits)?),
            _ => return Err(Reject::BAD_HOST),
        };
        Ok(Self { host, port })
    }

    /// The port to connect to: the written port, or the default port of `scheme`.
    #[must_use]
    pub fn port_or_default(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or(scheme.default_port())
    }

    /// Appends only the host: names in lower case, IPv6 without brackets in the form of RFC 5952.
    /// Resolvers and address parsers accept this form.
    pub fn write_host(&self, out: &mut Vec<u8>) {
        match self.host {
            Host::Name(name) => {
                let from = out.len();
                out.extend_from_slice(name);
                out[from..].make_ascii_lowercase();
            }
            Host::V6(address) => {
                // Writing into a Vec cannot fail.
                let _ = write!(out, "{address}");
            }
        }
    }

    /// Appends the normal form under `scheme`: lower case, IPv6 in brackets, and no port if it is
    /// the scheme's default port.
    pub fn write_normalised(&self, scheme: Scheme, out: &mut Vec<u8>) {
        self.write_bracketed(out);
        if let Some(port) = self.port.filter(|p| *p != scheme.default_port()) {
            push_port(port, out);
        }
    }

    /// Appends host and port. The port is always written, as in a CONNECT target.
    pub fn write_with_port(&self, scheme: Scheme, out: &mut Vec<u8>) {
        self.write_bracketed(out);
        push_port(self.port_or_default(scheme), out);
    }

    fn write_bracketed(&self, out: &mut Vec<u8>) {
        let bracketed = matches!(self.host, Host::V6(_));
        if bracketed {
            out.push(b'[');
        }
        self.write_host(out);
        if bracketed {
            out.push(b']');
        }
    }
}

fn push_port(port: u16, out: &mut Vec<u8>) {
    out.push(b':');
    out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
}

/// The length of the name at the start of `text`. The name ends at a colon or at the end of `text`. A dot at
/// the end of the name is permitted, and stands for the root of DNS. A dot at the start, or after another
/// dot, is an error.
fn name_length(text: &[u8]) -> Result<usize, Reject> {
    let (mut end, mut after_dot, mut empty_label) = (0, true, false);
    while let Some(byte) = text.get(end).filter(|b| NAME[usize::from(**b)]) {
        let dot = *byte == b'.';
        empty_label |= dot & after_dot;
        after_dot = dot;
        end += 1;
    }
    match text.get(end) {
        None | Some(b':') if end == 0 => Err(Reject::EMPTY_HOST),
        None | Some(b':') if end <= NAME_MAX && !empty_label => Ok(end),
        _ => Err(Reject::BAD_HOST),
    }
}

/// The bytes that names may contain: letters, digits, `-`, `.`, `_`.
static NAME: [bool; 256] = name_table();

const fn name_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (i as u8).is_ascii_alphanumeric() || matches!(i as u8, b'-' | b'.' | b'_');
        i += 1;
    }
    table
}

fn v6(text: &[u8]) -> Result<Ipv6Addr, Reject> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(Reject::BAD_HOST)
}

fn port_number(digits: &[u8]) -> Result<u16, Reject> {
    let mut port = 0u32;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 || digits.len() > 5 {
            return Err(Reject::BAD_PORT);
        }
        port = port * 10 + u32::from(value);
    }
    match u16::try_from(port) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Reject::BAD_PORT),
    }
}
