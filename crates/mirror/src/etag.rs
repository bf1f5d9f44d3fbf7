//! ETags of rewritten documents. A rewritten document depends only on the upstream's document, on the
//! settings of the mirror, and on the address by which clients reach Foxy. So its ETag consists of the
//! upstream's ETag and a mark, which is a hash of these settings and this address. When the document is
//! validated, the upstream's ETag can be restored.

/// Makes the ETag of the rewritten document. Returns `None` if `etag` is not an ETag.
#[must_use]
pub fn of_mirror(etag: &[u8], mark: &str) -> Option<Vec<u8>> {
    let inner = etag.strip_suffix(b"\"")?;
    inner
        .contains(&b'"')
        .then(|| [inner, b";", mark.as_bytes(), b"\""].concat())
}

/// Restores the upstream's ETag from the ETag of a rewritten document. Returns `None` if that ETag has
/// another mark.
#[must_use]
pub fn of_origin(etag: &[u8], mark: &str) -> Option<Vec<u8>> {
    let end = format!(";{mark}\"");
    let inner = etag.strip_suffix(end.as_bytes())?;
    Some([inner, b"\""].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_there_and_back() {
        for etag in ["\"abc\"", "W/\"abc\"", "\"\"", "\"a;b\""] {
            let own = of_mirror(etag.as_bytes(), "m1").unwrap();
            assert_eq!(of_origin(&own, "m1").unwrap(), etag.as_bytes());
            assert_eq!(of_origin(&own, "m2"), None);
            assert_ne!(own, etag.as_bytes());
        }
        assert_eq!(of_mirror(b"W/\"abc\"", "m").unwrap(), b"W/\"abc;m\"");
        for wrong in [&b"abc"[..], b"", b"\""] {
            assert_eq!(of_mirror(wrong, "m"), None);
        }
    }
}
