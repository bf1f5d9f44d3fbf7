//! The part of DNS messages that the name server for tests needs (RFC 1035 section 4): one question and its
//! answers. The code builds answers byte by byte, because some answers must be invalid.

use std::net::IpAddr;

const HEADER: usize = 12;
const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// The name of a record: a pointer to the name in the question.
const NAME: [u8; 2] = [0xc0, HEADER as u8];

/// A query with one question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    id: [u8; 2],
    recursion: bool,
    /// Name, type and class as received.
    text: &'a [u8],
    kind: u16,
}

/// Content of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer<'a> {
    /// The addresses in this list that have the requested type. The number is their time to live in seconds.
    Addresses(&'a [IpAddr], u32),
    /// No records, with this response code.
    Code(u8),
    /// The name is an alias of itself.
    Alias,
}

impl<'a> Question<'a> {
    /// Parses a query. Returns `None` if the packet is not a query.
    pub(super) fn parse(packet: &'a [u8]) -> Option<Self> {
        let header = packet.get(..HEADER)?;
        let is_query = header[2] & 0x80 == 0;
        if !is_query || header[4..6] != [0, 1] {
            return None;
        }
        let rest = &packet[HEADER..];
        let mut at = 0;
        loop {
            let len = usize::from(*rest.get(at)?);
            at += 1 + len;
            match len {
                0 => break,
                1..=63 => {}
                _ => return None,
            }
        }
        let text = rest.get(..at + 4)?;
        Some(Self {
            id: [header[0], header[1]],
            recursion: header[2] & 1 != 0,
            text,
            kind: u16::from_be_bytes([text[at], text[at + 1]]),
        })
    }

    /// The first label of the name.
    pub(super) fn first_label(&self) -> Option<&'a [u8]> {
        let len = usize::from(*self.text.first()?);
        self.text.get(1..=len)
    }

    /// Builds the message that contains this answer.
    pub(super) fn answer(&self, answer: &Answer<'_>) -> Vec<u8> {
        let (code, records) = match answer {
            Answer::Code(code) => (*code, Vec::new()),
            Answer::Alias => {
                let record = record(TYPE_CNAME, 60, &NAME);
                (0, vec![record])
            }
            Answer::Addresses(addresses, ttl) => {
                let of_kind = addresses.iter().filter_map(|address| match address {
                    IpAddr::V4(ip) if self.kind == TYPE_A => {
                        Some(record(TYPE_A, *ttl, &ip.octets()))
                    }
                    IpAddr::V6(ip) if self.kind == TYPE_AAAA => {
                        Some(record(TYPE_AAAA, *ttl, &ip.octets()))
                    }
                    _ => None,
                });
                (0, of_kind.collect())
            }
        };
        let mut out = self.id.to_vec();
        out.push(0x84 | u8::from(self.recursion));
        out.push(0x80 | code);
        out.extend_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&(records.len() as u16).to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(self.text);
        out.extend(records.into_iter().flatten());
        out
    }
}

fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = NAME.to_vec();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut out = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            out.push(label.len() as u8);
            out.extend_from_slice(label.as_bytes());
        }
        out.push(0);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&[0, 1]);
        out
    }

    #[test]
    fn answers_repeat_the_question_and_hold_the_addresses_of_its_kind() {
        let bytes = query("a.test", TYPE_A);
        let question = Question::parse(&bytes).unwrap();
        assert_eq!(question.first_label(), Some(&b"a"[..]));
        let all = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let answer = question.answer(&Answer::Addresses(&all, 7));
        assert_eq!(
            &answer[..12],
            &[0x12, 0x34, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
        );
        assert_eq!(&answer[12..bytes.len()], &bytes[12..]);
        assert_eq!(
            &answer[bytes.len()..],
            &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 7, 0, 4, 192, 0, 2, 1]
        );
        let refused = question.answer(&Answer::Code(5));
        assert_eq!(
            (refused[3], refused[7], refused.len()),
            (0x85, 0, bytes.len())
        );
    }

    #[test]
    fn what_is_no_query_is_left_alone() {
        let good = query("a.test", TYPE_A);
        for len in 0..good.len() {
            assert!(Question::parse(&good[..len]).is_none());
        }
        let mut answer = good.clone();
        answer[2] |= 0x80;
        assert!(Question::parse(&answer).is_none());
        let mut pointer = good;
        pointer[12] = 0xc0;
        assert!(Question::parse(&pointer).is_none());
    }
}
