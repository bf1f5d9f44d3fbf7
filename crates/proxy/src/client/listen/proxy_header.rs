//! The header of the PROXY protocol, versions 1 and 2. With this header, a proxy in front of Foxy names the
//! client of a connection. The header precedes the first byte of the client.
//!
//! This module does no I/O. Source: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>, sections
//! 2.1 and 2.2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first bytes of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Number of bytes of the fixed part of a header of version 2: signature, version and command, address
/// family, length.
const FIXED: usize = 16;
/// Largest number of bytes of a header of version 1 (section 2.1).
const LINE_MAX: usize = 107;
/// Largest number of bytes of a header of version 2. Longer headers are refused. Foxy does not use the data
/// after the addresses.
pub(crate) const HEADER_MAX: usize = 4096;

/// A complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProxyHeader {
    /// The length of the header in bytes.
    pub(crate) length: usize,
    /// The client. `None` if the proxy made the connection for itself (for example a health check), or does
    /// not know the client.
    pub(crate) source: Option<SocketAddr>,
}

/// Reads a header at the beginning of `bytes`. Returns `None` if the header is not complete. Then all of
/// `bytes` belong to the header.
///
/// # Errors
/// Returns a word that names the fault.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<ProxyHeader>, &'static str> {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes[..known] == SIGNATURE[..known] {
        return match known == SIGNATURE.len() {
            true => binary(bytes),
            false => Ok(None),
        };
    }
    line(bytes)
}

/// Reads version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 4711 80` and a line end.
fn line(bytes: &[u8]) -> Result<Option<ProxyHeader>, &'static str> {
    const WORD: &[u8] = b"PROXY ";
    let known = bytes.len().min(WORD.len());
    if bytes[..known] != WORD[..known] {
        return Err("no-proxy-header");
    }
    let searched = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = searched.windows(2).position(|pair| pair == b"\r\n") else {
        return match bytes.len() < LINE_MAX {
            true => Ok(None),
            false => Err("proxy-header-too-long"),
        };
    };
    let text = std::str::from_utf8(&bytes[WORD.len()..end]).map_err(|_| "bad-proxy-header")?;
    let source = if text == "UNKNOWN" || text.starts_with("UNKNOWN ") {
        None
    } else {
        Some(named(text).ok_or("bad-proxy-header")?)
    };
    Ok(Some(ProxyHeader {
        length: end + 2,
        source,
    }))
}

/// Returns the source in `TCP4 SOURCE DESTINATION PORT PORT`.
fn named(text: &str) -> Option<SocketAddr> {
    let words: Vec<&str> = text.split(' ').collect();
    let [family, source, destination, port, other] = words[..] else {
        return None;
    };
    let ip = |text: &str| -> Option<IpAddr> {
        Some(match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok()?.into(),
            "TCP6" => text.parse::<Ipv6Addr>().ok()?.into(),
            _ => return None,
        })
    };
    ip(destination)?;
    number(other)?;
    Some(SocketAddr::new(ip(source)?, number(port)?))
}

/// Parses a port without sign and leading zeros.
fn number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let short = text == "0" || !text.starts_with('0');
    (digits && short).then(|| text.parse().ok())?
}

/// Reads version 2.
fn binary(bytes: &[u8]) -> Result<Option<ProxyHeader>, &'static str> {
    let Some(&[version_and_command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED) else {
        return match bytes.get(SIGNATURE.len()) {
            Some(byte) if byte >> 4 != 2 => Err("proxy-header-version"),
            _ => Ok(None),
        };
    };
    if version_and_command >> 4 != 2 {
        return Err("proxy-header-version");
    }
    let length = FIXED + usize::from(u16::from_be_bytes([high, low]));
    if length > HEADER_MAX {
        return Err("proxy-header-too-long");
    }
    let local = match version_and_command & 15 {
        0 => true,
        1 => false,
        _ => return Err("bad-proxy-header"),
    };
    let Some(rest) = bytes.get(FIXED..length) else {
        return Ok(None);
    };
    let source = match family {
        _ if local => None,
        0x11 => Some(v4(rest).ok_or("bad-proxy-header")?),
        0x21 => Some(v6(rest).ok_or("bad-proxy-header")?),
        // These values stand for an unspecified family, datagrams and Unix sockets. They are valid, but name
        // no client.
        0x00 | 0x12 | 0x22 | 0x31 | 0x32 => None,
        _ => return Err("bad-proxy-header"),
    };
    Ok(Some(ProxyHeader { length, source }))
}

/// Returns the source address and port. `rest` contains two addresses (source, destination) of 4 bytes each,
/// then two ports (source, destination) of 2 bytes each.
fn v4(rest: &[u8]) -> Option<SocketAddr> {
    let ip: [u8; 4] = rest.get(..4)?.try_into().ok()?;
    let port: [u8; 2] = rest.get(8..10)?.try_into().ok()?;
    rest.get(..12)?;
    Some((ip, u16::from_be_bytes(port)).into())
}

fn v6(rest: &[u8]) -> Option<SocketAddr> {
    let ip: [u8; 16] = rest.get(..16)?.try_into().ok()?;
    let port: [u8; 2] = rest.get(32..34)?.try_into().ok()?;
    rest.get(..36)?;
    Some((ip, u16::from_be_bytes(port)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header of version 2.
    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn four() -> Vec<u8> {
        [
            &[192, 0, 2, 7],
            &[192, 0, 2, 1],
            &4711u16.to_be_bytes()[..],
            &[0, 80],
        ]
        .concat()
    }

    #[test]
    fn headers_of_both_versions_name_the_client() {
        let six = [&[0x20; 16][..], &[0; 16], &99u16.to_be_bytes(), &[0, 80]].concat();
        let with_more = [&four()[..], &[4, 0, 3, b'a', b'b', b'c']].concat();
        for (bytes, source) in [
            (
                b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n".to_vec(),
                Some("192.0.2.7:4711"),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 0 65535\r\n".to_vec(),
                Some("[2001:db8::7]:0"),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 x y z\r\n".to_vec(), None),
            (v2(0x21, 0x11, &four()), Some("192.0.2.7:4711")),
            (v2(0x21, 0x11, &with_more), Some("192.0.2.7:4711")),
            (
                v2(0x21, 0x21, &six),
                Some("[2020:2020:2020:2020:2020:2020:2020:2020]:99"),
            ),
            (v2(0x20, 0x11, &four()), None),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x21, 0x31, &[b'x'; 216]), None),
        ] {
            let found = parse(&[&bytes[..], b"GET / HTTP/1.1\r\n"].concat());
            let expected = ProxyHeader {
                length: bytes.len(),
                source: source.map(|text| text.parse().unwrap()),
            };
            assert_eq!(found, Ok(Some(expected)), "{}", bytes.escape_ascii());
            for end in 0..bytes.len() {
                assert_eq!(
                    parse(&bytes[..end]),
                    Ok(None),
                    "{}",
                    bytes[..end].escape_ascii()
                );
            }
        }
    }

    #[test]
    fn others_are_refused() {
        let long = format!("PROXY UNKNOWN {}", "x".repeat(200));
        for bytes in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"proxy TCP4 192.0.2.7 192.0.2.1 1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 1 1 \r\n".to_vec(),
            b"PROXY TCP4  192.0.2.7 192.0.2.1 1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.07 192.0.2.1 1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 01 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 +1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 65536 1\r\n".to_vec(),
            b"PROXY TCP4 ::1 ::1 1 1\r\n".to_vec(),
            b"PROXY UDP4 192.0.2.7 192.0.2.1 1 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.1 1 1\n\r\n".to_vec(),
            b"PROXY \xff\r\n".to_vec(),
            long.into_bytes(),
            v2(0x11, 0x11, &four()),
            v2(0x22, 0x11, &four()),
            v2(0x21, 0x11, &four()[..11]),
            v2(0x21, 0x21, &four()),
            v2(0x21, 0x41, &four()),
            v2(0x21, 0x11, &[0; 5000]),
        ] {
            assert!(parse(&bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
