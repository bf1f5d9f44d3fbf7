//! Writes the values of a line without the formatting code of the standard library. With that code, writing
//! one line took as much time as serving a hit.

use std::net::{IpAddr, Ipv4Addr};

use foxy_proxy::{LogRecord, RequestId};

/// Appends a number in decimal.
#[inline]
pub(super) fn number(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the last `N` decimal digits of a number, with leading zeros.
#[inline]
pub(super) fn digits<const N: usize>(mut value: u32, out: &mut Vec<u8>) {
    let mut text = [b'0'; N];
    for digit in text.iter_mut().rev() {
        *digit += (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&text);
}

/// Appends an address.
pub(super) fn address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => v4(address, out),
        IpAddr::V6(address) => display(address, out),
    }
}

fn v4(address: Ipv4Addr, out: &mut Vec<u8>) {
    let [a, b, c, d] = address.octets();
    number(a, out);
    for octet in [b, c, d] {
        out.push(b'.');
        number(octet, out);
    }
}

/// Appends the id of a request.
pub(super) fn id(id: RequestId<'_>, out: &mut Vec<u8>) {
    match id {
        RequestId::Given(text) => out.extend_from_slice(text.as_bytes()),
        RequestId::Made(number) => hex(&number.to_be_bytes(), out),
    }
}

/// Appends two hexadecimal digits in lower case for each byte.
pub(super) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        let pair = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        out.extend_from_slice(&pair);
    }
}

/// Appends a value that is rarely written, with the formatting code of the standard library.
pub(super) fn display(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value}");
}

/// Returns the requested URL in pieces. A target in origin form gets the scheme of the client's connection
/// and the host of the request.
pub(super) fn url<'a>(record: &LogRecord<'a>) -> [&'a [u8]; 3] {
    if record.target.first() == Some(&b'/') && !record.host.is_empty() {
        let scheme: &[u8] = if record.secure {
            b"https://"
        } else {
            b"http://"
        };
        [scheme, record.host, record.target]
    } else {
        [b"", b"", record.target]
    }
}

/// Returns `text`, or `-` if it is empty.
pub(super) fn or_dash(text: &[u8]) -> &[u8] {
    if text.is_empty() { b"-" } else { text }
}

/// Appends a text. Bytes for which `stays` is false are passed to `escape`. Most texts need no escape and are
/// copied in one piece.
#[inline]
pub(super) fn escaped(
    text: &[u8],
    out: &mut Vec<u8>,
    stays: impl Fn(u8) -> bool,
    escape: impl Fn(u8, &mut Vec<u8>),
) {
    if all(text, &stays) {
        return out.extend_from_slice(text);
    }
    for byte in text {
        if stays(*byte) {
            out.push(*byte);
        } else {
            escape(*byte, out);
        }
    }
}

/// True if a condition holds for every byte. The text is checked in pieces of equal length. The loop over a
/// piece has no early exit, so the compiler can use vector instructions. The last piece overlaps the piece
/// before it.
#[inline]
pub(super) fn all(text: &[u8], holds: impl Fn(u8) -> bool) -> bool {
    if text.len() >= 16 {
        all_in::<16>(text, holds)
    } else if text.len() >= 4 {
        all_in::<4>(text, holds)
    } else {
        text.iter().all(|byte| holds(*byte))
    }
}

#[inline]
fn all_in<const N: usize>(text: &[u8], holds: impl Fn(u8) -> bool) -> bool {
    let piece = |piece: &[u8; N]| piece.iter().fold(true, |all, byte| all & holds(*byte));
    let (pieces, _) = text.as_chunks::<N>();
    pieces.iter().all(piece) && text.last_chunk::<N>().is_none_or(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_and_addresses_are_as_the_standard_library_writes_them() {
        for value in [0, 7, 10, 999, u64::MAX] {
            assert_eq!(written(|out| number(value, out)), value.to_string());
        }
        for text in ["0.0.0.0", "192.0.2.255", "2001:db8::1", "::ffff:10.0.0.1"] {
            assert_eq!(written(|out| address(text.parse().unwrap(), out)), text);
        }
        assert_eq!(written(|out| digits::<3>(7, out)), "007");
        assert_eq!(written(|out| digits::<2>(123, out)), "23");
        let made = 0x0123_4567_89ab_cdef_u128;
        assert_eq!(
            written(|out| id(RequestId::Made(made), out)),
            format!("{made:032x}")
        );
    }

    #[test]
    fn the_byte_that_does_not_fit_is_found_at_every_place_of_every_length() {
        for length in 0..70 {
            let mut text = vec![b'a'; length];
            assert!(all(&text, |byte| byte == b'a'), "{length}");
            for at in 0..length {
                text[at] = b'"';
                assert!(!all(&text, |byte| byte == b'a'), "{at} of {length}");
                let line = written(|out| {
                    escaped(&text, out, |byte| byte == b'a', |_, out| out.push(b'?'));
                });
                assert_eq!((line.len(), line.find('?')), (length, Some(at)));
                text[at] = b'a';
            }
        }
    }
}
