//! Digests of artefacts (files of packages), as index documents contain them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The digest of an artefact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-512.
    Sha512([u8; 64]),
}

/// An artefact (or an index file of a Debian archive), and its digest that was found in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Path of the artefact on the mirror, without query and fragment.
    pub path: Vec<u8>,
    /// Digest of the artefact.
    pub digest: Digest,
}

impl Found {
    /// Makes a value from a digest and a path. `path` may have a query and a fragment, which are removed.
    pub(crate) fn new(path: &[u8], digest: Digest) -> Self {
        let end = path.iter().position(|b| matches!(b, b'?' | b'#'));
        Self {
            path: path[..end.unwrap_or(path.len())].to_vec(),
            digest,
        }
    }
}

/// Reads bytes from hexadecimal digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut out = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// Reads a SHA-256 digest from hexadecimal digits.
pub(crate) fn of_hex(text: &[u8]) -> Option<Digest> {
    hex(text).map(Digest::Sha256)
}

/// Reads a digest as container images name it: `sha256:` or `sha512:` and digits in lower case.
#[must_use]
pub fn of_name(text: &str) -> Option<Digest> {
    let (name, digits) = text.split_once(':')?;
    if digits.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    match name {
        "sha256" => of_hex(digits.as_bytes()),
        "sha512" => hex(digits.as_bytes()).map(Digest::Sha512),
        _ => None,
    }
}

/// Reads the SHA-512 digest among the words of `integrity` (Subresource Integrity), if there is exactly one.
pub(crate) fn of_integrity(text: &[u8]) -> Option<Digest> {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter_map(|word| word.strip_prefix(b"sha512-"));
    let word = words.next().filter(|_| words.next().is_none())?;
    let coded = word.split(|b| *b == b'?').next()?;
    let bytes = STANDARD.decode(coded).ok()?;
    Some(Digest::Sha512(bytes.try_into().ok()?))
}

impl Digest {
    /// Returns the value of a `Repr-Digest` field with this digest (RFC 9530 section 3).
    #[must_use]
    pub fn field_value(&self) -> String {
        match self {
            Self::Sha256(bytes) => format!("sha-256=:{}:", STANDARD.encode(bytes)),
            Self::Sha512(bytes) => format!("sha-512=:{}:", STANDARD.encode(bytes)),
        }
    }

    /// Returns true if both digests have the same algorithm, so that they can be compared.
    #[must_use]
    pub const fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Sha256(_), Self::Sha256(_)) | (Self::Sha512(_), Self::Sha512(_))
        )
    }
}

/// Returns the digests in a value of `Repr-Digest` or `Content-Digest` (RFC 9530) that Foxy can compare.
/// Members of the dictionary that cannot be read are ignored.
pub fn of_field(value: &[u8]) -> impl Iterator<Item = Digest> {
    value.split(|b| *b == b',').filter_map(|member| {
        let member = member.split(|b| *b == b';').next()?.trim_ascii();
        let equals = member.iter().position(|b| *b == b'=')?;
        let coded = member[equals + 1..]
            .strip_prefix(b":")?
            .strip_suffix(b":")?;
        let bytes = STANDARD.decode(coded).ok()?;
        match &member[..equals] {
            b"sha-256" => Some(Digest::Sha256(bytes.try_into().ok()?)),
            b"sha-512" => Some(Digest::Sha512(bytes.try_into().ok()?)),
            _ => None,
        }
    })
}

/// Reads the SHA-256 digest at the end of a path in a Debian archive: `by-hash/SHA256/` and digits. A query
/// may follow the path.
#[must_use]
pub fn of_path(path: &[u8]) -> Option<Digest> {
    let path = path.split(|b| *b == b'?').next()?;
    let at = path.iter().rposition(|b| *b == b'/')?;
    path[..at].ends_with(b"/by-hash/SHA256").then_some(())?;
    of_hex(&path[at + 1..])
}

/// Reads the SHA-256 digest in the fragment of a URL.
pub(crate) fn of_fragment(url: &[u8]) -> Option<Digest> {
    let at = url.iter().position(|b| *b == b'#')?;
    let mut parts = url[at + 1..].split(|b| *b == b'&');
    parts.find_map(|part| of_hex(part.strip_prefix(b"sha256=")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_in_their_forms() {
        let hex = "00ff".repeat(16);
        let Some(Digest::Sha256(bytes)) = of_hex(hex.as_bytes()) else {
            panic!("{hex}");
        };
        assert_eq!(bytes, [[0, 255]; 16].concat()[..]);
        assert!(of_hex(b"00").is_none() && of_hex("zz".repeat(32).as_bytes()).is_none());
        let url = format!("/a.whl#egg=a&sha256={hex}");
        assert_eq!(of_fragment(url.as_bytes()), of_hex(hex.as_bytes()));
        let long = STANDARD.encode([7; 64]);
        let one = format!("sha1-AAAA sha512-{long}?x");
        assert_eq!(of_integrity(one.as_bytes()), Some(Digest::Sha512([7; 64])));
        for wrong in [
            format!("sha512-{long} sha512-{long}"),
            "sha512-AAAA".into(),
            "sha1-x".into(),
        ] {
            assert_eq!(of_integrity(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn digests_in_paths() {
        let hex = "00ff".repeat(16);
        let of = |path: String| of_path(path.as_bytes());
        let right = of(format!("/apt/dists/a/main/by-hash/SHA256/{hex}?x"));
        assert!(right.is_some() && right == of_hex(hex.as_bytes()));
        for other in [
            format!("/apt/dists/a/main/by-hash/SHA512/{hex}"),
            format!("/apt/dists/a/main/by-hash/SHA256/{hex}/x"),
            format!("/apt/dists/a/main/by-hash/SHA256/{hex}0"),
            format!("/apt/pool/x?by-hash/SHA256/{hex}"),
            hex,
        ] {
            assert_eq!(of(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn digests_in_fields() {
        for digest in [Digest::Sha256([7; 32]), Digest::Sha512([8; 64])] {
            let text = digest.field_value();
            let all: Vec<Digest> = of_field(text.as_bytes()).collect();
            assert_eq!(all, [digest]);
            let many = format!("md5=:AAAA:, {text};x=1 ,sha-256=7, sha-512=:AAAA:, sha-256");
            let all: Vec<Digest> = of_field(many.as_bytes()).collect();
            assert_eq!(all, [digest], "{many}");
        }
        assert!(!Digest::Sha256([0; 32]).is_like(&Digest::Sha512([0; 64])));
        assert_eq!(of_field(b"").count() + of_field(b"=,:;,=::").count(), 0);
    }
}
