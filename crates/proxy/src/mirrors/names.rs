//! Names by which clients know Foxy. A mirror writes only these names into the URLs of its documents, because
//! many clients get the same document. A client can send any name in its request, so other names are never
//! written.

use std::net::{IpAddr, SocketAddr};

use foxy_base::rule;
use foxy_http1::{Host, Scheme, Url};

/// A URL by which clients know Foxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// True if clients use TLS for this URL.
    pub secure: bool,
    /// Host in lower case, and the port if it is not the default port of the scheme.
    pub authority: String,
}

impl PublicUrl {
    fn base(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }
}

/// Returns the scheme and authority that are written into documents, if the URL of a request has one of
/// Foxy's own names. Foxy's own names are the public names, and the address that the client has connected to.
/// `spoken` is the scheme of the connection.
pub(crate) fn own_name(
    public: &[PublicUrl],
    url: &Url<'_>,
    spoken: Scheme,
    here: Option<SocketAddr>,
) -> Option<String> {
    let mut host = Vec::new();
    url.authority.write_host(&mut host);
    let host = String::from_utf8(host).ok()?.to_ascii_lowercase();
    let port = url.authority.port_or_default(spoken);
    let is_known = |known: &&PublicUrl| {
        let default = if known.secure { 443 } else { 80 };
        let (name, known_port) = match known.authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(default)),
            _ => (&known.authority[..], default),
        };
        // Another server may terminate TLS in front of Foxy, and Foxy does not know the port of this server.
        // So a URL without a port is compared with the default port of the public name.
        let asked = url.authority.port.unwrap_or(default);
        name.trim_matches(['[', ']']) == host.trim_matches(['[', ']']) && known_port == asked
    };
    if let Some(known) = public.iter().find(is_known) {
        return Some(known.base());
    }
    let here = here?;
    let ip = here.ip().to_canonical();
    let same = match url.authority.host {
        Host::V6(asked) => IpAddr::from(asked).to_canonical() == ip,
        Host::Name(_) => {
            host.parse::<IpAddr>().is_ok_and(|asked| asked == ip)
                || host == "localhost" && ip.is_loopback()
        }
    };
    if rule!(
        "mirror: documents name Foxy by its own names alone",
        !same || port != here.port(),
        false
    ) {
        return None;
    }
    let mut base = match spoken {
        Scheme::Https => b"https://".to_vec(),
        Scheme::Http => b"http://".to_vec(),
    };
    url.authority.write_normalised(spoken, &mut base);
    String::from_utf8(base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_http1::Authority;

    fn base(authority: &str, spoken: Scheme, here: &str) -> Option<String> {
        let public = [
            PublicUrl {
                secure: true,
                authority: "cache.test".into(),
            },
            PublicUrl {
                secure: false,
                authority: "plain.test:3128".into(),
            },
        ];
        let url = Url {
            scheme: Scheme::Http,
            authority: Authority::parse(authority.as_bytes()).unwrap(),
            path: b"/",
        };
        own_name(&public, &url, spoken, here.parse().ok())
    }

    #[test]
    fn only_own_names_are_known() {
        let here = "127.0.0.1:3128";
        for (authority, expected) in [
            ("cache.test", Some("https://cache.test")),
            ("CACHE.test:443", Some("https://cache.test")),
            ("cache.test:3128", None),
            ("plain.test:3128", Some("http://plain.test:3128")),
            ("plain.test", None),
            ("127.0.0.1:3128", Some("http://127.0.0.1:3128")),
            ("LocalHost:3128", Some("http://localhost:3128")),
            ("127.0.0.1", None),
            ("127.0.0.2:3128", None),
            ("evil.test:3128", None),
            ("169.254.169.254:3128", None),
        ] {
            assert_eq!(
                base(authority, Scheme::Http, here).as_deref(),
                expected,
                "{authority}"
            );
        }
        assert_eq!(base("localhost:3128", Scheme::Http, "192.0.2.1:3128"), None);
        assert_eq!(
            base("[::1]:8", Scheme::Http, "[::1]:8").as_deref(),
            Some("http://[::1]:8")
        );
        assert_eq!(
            base("192.0.2.1", Scheme::Https, "192.0.2.1:443").as_deref(),
            Some("https://192.0.2.1")
        );
        assert_eq!(base("127.0.0.1:3128", Scheme::Http, "?"), None);
    }
}
