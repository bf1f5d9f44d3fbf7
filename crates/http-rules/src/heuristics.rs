//! Heuristic lifetimes and users. RFC 9111 section 4.2.2 allows heuristics for every response without
//! freshness information. Pages that differ by user often have neither freshness information nor Vary. So a
//! heuristic lifetime applies only if the request has no credentials, or if sites usually serve content of
//! this type alike to all users.

use foxy_base::{Fields, first, rule};

use crate::facts::{CachingFacts, Flags};
use crate::reason::LifetimeSource;
use crate::request::RequestFacts;
use crate::text::media_type;

/// True if the answer to this request may have a heuristic lifetime.
pub(crate) fn is_allowed<F: Fields + ?Sized>(request: &RequestFacts, response: &F) -> bool {
    let signed = rule!(
        "heuristic: an answer to Authorization has no heuristic lifetime",
        request.authorization,
        false
    );
    let visitor = rule!(
        "heuristic: a page that was asked for with a cookie has none",
        request.cookie,
        false
    );
    !signed && (!visitor || is_static(response))
}

/// True if only a heuristic lifetime permits sharing this stored response, and the request has credentials.
/// Then the response must be validated.
pub(crate) fn is_all_for(request: &RequestFacts, stored: &CachingFacts) -> bool {
    let unsaid =
        stored.flags.has(Flags::HEURISTIC) || matches!(stored.source, LifetimeSource::None);
    request.has_credentials() && unsaid && !stored.flags.has(Flags::STATIC_TYPE)
}

/// True if content of this type is usually the same for all users: images, fonts, sound, video, style sheets
/// and scripts.
pub(crate) fn is_static<F: Fields + ?Sized>(fields: &F) -> bool {
    let Some(line) = first(fields, "Content-Type") else {
        return false;
    };
    let media = media_type(line);
    let whole = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| media.eq_ignore_ascii_case(name.as_bytes()))
    };
    let begins = |prefixes: &[&str]| {
        prefixes.iter().any(|prefix| {
            let head = media.get(..prefix.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
        })
    };
    begins(&["image/", "font/", "application/font-", "audio/", "video/"])
        || whole(&[
            "text/css",
            "text/javascript",
            "application/javascript",
            "application/x-javascript",
        ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn types_that_are_the_same_for_all_users() {
        let is = |text: &str| is_static(&fields(&format!("Content-Type: {text}")));
        for text in [
            "image/png",
            "Image/SVG+xml",
            "font/woff2",
            "application/font-woff",
            "audio/ogg",
            "video/mp4; codecs=av1",
            "text/css;charset=utf-8",
            "TEXT/JavaScript ; charset=utf-8",
            "application/javascript",
            "application/x-javascript",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "text/html",
            "application/json",
            "application/octet-stream",
            "text/cssx",
            "imag",
            "x-image/png",
            "",
        ] {
            assert!(!is(text), "{text}");
        }
        assert!(!is_static(&fields("A: b")));
    }
}
