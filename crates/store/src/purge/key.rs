//! The input of a purge: the parts of a key, and the tags in an object's fields.
//!
//! A key is `<partition> GET <scheme>://<authority><path?query>`; the key of a variant has a line end
//! and further text after that. A key of any other form counts as a URL without a host, in no
//! partition.

use foxy_base::{Fields, eq_name};

/// The parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    /// The partition of the key.
    pub partition: &'a [u8],
    /// The whole URL.
    pub url: &'a [u8],
    /// The URL without its scheme.
    pub bare: &'a [u8],
    /// The host, and the port if it is not the default port of the scheme.
    pub authority: &'a [u8],
    /// The host.
    pub host: &'a [u8],
    /// The part that distinguishes variants; empty for a key without such a part.
    pub variant: &'a [u8],
}

impl<'a> KeyParts<'a> {
    /// Splits a key into its parts.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Self {
        let end = find(key, b"\n").unwrap_or(key.len());
        let (line, variant) = key.split_at(end);
        let (partition, url) = match find(line, b" GET ") {
            Some(at) => (&line[..at], &line[at + 5..]),
            None => (&b""[..], line),
        };
        let scheme = find(url, b"://").map_or(0, |at| at + 3);
        let bare = &url[scheme..];
        let authority = match scheme {
            0 => &b""[..],
            _ => &bare[..bare.iter().position(|b| *b == b'/').unwrap_or(bare.len())],
        };
        Self {
            partition,
            url,
            bare,
            authority,
            host: host(authority),
            variant,
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

fn host(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|b| *b == b':') {
        Some(at) if !authority[at..].contains(&b']') => &authority[..at],
        _ => authority,
    }
}

/// Calls `each` for every purge tag in the response fields: `Surrogate-Key` and `xkey` contain words,
/// and `Cache-Tag` contains a list with commas.
pub fn for_each_tag<F: Fields + ?Sized>(fields: &F, mut each: impl FnMut(&[u8])) {
    for i in 0..fields.count() {
        let (name, value) = fields.field(i);
        let comma = match name.len() {
            9 => eq_name(name, b"cache-tag"),
            4 if eq_name(name, b"xkey") => false,
            13 if eq_name(name, b"surrogate-key") => false,
            _ => continue,
        };
        if name.len() == 9 && !comma {
            continue;
        }
        let ends = |b: &u8| {
            if comma {
                *b == b','
            } else {
                b.is_ascii_whitespace()
            }
        };
        let tags = value.split(ends).map(<[u8]>::trim_ascii);
        tags.filter(|tag| !tag.is_empty()).for_each(&mut each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_apart() {
        let key = b"forward GET http://[::1]:81/a?b=http://c/\n00\nen";
        let parts = KeyParts::of(key);
        assert_eq!(parts.partition, b"forward");
        assert_eq!(parts.url, b"http://[::1]:81/a?b=http://c/");
        assert_eq!(parts.bare, b"[::1]:81/a?b=http://c/");
        assert_eq!(parts.authority, b"[::1]:81");
        assert_eq!(parts.host, b"[::1]");
        assert_eq!(parts.variant, b"\n00\nen");
        let parts = KeyParts::of(b"shop GET https://a.test/");
        assert_eq!((parts.host, parts.variant), (&b"a.test"[..], &b""[..]));
        let parts = KeyParts::of(b"12 key");
        assert_eq!((parts.url, parts.host), (&b"12 key"[..], &b""[..]));
    }

    #[test]
    fn tags_of_all_three_fields() {
        let fields: &[(&str, &str)] = &[
            ("Surrogate-Key", "a  b"),
            ("cache-tag", "c d, e,,"),
            ("XKEY", "f"),
            ("Cache-Tog", "no"),
            ("X-Cache-Tag", "no"),
        ];
        let mut tags = Vec::new();
        let fields: Vec<(&[u8], &[u8])> = fields
            .iter()
            .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
            .collect();
        for_each_tag(&fields[..], |tag| tags.push(tag.to_vec()));
        assert_eq!(tags, [&b"a"[..], b"b", b"c d", b"e", b"f"]);
    }
}
