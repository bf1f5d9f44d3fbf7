//! Tests of the complete codec.

mod bodies;
mod connection;
mod fuzz;
mod heads;
mod paths;
mod smuggling;
mod targets;

use foxy_base::Fields;

use crate::{FieldSlots, HeadScanner, Limits, Reject, RequestHead, RequestParts, ResponseHead};

/// Parses a request, which must be complete, and passes it to `look`.
pub(crate) fn with_request<T>(
    text: &[u8],
    look: impl FnOnce(RequestHead<'_>) -> T,
) -> Result<T, Reject> {
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let head = RequestHead::parse(text, &mut scanner, &mut slots, &Limits::default())?;
    Ok(look(head.expect("the head is complete")))
}

/// Does the same as [`with_request`], for a response.
pub(crate) fn with_response<T>(
    text: &[u8],
    look: impl FnOnce(ResponseHead<'_>) -> T,
) -> Result<T, Reject> {
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let head = ResponseHead::parse(text, &mut scanner, &mut slots, &Limits::default())?;
    Ok(look(head.expect("the head is complete")))
}

pub(crate) fn request_parts(text: &[u8]) -> Result<RequestParts, Reject> {
    with_request(text, |head| head.parts())
}

/// Name and value of every field, owned.
pub(crate) fn owned_fields<F: Fields + ?Sized>(fields: &F) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..fields.count())
        .map(|i| fields.field(i))
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

/// An attack on the codec, from a line of a table in `tests/attacks`, and its expected refusal.
pub(crate) struct Attack {
    name: &'static str,
    bytes: Vec<u8>,
    want: Reject,
}

/// Reads a table of attacks: `reason | name | bytes` per line.
pub(crate) fn attacks(table: &'static str) -> impl Iterator<Item = Attack> {
    let rows = table
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    rows.map(|row| {
        let mut columns = row.splitn(3, " | ");
        let reason = columns.next().unwrap().trim();
        let known = Reject::ALL.iter().find(|r| r.reason == reason);
        Attack {
            want: *known.unwrap_or_else(|| panic!("no such reason: {reason}")),
            name: columns.next().unwrap().trim(),
            bytes: unescape(&columns.next().unwrap().replace("{H}", "Host: a\\r\\n")),
        }
    })
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, used) = match (byte, after) {
            (b'\\', [b'r', ..]) => (b'\r', 1),
            (b'\\', [b'n', ..]) => (b'\n', 1),
            (b'\\', [b't', ..]) => (b'\t', 1),
            (b'\\', [b'0', ..]) => (0, 1),
            (b'\\', [b'x', high, low, ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                (u8::from_str_radix(digits, 16).unwrap(), 3)
            }
            (b'\\', _) => panic!("unknown escape in {text}"),
            _ => (byte, 0),
        };
        out.push(byte);
        rest = &after[used..];
    }
    out
}
