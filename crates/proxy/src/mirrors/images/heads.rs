//! Heads of requests to registries of container images, and heads of their answers.

use foxy_base::eq_name;

use super::{ImagePart, PROOF_SECONDS, PROOF_STALE};

/// The changes to the head of a client's request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changed<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    /// Host and port, if the request goes to a server other than the registry.
    pub(crate) host: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    /// The range that is requested.
    pub(crate) range: Option<&'a str>,
}

/// Returns the head of the request to a server. It consists of the changed values in `to` and of the other
/// fields of `head`.
pub(crate) fn request(head: &[u8], to: &Changed<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len() + 256);
    let line = |out: &mut Vec<u8>, parts: [&str; 2]| {
        for part in parts {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    };
    line(&mut out, [to.method, &format!(" {} HTTP/1.1", to.target)]);
    if let Some(host) = to.host {
        line(&mut out, ["Host: ", host]);
    }
    for (name, value) in fields(head) {
        let replaced = eq_name(name, b"authorization")
            || to.host.is_some() && eq_name(name, b"host")
            || to.range.is_some() && eq_name(name, b"range");
        if !replaced {
            push(&mut out, name, value);
        }
    }
    for (name, value) in [("Authorization: ", to.authorization), ("Range: ", to.range)] {
        if let Some(value) = value {
            line(&mut out, [name, value]);
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Returns the name and value of each field line after the first line.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|b| *b == b'\n').skip(1);
    lines.filter_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|b| *b == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Returns the field lines of an answer as the cache receives them. `lines` already contains the changes that
/// all kinds of mirrors need.
pub(super) fn answer(part: &ImagePart, mirror: &str, status: u16, lines: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len() + 128);
    if part.is_proof() {
        out.extend_from_slice(b"Content-Length: 0\r\n");
        if status == 200 {
            let control = format!(
                "Cache-Control: public, max-age={PROOF_SECONDS}, stale-if-error={PROOF_STALE}\r\n"
            );
            out.extend_from_slice(control.as_bytes());
        }
    }
    // The function `fields` skips the first line. So an empty line is added before the field lines.
    let text = [b"\n", lines].concat();
    let digest = fields(&text).find(|(name, _)| eq_name(name, b"docker-content-digest"));
    let digest = digest.filter(|(_, value)| {
        let name = std::str::from_utf8(value).ok();
        part.is_manifest() && name.and_then(foxy_mirror::digest_of_name).is_some()
    });
    for (name, value) in fields(&text) {
        let of_connection = eq_name(name, b"connection");
        let dropped = eq_name(name, b"www-authenticate")
            || digest.is_some() && eq_name(name, b"etag")
            || part.is_proof() && !of_connection;
        if !dropped {
            push(&mut out, name, value);
        }
    }
    if let Some((_, value)) = digest {
        push(&mut out, b"ETag", &[b"\"", value, b"\""].concat());
    }
    if status == 401 {
        let realm = format!("Basic realm=\"{mirror}\"");
        push(&mut out, b"WWW-Authenticate", realm.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_changed_in_what_is_said_alone() {
        let head =
            b"GET /v2/a HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eA==\r\nAccept: x\r\n\r\n";
        let to = Changed {
            method: "HEAD",
            target: "/b?c",
            host: Some("b:1"),
            authorization: None,
            range: None,
        };
        let text = String::from_utf8(request(head, &to)).unwrap();
        assert_eq!(text, "HEAD /b?c HTTP/1.1\r\nHost: b:1\r\nAccept: x\r\n\r\n");
        let to = Changed {
            host: None,
            authorization: Some("Bearer t"),
            range: Some("bytes=0-0"),
            ..to
        };
        let text = String::from_utf8(request(head, &to)).unwrap();
        assert_eq!(
            text,
            "HEAD /b?c HTTP/1.1\r\nHost: a\r\nAccept: x\r\nAuthorization: Bearer t\r\nRange: bytes=0-0\r\n\r\n"
        );
    }
}
