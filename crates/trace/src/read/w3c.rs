//! W3C extended log format (IIS, many CDNs): a line `#Fields:` names the columns of the lines below it.
//!
//! A log needs a URL and `sc-bytes`. The URL is in `cs-uri`, or its parts are in `cs-uri-stem`,
//! `cs-uri-query` and `cs-host` (or `cs(Host)`). The query and the host are optional. `date` and `time`
//! (UTC), `c-ip`, `cs-method`, `sc-status` and the media type are used if present. A later `#Fields:` line
//! changes the columns from there on.

use super::words::{number_or_dash, status, words};
use super::{Bad, date, url};
use crate::{Class, Flags, Method, Request};

/// Position of each column, from the newest `#Fields:` line.
#[derive(Debug, Default)]
pub(crate) struct Columns(Option<Positions>);

#[derive(Debug)]
struct Positions {
    date: Option<usize>,
    time: Option<usize>,
    client: Option<usize>,
    method: Option<usize>,
    host: Option<usize>,
    target: usize,
    query: Option<usize>,
    status: Option<usize>,
    bytes: usize,
    media: Option<usize>,
}

/// Start of the line that names the columns.
pub(crate) const FIELDS: &[u8] = b"#Fields:";

impl Columns {
    /// Handles a line that begins with `#`.
    pub(super) fn comment(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(FIELDS) {
            self.0 = header(names);
        }
    }

    pub(super) fn parse(&self, line: &[u8]) -> Result<Request, Bad> {
        let at = self
            .0
            .as_ref()
            .ok_or("no line #Fields: before it with a URL and sc-bytes")?;
        let fields: Vec<&[u8]> = words(line).collect();
        let get = |n: usize| fields.get(n).copied().ok_or("fewer columns than #Fields:");
        let known = |n: Option<usize>| {
            n.and_then(|n| fields.get(n).copied())
                .filter(|w| *w != b"-")
        };
        let code = match known(at.status) {
            Some(word) => status(word).ok_or("bad status")?,
            None => 0,
        };
        let day = known(at.date);
        let time_ms = match (day, known(at.time)) {
            (day, Some(time)) => {
                date::day_and_time(day, time).ok_or("date or time not understood")?
            }
            (_, None) => 0,
        };
        let mut request = Request {
            time_ms,
            size: number_or_dash(get(at.bytes)?).ok_or("sc-bytes is not a number")?,
            client: known(at.client).map_or(0, url::short_hash),
            status: code,
            method: known(at.method).map_or(Method::Get, Method::from_name),
            flags: Flags::default().with_if(Flags::CONDITIONAL, code == 304),
            ..Request::default()
        };
        let target = get(at.target)?;
        let mut whole = Vec::new();
        if target.starts_with(b"/")
            && let Some(host) = known(at.host)
        {
            whole.extend_from_slice(b"http://");
            whole.extend_from_slice(host);
        }
        whole.extend_from_slice(target);
        if let Some(query) = known(at.query) {
            whole.push(b'?');
            whole.extend_from_slice(query);
        }
        url::describe(&whole, &mut request);
        if let Some(class) = known(at.media).and_then(Class::from_type) {
            request.class = class;
        }
        Ok(request)
    }
}

fn header(names: &[u8]) -> Option<Positions> {
    let names: Vec<&[u8]> = words(names).collect();
    let find = |name: &str| {
        let name = name.as_bytes();
        names.iter().position(|n| n.eq_ignore_ascii_case(name))
    };
    Some(Positions {
        date: find("date"),
        time: find("time"),
        client: find("c-ip"),
        method: find("cs-method"),
        host: find("cs-host").or_else(|| find("cs(host)")),
        target: find("cs-uri").or_else(|| find("cs-uri-stem"))?,
        query: find("cs-uri-query").filter(|_| find("cs-uri").is_none()),
        status: find("sc-status"),
        bytes: find("sc-bytes")?,
        media: find("sc(content-type)").or_else(|| find("rs(content-type)")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_where_the_names_say() {
        let mut columns = Columns::default();
        assert!(
            columns
                .parse(b"2026-11-23 /a 200 10")
                .unwrap_err()
                .contains("#Fields")
        );
        columns.comment(b"#Version: 1.0");
        columns.comment(
            b"#Fields: date time c-ip cs-method cs(Host) cs-uri-stem cs-uri-query sc-status sc-bytes",
        );
        let line = b"1995-07-01 04:00:01 10.0.0.1 GET h.example /a.gif x=1 200 6245";
        let r = columns.parse(line).unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (804_571_201_000, 6_245, 200));
        assert_eq!(r.class, Class::Image);
        assert!(r.flags.has(Flags::QUERY) && r.server != 0 && r.client != 0);
        // Object and server are the same as in a log that contains the complete URL.
        let mut whole = Request::default();
        url::describe(b"http://h.example/a.gif?x=1", &mut whole);
        assert_eq!((r.object, r.server), (whole.object, whole.server));
        // From here on the columns are different.
        columns.comment(b"#Fields: cs-uri sc-bytes");
        let r = columns.parse(b"http://h/x -").unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (0, 0, 0));
        for (line, why) in [
            ("http://h/x", "fewer columns than #Fields:"),
            ("http://h/x many", "sc-bytes is not a number"),
        ] {
            assert_eq!(columns.parse(line.as_bytes()), Err(why));
        }
    }
}
