//! Apache's common and combined log formats: `host ident user [date] "request" status bytes ...`.

use super::words::{need, number_or_dash, status, words};
use super::{Bad, date, url};
use crate::{Flags, Method, Request};

/// The parts of a line up to the end of the quoted request, and the rest of the line.
pub(super) struct Parts<'l> {
    pub(super) host: &'l [u8],
    pub(super) time_ms: i64,
    pub(super) method: &'l [u8],
    pub(super) target: &'l [u8],
    pub(super) rest: &'l [u8],
}

pub(super) fn split(line: &[u8]) -> Result<Parts<'_>, Bad> {
    let host = words(line).next().ok_or("empty")?;
    let open = line
        .iter()
        .position(|b| *b == b'[')
        .ok_or("no date in brackets")?;
    let close = line
        .iter()
        .position(|b| *b == b']')
        .ok_or("no date in brackets")?;
    let inside = line.get(open + 1..close).ok_or("no date in brackets")?;
    let time_ms = date::parse(inside).ok_or("date not understood")?;
    let after = line[close + 1..].trim_ascii_start();
    let quoted = after.strip_prefix(b"\"").ok_or("no request in quotes")?;
    let end = closing_quote(quoted).ok_or("request without closing quote")?;
    let mut request = words(&quoted[..end]);
    let method = need(&mut request, "empty request")?;
    let target = need(&mut request, "request without URL")?;
    Ok(Parts {
        host,
        time_ms,
        method,
        target,
        rest: &quoted[end + 1..],
    })
}

/// Position of the end of the quoted text: a quote that is not escaped and is followed by a blank. Old
/// servers did not escape quotes inside the text, so a quote within a word does not end the text.
fn closing_quote(text: &[u8]) -> Option<usize> {
    (0..text.len()).find(|at| {
        text[*at] == b'"'
            && (*at == 0 || text[at - 1] != b'\\')
            && text.get(at + 1).is_none_or(|b| *b == b' ')
    })
}

pub(super) fn parse(line: &[u8]) -> Result<Request, Bad> {
    let parts = split(line)?;
    let mut rest = words(parts.rest);
    let status = status(need(&mut rest, "no status")?).ok_or("bad status")?;
    let size = number_or_dash(need(&mut rest, "no size")?).ok_or("size is not a number")?;
    let mut request = Request {
        time_ms: parts.time_ms,
        size,
        client: url::short_hash(parts.host),
        status,
        method: Method::from_name(parts.method),
        flags: Flags::default().with_if(Flags::CONDITIONAL, status == 304),
        ..Request::default()
    };
    url::describe(parts.target, &mut request);
    Ok(request)
}

pub(super) fn url(line: &[u8]) -> Option<&[u8]> {
    split(line).ok().map(|parts| parts.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn common_and_combined() {
        let common = b"199.72.81.55 - - [01/Jul/1995:00:00:01 -0400] \
            \"GET /history/apollo/ HTTP/1.0\" 200 6245";
        let r = parse(common).unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (804_571_201_000, 6245, 200));
        assert_eq!((r.class, r.server), (Class::Html, 0));
        let combined = [
            common,
            &b" \"http://x/\" \"Mozilla/5.0 (X; \\\"y\\\")\""[..],
        ]
        .concat();
        assert_eq!(parse(&combined), Ok(r));
        let dash = b"h - - [01/Jul/1995:00:00:01 -0400] \"HEAD /a\"b.gif\" 304 -";
        let r = parse(dash).unwrap();
        assert_eq!((r.method, r.size, r.class), (Method::Head, 0, Class::Image));
        assert!(r.flags.has(Flags::CONDITIONAL));
    }

    #[test]
    fn bad_lines_say_why() {
        for (line, why) in [
            ("h - - \"GET / HTTP/1.0\" 200 1", "no date in brackets"),
            ("h - - [yesterday] \"GET /\" 200 1", "date not understood"),
            (
                "h - - ]01/Jul/1995:00:00:01 -0400[ \"GET /\" 200 1",
                "no date in brackets",
            ),
            (
                "h - - [01/Jul/1995:00:00:01 -0400] \"GET / 200 1",
                "request without closing quote",
            ),
            (
                "h - - [01/Jul/1995:00:00:01 -0400] \"-\" 408 -",
                "request without URL",
            ),
            (
                "h - - [01/Jul/1995:00:00:01 -0400] \"GET /\" 200",
                "no size",
            ),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(why), "{line}");
        }
    }
}
