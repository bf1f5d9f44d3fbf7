//! One JSON object a line, with a map from the fields of a request to members of the object.
//!
//! Dots name members inside members (`request.uri`). Without a map, the usual names of common servers are
//! tried: nginx and others with `escape=json`, Caddy, and Foxy itself.

use std::str::FromStr;

use serde_json::Value;

use super::words::seconds;
use super::{Bad, date, url};
use crate::{Class, Flags, Method, Request};

/// Fields of a request, and the member names that are tried if the map does not name a member.
const USUAL: [(&str, &[&str]); 8] = [
    ("url", &["url", "uri", "request_uri", "request.uri", "path"]),
    (
        "host",
        &["host", "http_host", "request.host", "server_name"],
    ),
    (
        "size",
        &[
            "size",
            "bytes",
            "body_bytes_sent",
            "bytes_sent",
            "bytes_to_client",
        ],
    ),
    (
        "time",
        &[
            "time",
            "ts",
            "timestamp",
            "msec",
            "time_iso8601",
            "@timestamp",
        ],
    ),
    ("status", &["status", "response_status"]),
    ("method", &["method", "request_method", "request.method"]),
    (
        "client",
        &["client", "remote_addr", "client_ip", "request.remote_ip"],
    ),
    ("type", &["type", "content_type", "sent_http_content_type"]),
];

/// A map from fields of a request to members of a log's objects: `url=request_uri,size=body_bytes_sent`.
/// Fields that the map does not name use their usual member names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMap(Vec<(&'static str, String)>);

impl FromStr for FieldMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || USUAL.map(|(name, _)| name).join(", ");
        let pair = |part: &str| {
            let (what, member) = part.split_once('=').ok_or_else(|| {
                format!("`{part}` is not WHAT=MEMBER; WHAT is one of {}", known())
            })?;
            let found = USUAL.iter().find(|(name, _)| *name == what.trim());
            let (name, _) =
                found.ok_or_else(|| format!("`{what}` is not known; a map names {}", known()))?;
            Ok((*name, member.trim().to_owned()))
        };
        text.split(',')
            .map(pair)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl FieldMap {
    fn find<'v>(&self, object: &'v Value, what: &str) -> Option<&'v Value> {
        if let Some((_, member)) = self.0.iter().find(|(name, _)| *name == what) {
            return inside(object, member);
        }
        let (_, names) = USUAL.iter().find(|(name, _)| *name == what)?;
        names.iter().find_map(|name| inside(object, name))
    }
}

/// Finds a member, or a member inside a member. A member whose own name is `a.b` is found before the member
/// `b` of a member `a`.
fn inside<'v>(object: &'v Value, member: &str) -> Option<&'v Value> {
    object.get(member).or_else(|| {
        member
            .split('.')
            .try_fold(object, |value, part| value.get(part))
    })
}

pub(super) fn parse(fields: &FieldMap, line: &[u8]) -> Result<Request, Bad> {
    let object: Value = serde_json::from_slice(line).map_err(|_| "not a JSON object")?;
    if !object.is_object() {
        return Err("not a JSON object");
    }
    let find = |what| fields.find(&object, what);
    let words = |what| find(what).and_then(Value::as_str).map(str::as_bytes);
    let target = words("url").ok_or("no member with the URL; name it by --fields url=MEMBER")?;
    let size = find("size").ok_or("no member with the size; name it by --fields size=MEMBER")?;
    let status = match find("status") {
        Some(value) => number(value)
            .filter(|code| matches!(code, 0 | 100..=599))
            .ok_or("bad status")?,
        None => 0,
    };
    let mut request = Request {
        time_ms: match find("time") {
            Some(value) => time(value).ok_or("time not understood")?,
            None => 0,
        },
        size: number(size).ok_or("size is not a number")?,
        client: words("client").map_or(0, url::short_hash),
        status: status as u16,
        method: words("method").map_or(Method::Get, Method::from_name),
        flags: Flags::default().with_if(Flags::CONDITIONAL, status == 304),
        ..Request::default()
    };
    match words("host").filter(|_| target.starts_with(b"/")) {
        Some(host) => url::describe(&[b"http://", host, target].concat(), &mut request),
        None => url::describe(target, &mut request),
    }
    if let Some(class) = words("type").and_then(Class::from_type) {
        request.class = class;
    }
    Ok(request)
}

/// A number, which may be written as text; `-` and the empty text are 0.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) if text.is_empty() => Some(0),
        Value::String(text) => super::words::number_or_dash(text.as_bytes()),
        other => other.as_u64(),
    }
}

/// Converts a time to milliseconds since 1970. The log may contain seconds with a fraction, milliseconds, or
/// a date in ISO 8601 or in the format of common logs.
fn time(value: &Value) -> Option<i64> {
    /// Numbers above this are milliseconds. (As seconds, this is the year 5138.)
    const SECONDS_MOST: f64 = 1e11;
    match value {
        Value::String(text) => seconds(text.as_bytes())
            .or_else(|| date::iso(text))
            .or_else(|| date::parse(text.as_bytes())),
        other => {
            let number = other.as_f64().filter(|n| (0.0..1e15).contains(n))?;
            let millis = if number < SECONDS_MOST {
                number * 1e3
            } else {
                number
            };
            Some(millis.round() as i64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_and_named_members() {
        let nginx = br#"{"time_iso8601":"1995-07-01T00:00:01-04:00","remote_addr":"10.0.0.1",
            "request_method":"GET","host":"h","request_uri":"/a.gif?x","status":"200","body_bytes_sent":"62"}"#;
        let r = parse(&FieldMap::default(), nginx).unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (804_571_201_000, 62, 200));
        assert!(r.class == Class::Image && r.flags.has(Flags::QUERY) && r.server != 0);
        let caddy = br#"{"ts":804571201.5,"request":{"remote_ip":"c","method":"HEAD","host":"h","uri":"/a.gif?x"},
            "size":62,"status":304}"#;
        let c = parse(&FieldMap::default(), caddy).unwrap();
        assert_eq!(
            (c.time_ms, c.method, c.object),
            (804_571_201_500, Method::Head, r.object)
        );
        assert!(c.flags.has(Flags::CONDITIONAL));
        let map: FieldMap = "url=u, size=n.out".parse().unwrap();
        let own = parse(
            &map,
            br#"{"u":"http://h/a.gif?x","n":{"out":7},"url":"/no"}"#,
        )
        .unwrap();
        assert_eq!(
            (own.object, own.size, own.status, own.time_ms),
            (r.object, 7, 0, 0)
        );
    }

    #[test]
    fn what_is_missing_is_named_with_the_option_that_helps() {
        for (line, why) in [
            ("x", "not a JSON object"),
            ("[1]", "not a JSON object"),
            (
                r#"{"size":1}"#,
                "no member with the URL; name it by --fields url=MEMBER",
            ),
            (
                r#"{"url":"/"}"#,
                "no member with the size; name it by --fields size=MEMBER",
            ),
            (r#"{"url":"/","size":-1}"#, "size is not a number"),
            (
                r#"{"url":"/","size":1,"time":"soon"}"#,
                "time not understood",
            ),
            (r#"{"url":"/","size":1,"status":7}"#, "bad status"),
        ] {
            assert_eq!(
                parse(&FieldMap::default(), line.as_bytes()),
                Err(why),
                "{line}"
            );
        }
        assert!(
            "url"
                .parse::<FieldMap>()
                .unwrap_err()
                .contains("WHAT=MEMBER")
        );
        assert!(
            "uri=x"
                .parse::<FieldMap>()
                .unwrap_err()
                .contains("url, host")
        );
    }
}
