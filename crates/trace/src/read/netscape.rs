//! Netscape-Extended2, the log of Netscape Enterprise Proxy (Hummingbird's ISP trace). A line begins with the
//! common format. These words follow:
//!
//! - status and content length sent to the client (s1 c1), and received from the server (s2 c2);
//! - lengths of bodies and heads of request and response (b1 b2 h1 h2 h3 h4);
//! - the time (xt), the route, and how the connections to the client and to the server ended (pfs ss);
//! - the cache's result (crc).

use super::words::{need, number_or_dash, status, words};
use super::{Bad, apache, url};
use crate::{Flags, Method, Request};

/// Position of the cache result among the words after the quoted request.
const RESULT: usize = 14;

pub(super) fn parse(line: &[u8]) -> Result<Option<Request>, Bad> {
    if line.starts_with(b"format=") {
        return Ok(None);
    }
    let parts = apache::split(line)?;
    let mut rest = words(parts.rest);
    let to_client = status(need(&mut rest, "no status")?).ok_or("bad status")?;
    let length = number_or_dash(need(&mut rest, "no length")?).ok_or("length is not a number")?;
    status(need(&mut rest, "no server status")?).ok_or("bad server status")?;
    let from_server =
        number_or_dash(need(&mut rest, "no server length")?).ok_or("length is not a number")?;
    let result = rest
        .nth(RESULT - 4)
        .ok_or("fewer columns than Extended2 has")?;
    let mut request = Request {
        time_ms: parts.time_ms,
        size: if length > 0 { length } else { from_server },
        client: url::short_hash(parts.host),
        status: to_client,
        method: Method::from_name(parts.method),
        flags: result_flags(result).with_if(Flags::CONDITIONAL, to_client == 304),
        ..Request::default()
    };
    url::describe(parts.target, &mut request);
    Ok(Some(request))
}

pub(super) fn url(line: &[u8]) -> Option<&[u8]> {
    apache::url(line)
}

fn result_flags(result: &[u8]) -> Flags {
    let hit = matches!(result, b"UP-TO-DATE" | b"NO-CHECK" | b"HOST-NOT-AVAILABLE");
    let never = matches!(result, b"-" | b"NON-CACHEABLE" | b"DO-NOT-CACHE");
    Flags::default()
        .with_if(Flags::HIT, hit)
        .with_if(Flags::UNCACHEABLE, never)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "10.1.2.3 - - [30/Jan/1999:10:00:00 -0500] \"GET http://a/b.html HTTP/1.0\"";

    #[test]
    fn all_columns() {
        let line =
            format!("{HEAD} 200 3120 200 3120 - 3120 310 220 340 210 2 DIRECT FIN FIN WRITTEN");
        let r = parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((r.size, r.status, r.flags), (3120, 200, Flags::default()));
        let line = format!("{HEAD} 200 - - 12 - - 310 220 340 210 2 - FIN - NON-CACHEABLE");
        let r = parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((r.size, r.flags), (12, Flags::UNCACHEABLE));
        assert_eq!(url(line.as_bytes()), Some(&b"http://a/b.html"[..]));
    }

    #[test]
    fn the_common_format_is_too_short() {
        let line = format!("{HEAD} 200 3120");
        assert_eq!(parse(line.as_bytes()), Err("no server status"));
        assert_eq!(parse(b"format=%Ses->client.ip% ..."), Ok(None));
    }
}
