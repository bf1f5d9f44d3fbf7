//! Makes the answer fields that ask a client to log in.

use foxy_http1::write;

use super::Logins;

/// Returns the field lines that ask a client to log in at a site (`site` is true) or at the forward proxy.
pub(crate) fn challenge(logins: &Logins, site: bool) -> Vec<u8> {
    let mut fields = Vec::new();
    let name: &[u8] = match site {
        true => b"WWW-Authenticate",
        false => b"Proxy-Authenticate",
    };
    let realm = logins.realm();
    let basic = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    write::field(&mut fields, name, basic.as_bytes());
    if logins.have_tokens() {
        let bearer = format!("Bearer realm=\"{realm}\"");
        write::field(&mut fields, name, bearer.as_bytes());
    }
    fields
}
