//! Content codings (RFC 9110 section 8.4.1) that Foxy itself applies to answers. It applies them only if the
//! stored response has no coding.
//!
//! A compressed answer is another representation than the answer without a coding. So its strong ETag becomes
//! a weak ETag, and ranges are not offered. If the answer of a URL may be compressed, every answer of this
//! URL has `Vary: Accept-Encoding`, even an answer without a coding.
//!
//! **Secrets.** The length of a compressed body reveals which of its parts repeat (BREACH). So only answers
//! that are the same for all users are compressed. Such an answer is stored, has neither `Set-Cookie` nor
//! `private`, and is not selected by cookies or `Authorization`. The request must not have `Authorization`.
//! If the request has cookies, the answer's media type must be one whose contents are usually the same for
//! all users, such as style sheets and scripts.

use foxy_base::{FieldBlock, FieldBlockBuilder, Fields, FieldsIter, eq_name, first, tokens};

use crate::heuristics::is_static;
use crate::request::RequestFacts;
use crate::text::media_type;
use crate::vary;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
}

impl Coding {
    /// The name of the coding in `Content-Encoding` and `Accept-Encoding`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let all = [Self::Brotli, Self::Gzip];
        all.into_iter().find(|coding| coding.name() == name)
    }
}

/// Fields that describe the exact bytes of the body.
const OF_BYTES: [&str; 5] = [
    "Content-Digest",
    "Content-MD5",
    "Content-Range",
    "Digest",
    "Repr-Digest",
];

/// True if these fields permit compression of the answer. Then all answers of the same URL have
/// `Vary: Accept-Encoding`.
#[must_use]
pub fn is_compressible<F: Fields + ?Sized>(fields: &F) -> bool {
    let plain = first(fields, "Content-Encoding").is_none();
    let kind = first(fields, "Content-Type").is_some_and(is_text);
    let directive = |name: &str| has_directive(fields, name);
    plain
        && kind
        && !directive("no-transform")
        && !directive("private")
        && first(fields, "Set-Cookie").is_none()
        && OF_BYTES.iter().all(|name| first(fields, name).is_none())
}

fn has_directive<F: Fields + ?Sized>(fields: &F, name: &str) -> bool {
    tokens(fields, "Cache-Control").any(|token| {
        let end = token.iter().position(|b| *b == b'=');
        let word = token[..end.unwrap_or(token.len())].trim_ascii();
        word.eq_ignore_ascii_case(name.as_bytes())
    })
}

/// True for media types whose contents become much shorter by compression.
fn is_text(line: &[u8]) -> bool {
    const WHOLE: [&str; 12] = [
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "application/wasm",
        "application/x-javascript",
        "application/xml",
        "application/x-ndjson",
        "application/vnd.ms-fontobject",
        "font/otf",
        "font/ttf",
        "image/svg+xml",
        "image/x-icon",
    ];
    let media = media_type(line).to_ascii_lowercase();
    if media == b"text/event-stream" {
        return false;
    }
    media.starts_with(b"text/")
        || media.ends_with(b"+json")
        || media.ends_with(b"+xml")
        || WHOLE.iter().any(|known| media == known.as_bytes())
}

/// The coding to use for the answer to this request: the coding in `offered` that the request prefers. If the
/// request prefers several codings equally, the first of them in `offered` is used. `None` means the body
/// without a coding. Answers to requests with `Range`, `If-Match` or `If-Unmodified-Since` never have a
/// coding.
#[must_use]
pub fn wanted<F: Fields + ?Sized>(
    request: &RequestFacts,
    head: &F,
    offered: &[Coding],
) -> Option<Coding> {
    if request.range || request.precondition || has_directive(head, "no-transform") {
        return None;
    }
    let of = |name: &str| quality(head, name);
    let any = of("*");
    // If `identity` is not listed, the body without a coding has the lowest preference.
    let plain = of("identity").unwrap_or(0);
    let mut best: Option<(u16, Coding)> = None;
    for coding in offered {
        let own = of(coding.name());
        let old = (*coding == Coding::Gzip).then(|| of("x-gzip")).flatten();
        let Some(quality) = own.or(old).or(any).filter(|quality| *quality > 0) else {
            continue;
        };
        if best.is_none_or(|(known, _)| quality > known) {
            best = Some((quality, *coding));
        }
    }
    best.filter(|(quality, _)| *quality >= plain)
        .map(|(_, coding)| coding)
}

/// Weight of a coding in `Accept-Encoding`, in thousandths; `None` if the coding is not listed.
fn quality<F: Fields + ?Sized>(head: &F, name: &str) -> Option<u16> {
    tokens(head, "Accept-Encoding").find_map(|token| {
        let mut parts = token.split(|b| *b == b';').map(<[u8]>::trim_ascii);
        let is = parts.next()?.eq_ignore_ascii_case(name.as_bytes());
        is.then(|| {
            let weight = parts.find_map(|part| {
                let (name, value) = part.split_at_checked(2)?;
                name.eq_ignore_ascii_case(b"q=").then_some(value)
            });
            weight.map_or(1000, thousandths)
        })
    })
}

/// Parses a weight (RFC 9110 section 12.4.2); the result is in thousandths. It is 0 for other text.
fn thousandths(text: &[u8]) -> u16 {
    let text = std::str::from_utf8(text.trim_ascii()).unwrap_or_default();
    let value: f32 = match text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        true => text.parse().unwrap_or(0.0),
        false => 0.0,
    };
    (value.clamp(0.0, 1.0) * 1000.0) as u16
}

/// True if this stored answer may be compressed for the request: the answer contains nothing that is only for
/// one user. `list` is the answer's Vary list.
#[must_use]
pub fn is_for_all<F: Fields + ?Sized>(request: &RequestFacts, stored: &F, list: &[u8]) -> bool {
    let secret = |name: &[u8]| {
        ["cookie", "authorization"]
            .iter()
            .any(|of| eq_name(name, of.as_bytes()))
    };
    !request.authorization
        && (!request.cookie || is_static(stored))
        && !vary::field_names(list).any(secret)
}

/// True if `Vary` states that answers differ by `Accept-Encoding`.
#[must_use]
pub fn varies<F: Fields + ?Sized>(fields: &F) -> bool {
    tokens(fields, "Vary").any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
}

/// The fields of the compressed answer, made from the fields of the answer without a coding.
#[must_use]
pub fn coded_fields<F: Fields + ?Sized>(fields: &F, coding: Coding) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in FieldsIter::new(fields) {
        if eq_name(name, b"accept-ranges") {
            continue;
        }
        if eq_name(name, b"etag") && !value.starts_with(b"W/") {
            // The tag becomes weak, because the compressed body has other bytes with the same meaning (RFC
            // 9110 section 8.8.1).
            builder.push_any(name, &[b"W/", value].concat());
            continue;
        }
        builder.push_any(name, value);
    }
    builder.push_any(b"Content-Encoding", coding.name().as_bytes());
    if !varies(fields) {
        builder.push_any(b"Vary", b"Accept-Encoding");
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    fn request(text: &str) -> (RequestFacts, FieldBlock) {
        let head = fields(text);
        (RequestFacts::new(b"GET", &head), head)
    }

    #[test]
    fn answers_that_may_be_compressed() {
        for (text, expected) in [
            ("Content-Type: text/html; charset=utf-8", true),
            ("Content-Type: Application/JSON", true),
            ("Content-Type: application/problem+json", true),
            ("Content-Type: image/svg+xml", true),
            ("Content-Type: text/css | Vary: Origin | ETag: \"a\"", true),
            ("Content-Type: image/png", false),
            ("Content-Type: text/event-stream", false),
            ("Content-Type: application/octet-stream", false),
            ("ETag: \"a\"", false),
            ("Content-Type: text/css | Content-Encoding: gzip", false),
            ("Content-Type: text/css | Content-Encoding: identity", false),
            (
                "Content-Type: text/css | Cache-Control: max-age=1, No-Transform",
                false,
            ),
            (
                "Content-Type: text/css | Cache-Control: private=\"x\"",
                false,
            ),
            ("Content-Type: text/css | Set-Cookie: a=b", false),
            ("Content-Type: text/css | Content-Range: bytes 0-1/2", false),
            ("Content-Type: text/css | Repr-Digest: sha-256=:x:", false),
        ] {
            assert_eq!(is_compressible(&fields(text)), expected, "{text}");
        }
    }

    #[test]
    fn the_request_chooses_the_coding() {
        let both = [Coding::Brotli, Coding::Gzip];
        for (text, expected) in [
            ("Accept-Encoding: gzip, deflate, br", Some("br")),
            ("Accept-Encoding: gzip", Some("gzip")),
            ("Accept-Encoding: x-gzip", Some("gzip")),
            ("Accept-Encoding: br;q=0.5, gzip;q=0.8", Some("gzip")),
            ("Accept-Encoding: BR ; Q=0.5", Some("br")),
            ("Accept-Encoding: br;q=0, gzip", Some("gzip")),
            ("Accept-Encoding: br;q=0.000", None),
            ("Accept-Encoding: *", Some("br")),
            ("Accept-Encoding: br;q=0, *;q=0.1", Some("gzip")),
            ("Accept-Encoding: identity, gzip;q=0.5", None),
            ("Accept-Encoding: identity;q=0.5, gzip", Some("gzip")),
            ("Accept-Encoding: identity", None),
            ("Accept-Encoding: deflate", None),
            ("Accept-Encoding: ", None),
            ("Accept-Encoding: gzip;q=x", None),
            ("Accept-Encoding: gzip;q=inf", None),
            ("Accept: text/html", None),
            ("Accept-Encoding: gzip | Range: bytes=0-1", None),
            ("Accept-Encoding: gzip | If-Match: \"a\"", None),
            ("Accept-Encoding: gzip | Cache-Control: no-transform", None),
        ] {
            let (facts, head) = request(text);
            let got = wanted(&facts, &head, &both).map(Coding::name);
            assert_eq!(got, expected, "{text}");
        }
        let (facts, head) = request("Accept-Encoding: gzip, br");
        let gzip_first = [Coding::Gzip, Coding::Brotli];
        assert_eq!(wanted(&facts, &head, &gzip_first), Some(Coding::Gzip));
    }

    #[test]
    fn what_could_be_one_users_alone_is_not_compressed() {
        let (page, style) = (
            fields("Content-Type: text/html"),
            fields("Content-Type: text/css"),
        );
        for (asked, stored, list, expected) in [
            ("Accept: x", &page, "", true),
            ("Accept: x", &page, "accept-encoding,origin", true),
            ("Cookie: a=b", &page, "", false),
            ("Cookie: a=b", &style, "", true),
            ("Authorization: Basic x", &style, "", false),
            ("Accept: x", &style, "cookie", false),
            ("Accept: x", &style, "accept,cookie:session", false),
            ("Accept: x", &style, "authorization", false),
        ] {
            let facts = request(asked).0;
            let got = is_for_all(&facts, stored, list.as_bytes());
            assert_eq!(got, expected, "{asked} {list}");
        }
    }

    #[test]
    fn a_coded_answer_has_its_own_fields() {
        let text = |block: &FieldBlock| String::from_utf8(block.text().to_vec()).unwrap();
        let plain = fields("ETag: \"a\" | Accept-Ranges: bytes | Vary: Origin | X: y");
        assert_eq!(
            text(&coded_fields(&plain, Coding::Brotli)),
            "ETag: W/\"a\"\r\nVary: Origin\r\nX: y\r\nContent-Encoding: br\r\nVary: Accept-Encoding\r\n"
        );
        let weak = fields("ETag: W/\"a\" | Vary: Origin, Accept-Encoding");
        assert_eq!(
            text(&coded_fields(&weak, Coding::Gzip)),
            "ETag: W/\"a\"\r\nVary: Origin, Accept-Encoding\r\nContent-Encoding: gzip\r\n"
        );
    }
}
