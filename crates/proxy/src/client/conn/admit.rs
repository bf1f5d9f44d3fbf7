//! The check of the port in a request's URL, and the refusals of clients and ports that are not allowed.
//! These refusals come before the cache lookup.

use foxy_base::rule;
use foxy_http1::Url;

use crate::access::refusal::Refusal;
use crate::{Access, Role};

/// Refusal of a client that may not use the listener.
pub(crate) const CLIENT: Refusal = Refusal {
    status: 403,
    reason: "client-not-allowed",
};

/// Refusal of a request whose URL has a port that is not allowed for web requests.
pub(crate) const PORT: Refusal = Refusal {
    status: 403,
    reason: "port-not-allowed",
};

/// True if a request for this URL may use the URL's port. A site's origin may have any port, because the
/// operator chose it.
pub(crate) fn port(access: &Access, role: &Role, url: &Url<'_>) -> bool {
    let port = url.authority.port_or_default(url.scheme);
    !matches!(role, Role::Forward)
        || rule!(
            "guard: plain requests reach ports of web servers only",
            access.ports.iter().any(|ports| ports.contains(&port)),
            true
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;

    #[test]
    fn plain_requests_reach_the_ports_that_squid_lets_them_reach() {
        let access = Access::default();
        let site = Role::Site(Site::default());
        for (port, safe) in [
            (80, true),
            (21, true),
            (443, true),
            (70, true),
            (210, true),
            (280, true),
            (488, true),
            (591, true),
            (777, true),
            (1025, true),
            (8080, true),
            (65535, true),
            (22, false),
            (23, false),
            (25, false),
            (110, false),
            (465, false),
            (587, false),
            (1024, false),
        ] {
            let text = format!("http://a.test:{port}/");
            let url = Url::parse(text.as_bytes()).unwrap();
            assert_eq!(super::port(&access, &Role::Forward, &url), safe, "{port}");
            assert!(super::port(&access, &site, &url), "{port}");
        }
    }
}
