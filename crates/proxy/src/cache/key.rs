//! Cache keys have the form `<partition> GET <scheme>://<authority><path?query>`, which is readable and
//! unambiguous. A key of this form is a primary key. The partition is `forward` for the forward proxy, or the
//! name of the site. A mirror has several partitions.
//!
//! HEAD is answered from the entries of GET. The key of a variant (Vary) is the primary key followed by
//! `\n<nonce>\n<selecting values>`. The stored Vary list names request fields and cookies. Their values in
//! the request are the selecting values, in the form in which the origin receives them (see `http::sent`).
//! The nonce is a random number. It is stored in the primary entry, which is the object under the primary
//! key. Without the nonce, no request can find a variant. So the variants become unreachable if the primary
//! entry is purged or evicted, or if an entry with another Vary list replaces it.

use foxy_base::rule;
use foxy_http_rules::{RuleId, RuleSet};
use foxy_http1::Url;
use foxy_store::Object;

use crate::http::route::escapes;

/// Writes the primary key into `out`, which is cleared first. Returns the operator's rule (`[[rule]]`) that
/// applies to the key.
pub(crate) fn primary(
    rules: &RuleSet,
    partition: &str,
    url: &Url<'_>,
    out: &mut Vec<u8>,
) -> RuleId {
    out.clear();
    let part = rule!("key: sites do not share objects", partition, "forward");
    out.extend_from_slice(part.as_bytes());
    out.extend_from_slice(b" GET ");
    url.write(escapes(rules, partition), out);
    rules.apply(partition, out)
}

/// Returns the offset of path and query in a primary key. Path and query are the request target for the
/// origin. Returns `None` if the key has another form.
pub(crate) fn target_at(partition: &str, key: &[u8]) -> Option<usize> {
    let url_at = partition.len() + b" GET ".len();
    let scheme = key.get(url_at..)?.windows(3).position(|w| w == b"://")?;
    let authority_at = url_at + scheme + 3;
    let authority = key[authority_at..].iter().position(|b| *b == b'/')?;
    Some(authority_at + authority)
}

/// Appends the nonce and the selecting values to the primary key in `out`, which turns `out` into the key of
/// a variant.
pub(crate) fn push_variant(nonce: u64, values: &[u8], out: &mut Vec<u8>) {
    out.push(b'\n');
    for shift in (0..16).rev() {
        out.push(b"0123456789abcdef"[(nonce >> (shift * 4) & 15) as usize]);
    }
    out.push(b'\n');
    out.extend_from_slice(values);
}

/// Returns the Vary section of an object: the list, a line end, and the selecting values.
pub(crate) fn join_vary(list: &[u8], values: &[u8]) -> bytes::Bytes {
    [list, b"\n", values].concat().into()
}

/// Returns the Vary list and the selecting values of an object. Returns `None` if the object has no Vary
/// list.
pub(crate) fn split_vary(object: &Object) -> Option<(&[u8], &[u8])> {
    let vary = object.vary();
    let end = vary.iter().position(|b| *b == b'\n')?;
    Some((&vary[..end], &vary[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_http1::{Authority, Scheme};

    fn of(partition: &str, authority: &str, path: &str) -> String {
        let url = Url {
            scheme: Scheme::Http,
            authority: Authority::parse(authority.as_bytes()).unwrap(),
            path: path.as_bytes(),
        };
        let mut key = b"rest of the last one".to_vec();
        let rules = RuleSet::default().with_received(vec!["raw".into()]);
        primary(&rules, partition, &url, &mut key);
        let at = target_at(partition, &key).unwrap();
        assert!(key[at..].starts_with(b"/") && key[..at].ends_with(&key[at - 4..at]));
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn paths_have_one_form_unless_their_partition_keeps_them() {
        let escaped = "/%7ea/%2e%2e/%c3?%41";
        assert_eq!(
            of("forward", "e.com", escaped),
            "forward GET http://e.com/~a/%2E%2E/%C3?%41"
        );
        assert_eq!(
            of("raw", "e.com", escaped),
            "raw GET http://e.com/%7ea/%2e%2e/%c3?%41"
        );
    }

    #[test]
    fn equal_urls_have_equal_keys_and_partitions_differ() {
        assert_eq!(
            of("forward", "Example.COM:80", "/a?b=1"),
            "forward GET http://example.com/a?b=1"
        );
        assert_eq!(
            of("forward", "example.com", ""),
            "forward GET http://example.com/"
        );
        assert_ne!(of("forward", "e.com", "/"), of("site", "e.com", "/"));
        assert_ne!(of("forward", "e.com", "/a"), of("forward", "e.com", "/A"));
    }

    #[test]
    fn variants_append_nonce_and_values() {
        let mut key = b"k".to_vec();
        push_variant(0x1f, b"accept=a\n", &mut key);
        assert_eq!(key, b"k\n000000000000001f\naccept=a\n");
    }
}
