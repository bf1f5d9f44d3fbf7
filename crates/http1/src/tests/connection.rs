//! Tests of persistence, upgrades, and forwarded fields.

use super::{request_parts, with_request, with_response};
use crate::{Method, Upgrade, is_hop_by_hop};

fn request(line: &str, fields: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

#[test]
fn requests_say_whether_the_connection_lasts() {
    let cases = [
        ("GET / HTTP/1.1", "", true),
        ("GET / HTTP/1.1", "Connection: close\r\n", false),
        (
            "GET / HTTP/1.1",
            "Connection: x\r\nconnection: y , CLOSE\r\n",
            false,
        ),
        ("GET / HTTP/1.1", "Connection: keep-alive, close\r\n", false),
        ("GET / HTTP/1.1", "Connection: closed\r\n", true),
        ("GET / HTTP/1.1", "Proxy-Connection: close\r\n", true),
        ("GET / HTTP/1.0", "", false),
        ("GET / HTTP/1.0", "Connection: Keep-Alive\r\n", true),
        ("GET / HTTP/1.0", "Proxy-Connection: keep-alive\r\n", false),
        (
            "GET http://a/ HTTP/1.0",
            "Connection: keep-alive\r\n",
            false,
        ),
        ("GET http://a/ HTTP/1.1", "", true),
        ("CONNECT a:1 HTTP/1.1", "", false),
    ];
    for (line, fields, want) in cases {
        let parts = request_parts(&request(line, fields)).unwrap();
        assert_eq!(parts.persistent(), want, "{line} {fields:?}");
    }
}

/// The columns are: method | version and status | a field | framing | whether the connection lasts
const RESPONSES: &str = "
GET     | 1.1 200 |                            | UntilClose | false
GET     | 1.1 200 | Content-Length: 3          | Length(3)  | true
GET     | 1.1 200 | Content-Length: 0          | Length(0)  | true
GET     | 1.1 200 | Transfer-Encoding: chunked | Chunked    | true
GET     | 1.1 200 | Connection: close          | UntilClose | false
GET     | 1.1 404 | Content-Length: 3          | Length(3)  | true
HEAD    | 1.1 200 |                            | None       | true
HEAD    | 1.1 200 | Content-Length: 3          | None       | true
HEAD    | 1.1 200 | Transfer-Encoding: chunked | None       | true
HEAD    | 1.1 200 | Connection: close          | None       | false
GET     | 1.1 304 | Content-Length: 3          | None       | true
GET     | 1.1 204 |                            | None       | true
GET     | 1.1 204 | Content-Length: 0          | None       | true
GET     | 1.1 204 | Content-Length: 3          | None       | false
GET     | 1.1 204 | Transfer-Encoding: chunked | None       | false
GET     | 1.1 103 |                            | None       | true
GET     | 1.1 101 |                            | Tunnel     | false
CONNECT | 1.1 200 | Content-Length: 3          | Tunnel     | false
CONNECT | 1.1 407 | Content-Length: 3          | Length(3)  | true
GET     | 1.0 200 | Content-Length: 3          | Length(3)  | false
GET     | 1.0 304 | Connection: keep-alive     | None       | true
GET     | 1.0 200 | Connection: keep-alive     | UntilClose | false
";

#[test]
fn responses_say_where_they_end_and_whether_the_connection_lasts() {
    for row in RESPONSES.trim().lines() {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let &[method, status, field, framing, lasts] = &columns[..] else {
            panic!("five columns: {row}");
        };
        let method = Method::from_text(method.as_bytes());
        let end = if field.is_empty() { "" } else { "\r\n" };
        let text = format!("HTTP/{status}\r\n{field}{end}\r\n");
        let got = with_response(text.as_bytes(), |head| {
            let (framing, lasts) = (head.framing(method), head.persistent(method));
            (format!("{framing:?}"), lasts.to_string())
        });
        assert_eq!(got, Ok((framing.to_owned(), lasts.to_owned())), "{row}");
    }
}

#[test]
fn interim_responses_are_told_from_final_ones() {
    let interim = |status| {
        with_response(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes(), |h| {
            h.is_interim()
        })
    };
    assert_eq!(
        (interim(100), interim(101), interim(200)),
        (Ok(true), Ok(false), Ok(false))
    );
}

#[test]
fn upgrades_count_only_if_connection_names_them() {
    let key = "Sec-WebSocket-Key: x\r\n";
    let cases = [
        (
            "GET / HTTP/1.1",
            format!("Connection: Upgrade\r\nUpgrade: WebSocket\r\n{key}"),
            Upgrade::WebSocket,
        ),
        (
            "GET / HTTP/1.1",
            format!("Connection: keep-alive, upgrade\r\nUpgrade: h2c, websocket\r\n{key}"),
            Upgrade::WebSocket,
        ),
        (
            "GET / HTTP/1.1",
            format!("Upgrade: websocket\r\n{key}"),
            Upgrade::None,
        ),
        (
            "GET / HTTP/1.0",
            format!("Connection: upgrade\r\nUpgrade: websocket\r\n{key}"),
            Upgrade::None,
        ),
        (
            "GET / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: websocket\r\n".into(),
            Upgrade::Other,
        ),
        (
            "POST / HTTP/1.1",
            format!("Connection: upgrade\r\nUpgrade: websocket\r\n{key}"),
            Upgrade::Other,
        ),
        (
            "GET / HTTP/1.1",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n".into(),
            Upgrade::Other,
        ),
        (
            "GET / HTTP/1.1",
            "Connection: upgrade\r\n".into(),
            Upgrade::None,
        ),
    ];
    for (line, fields, want) in cases {
        let got = request_parts(&request(line, &fields)).unwrap().upgrade();
        assert_eq!(got, want, "{line} {fields:?}");
    }
}

#[test]
fn expectation_counts_only_with_a_body() {
    let expects = |line: &str, fields: &str| {
        request_parts(&request(line, fields))
            .unwrap()
            .expects_continue()
    };
    assert!(expects(
        "PUT / HTTP/1.1",
        "Expect: 100-Continue\r\nContent-Length: 1\r\n"
    ));
    assert!(expects(
        "PUT / HTTP/1.1",
        "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"
    ));
    assert!(!expects("PUT / HTTP/1.1", "Expect: 100-continue\r\n"));
    assert!(!expects(
        "PUT / HTTP/1.1",
        "Expect: 100-continue\r\nContent-Length: 0\r\n"
    ));
    assert!(!expects(
        "PUT / HTTP/1.0",
        "Expect: 100-continue\r\nContent-Length: 1\r\n"
    ));
    assert!(!expects("PUT / HTTP/1.1", "Content-Length: 1\r\n"));
}

#[test]
fn expectation_of_http_1_0_is_not_sent_on() {
    let sent_on = |line: &str| {
        with_request(&request(line, "Expect: 100-continue\r\n"), |head| {
            head.forward_fields().count()
        })
    };
    assert_eq!(sent_on("PUT / HTTP/1.0"), Ok(0));
    assert_eq!(sent_on("PUT / HTTP/1.1"), Ok(1));
}

#[test]
fn te_trailers_is_heard() {
    let wants = |fields: &str| {
        request_parts(&request("GET / HTTP/1.1", fields))
            .unwrap()
            .wants_trailers()
    };
    assert!(wants("TE: gzip;q=0.5, Trailers\r\nConnection: te\r\n"));
    assert!(!wants("TE: gzip\r\n"));
}

fn forwarded(fields: &str) -> Vec<String> {
    with_request(&request("GET / HTTP/1.1", fields), |head| {
        head.forward_fields()
            .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
            .collect()
    })
    .unwrap()
}

#[test]
fn hop_by_hop_fields_stay_behind() {
    let names = [
        "Connection",
        "HTTP2-Settings",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Proxy-Authentication-Info",
        "Proxy-Authorization",
        "Proxy-Connection",
        "TE",
        "Upgrade",
    ];
    for name in names {
        assert!(is_hop_by_hop(name.to_lowercase().as_bytes()), "{name}");
        assert_eq!(
            forwarded(&format!("A: 1\r\n{name}: b\r\nC: 2\r\n")),
            ["A", "C"],
            "{name}"
        );
    }
    assert!(is_hop_by_hop(b"Transfer-Encoding"));
    assert_eq!(
        forwarded("Transfer-Encoding: chunked\r\nTrailer: x\r\n"),
        ["Trailer"]
    );
}

#[test]
fn fields_named_by_connection_stay_behind() {
    assert_eq!(
        forwarded("Connection: x-one, X-Three\r\nX-One: 1\r\nX-Two: 2\r\nX-THREE: 3\r\n"),
        ["X-Two"]
    );
    assert_eq!(
        forwarded("X-One: 1\r\nConnection: close\r\nX-Two: 2\r\nconnection: x-one\r\n"),
        ["X-Two"]
    );
}

#[test]
fn connection_cannot_strip_what_every_recipient_needs() {
    let fields = "Cookie: a\r\nAuthorization: b\r\nContent-Length: 3\r\nCache-Control: no-cache\r\nX-Forwarded-For: 1.2.3.4\r\nX-Gone: 1\r\n";
    let listed = "Connection: host, cookie, authorization, content-length, cache-control, x-forwarded-for, x-gone\r\n";
    assert_eq!(
        forwarded(&format!("{fields}{listed}")),
        [
            "Cookie",
            "Authorization",
            "Content-Length",
            "Cache-Control",
            "X-Forwarded-For"
        ]
    );
}

#[test]
fn responses_forward_alike_and_keep_host() {
    let text =
        b"HTTP/1.1 200\r\nConnection: x-a\r\nX-A: 1\r\nHost: h\r\nETag: e\r\nKeep-Alive: 5\r\n\r\n";
    let names = with_response(text, |head| {
        head.forward_fields()
            .map(|(n, _)| n.to_vec())
            .collect::<Vec<_>>()
    });
    assert_eq!(names.unwrap(), [&b"Host"[..], b"ETag"]);
}

#[test]
fn a_length_is_sent_on_unless_the_status_forbids_it() {
    let sent_on = |status: u16| {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\n");
        with_response(text.as_bytes(), |head| head.forward_fields().count())
    };
    assert_eq!((sent_on(200), sent_on(304)), (Ok(1), Ok(1)));
    assert_eq!((sent_on(103), sent_on(204)), (Ok(0), Ok(0)));
}
