//! Squid's native access log: `time elapsed client code/status bytes method URL user peer type`.

use super::words::{need, number, seconds, status, words};
use super::{Bad, url};
use crate::{Class, Flags, Method, Request};

pub(super) fn parse(line: &[u8]) -> Result<Request, Bad> {
    let mut fields = words(line);
    let time_ms = seconds(need(&mut fields, "empty")?).ok_or("time is not a number")?;
    number(need(&mut fields, "no elapsed time")?).ok_or("elapsed time is not a number")?;
    let client = need(&mut fields, "no client")?;
    let result = need(&mut fields, "no result code")?;
    let slash = result
        .iter()
        .position(|b| *b == b'/')
        .ok_or("result code without status")?;
    let size = number(need(&mut fields, "no size")?).ok_or("size is not a number")?;
    let method = need(&mut fields, "no method")?;
    let target = need(&mut fields, "no URL")?;
    let mut request = Request {
        time_ms,
        size,
        client: url::short_hash(client),
        status: status(&result[slash + 1..]).ok_or("bad status")?,
        method: Method::from_name(method),
        flags: code_flags(&result[..slash]),
        ..Request::default()
    };
    url::describe(target, &mut request);
    // The remaining words are user, peer and type. Old logs have no type.
    if let Some(class) = fields.nth(2).and_then(Class::from_type) {
        request.class = class;
    }
    Ok(request)
}

pub(super) fn url(line: &[u8]) -> Option<&[u8]> {
    words(line).nth(6)
}

fn code_flags(code: &[u8]) -> Flags {
    let has = |part: &[u8]| code.windows(part.len()).any(|w| w == part);
    Flags::default()
        .with_if(Flags::HIT, has(b"HIT") || has(b"REFRESH_UNMODIFIED"))
        .with_if(Flags::ABORTED, has(b"ABORTED"))
        .with_if(Flags::CONDITIONAL, has(b"IMS"))
        .with_if(Flags::RELOAD, has(b"CLIENT_REFRESH"))
        .with_if(Flags::DENIED, has(b"DENIED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_looking_line() {
        let line = b"882769200.123    456 10.0.0.1 TCP_IMS_HIT/304 250 GET \
            http://www.example.com:8080/a.gif - NONE/- image/gif";
        let r = parse(line).unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (882_769_200_123, 250, 304));
        assert_eq!((r.method, r.class), (Method::Get, Class::Image));
        assert!(r.flags.has(Flags::HIT.with(Flags::CONDITIONAL)) && r.server != 0);
        assert_eq!(url(line), Some(&b"http://www.example.com:8080/a.gif"[..]));
    }

    #[test]
    fn an_answer_that_was_broken_off_is_known() {
        let flags = |code: &str| {
            let line = format!("1.0 1 c {code}/200 10 GET http://a/ - D/- -");
            parse(line.as_bytes()).unwrap().flags
        };
        assert_eq!(flags("TCP_MISS_ABORTED"), Flags::ABORTED);
        assert_eq!(flags("TCP_MISS"), Flags::default());
    }

    #[test]
    fn bad_lines_say_why() {
        for (line, why) in [
            ("x 1 c TCP_HIT/200 1 GET http://a/", "time is not a number"),
            (
                "1.0 1 c TCP_HIT 1 GET http://a/",
                "result code without status",
            ),
            (
                "1.0 1 c TCP_HIT/200 - GET http://a/",
                "size is not a number",
            ),
            ("1.0 1 c TCP_HIT/999 1 GET http://a/", "bad status"),
            ("1.0 1 c TCP_HIT/200 1 GET", "no URL"),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(why), "{line}");
        }
    }
}
