//! The destination of a request, or the reason why it has none.

use foxy_base::{Fields, first, rule, tokens};
use foxy_http_rules::RuleSet;
use foxy_http1::{Authority, Escapes, Host, Method, RequestHead, Scheme, TargetForm, Url};

use crate::access::refusal::Refusal;
use crate::{Role, Site};

/// The destination of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route<'b> {
    /// The request goes to an origin. It uses the cache if method and fields permit this.
    Fetch(Url<'b>),
    /// The request opens a tunnel.
    Connect,
    /// The request removes the objects that are stored under the URL.
    Purge(Url<'b>),
    /// Foxy itself answers this `OPTIONS` request.
    Options,
    /// Foxy itself answers this `TRACE` request.
    Trace,
    /// The request is refused.
    Refuse(Refusal),
}

const fn refuse<'b>(status: u16, reason: &'static str) -> Route<'b> {
    Route::Refuse(Refusal { status, reason })
}

/// Decides about the destination of a request. `instance` is the name that this Foxy writes into `Via`.
pub(crate) fn route<'b>(head: &RequestHead<'b>, role: &'b Role, instance: &str) -> Route<'b> {
    if let Some(answer) = last_hop(head) {
        return answer;
    }
    if head.has_via()
        && rule!(
            "route: a request does not go round",
            passed_here_before(head, instance),
            false
        )
    {
        return refuse(508, "loop-detected");
    }
    match role {
        Role::Forward => forward(head),
        Role::Site(site) => reverse(head, site),
        Role::Undecided => undecided(head),
    }
}

fn forward<'b>(head: &RequestHead<'b>) -> Route<'b> {
    match head.form() {
        TargetForm::Authority => Route::Connect,
        TargetForm::Asterisk => Route::Options,
        TargetForm::Origin => refuse(400, "not-a-proxy-request"),
        TargetForm::Absolute => to_url(head, head.url(Scheme::Http)),
    }
}

/// Returns the route of a request whose host does not select a site.
fn undecided<'b>(head: &RequestHead<'b>) -> Route<'b> {
    match head.form() {
        TargetForm::Authority => refuse(405, "connect-not-offered"),
        TargetForm::Asterisk => Route::Options,
        _ => refuse(404, "no-site-for-host"),
    }
}

fn reverse<'b>(head: &RequestHead<'b>, site: &'b Site) -> Route<'b> {
    match head.form() {
        TargetForm::Authority => return refuse(405, "connect-not-offered"),
        TargetForm::Asterisk => return Route::Options,
        _ => {}
    }
    let shown = if site.preserve_host {
        shown_url(head, site)
    } else {
        None
    };
    to_url(
        head,
        shown.or_else(|| Some(origin_url(site, head.target().path))),
    )
}

/// Returns the URL with the client's host. For a part of a container image, returns the URL in the form of
/// cache keys instead, which has the origin's host. Called only for roles with `preserve_host`. For a part of
/// an image, `preserve_host` is set only so that this function is called.
fn shown_url<'b>(head: &RequestHead<'b>, site: &'b Site) -> Option<Url<'b>> {
    if let Some(path) = site.mirror.as_ref().and_then(|part| part.key_path()) {
        return Some(origin_url(site, path));
    }
    let scheme = site.scheme();
    head.url(scheme).map(|url| Url { scheme, ..url })
}

/// Returns the URL of this path at a mirror, in the form that cache keys contain.
pub(crate) fn key_url<'b>(site: &'b Site, path: &'b [u8]) -> Url<'b> {
    let own = site.mirror.as_ref().and_then(|part| part.key_path());
    origin_url(site, own.unwrap_or(path))
}

/// Returns the URL at the origin, with the origin's own name.
fn origin_url<'b>(site: &'b Site, path: &'b [u8]) -> Url<'b> {
    let v6 = may_be_v6(&site.host).then(|| site.host.parse().ok());
    let host = v6
        .flatten()
        .map_or(Host::Name(site.host.as_bytes()), Host::V6);
    Url {
        scheme: site.scheme(),
        authority: Authority {
            host,
            port: Some(site.port),
        },
        path,
    }
}

/// Returns true if `host` may be an IPv6 address: it has fewer than five bytes, or a colon among its first
/// five bytes. The test is cheap. It excludes nearly every name, so that few hosts are parsed as addresses.
fn may_be_v6(host: &str) -> bool {
    let colon = |start: &[u8; 5]| start.iter().fold(false, |any, byte| any | (*byte == b':'));
    host.as_bytes().first_chunk().is_none_or(colon)
}

fn to_url<'b>(head: &RequestHead<'b>, url: Option<Url<'b>>) -> Route<'b> {
    match url {
        None => refuse(400, "missing-host"),
        Some(url) if head.method() == Method::Purge => Route::Purge(url),
        Some(url) => Route::Fetch(url),
    }
}

/// Returns the URL of a request under this role, even if the request is refused for another reason.
pub(crate) fn url_of<'b>(head: &RequestHead<'b>, role: &'b Role) -> Option<Url<'b>> {
    let way = match role {
        Role::Forward => forward(head),
        Role::Site(site) => reverse(head, site),
        Role::Undecided => undecided(head),
    };
    match way {
        Route::Fetch(url) | Route::Purge(url) => Some(url),
        _ => None,
    }
}

/// Handles `Max-Forwards: 0`, which makes Foxy the last recipient (RFC 9110 section 7.6.2).
fn last_hop<'b>(head: &RequestHead<'b>) -> Option<Route<'b>> {
    let method = head.method();
    if !matches!(method, Method::Trace | Method::Options) {
        return None;
    }
    match max_forwards(head)? {
        0 if method == Method::Trace => Some(Route::Trace),
        0 => Some(Route::Options),
        _ => None,
    }
}

/// Returns the value of Max-Forwards, if there is a valid value.
pub(crate) fn max_forwards<F: Fields>(head: &F) -> Option<u32> {
    let text = first(head, "Max-Forwards")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn passed_here_before(head: &RequestHead<'_>, instance: &str) -> bool {
    tokens(head, "Via").any(|hop| {
        let mut words = hop.split(|b| *b == b' ').filter(|word| !word.is_empty());
        words.nth(1) == Some(instance.as_bytes())
    })
}

/// Returns the form that escapes such as `%41` have in paths of this partition. It is used for keys, purges
/// and requests to the origin.
pub(crate) fn escapes(rules: &RuleSet, partition: &str) -> Escapes {
    match rules.keeps_escapes(partition) {
        true => Escapes::AsReceived,
        false => Escapes::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_http1::{FieldSlots, HeadScanner, Limits};
    use foxy_tls::OriginTls;

    fn site(preserve_host: bool) -> Role {
        Role::Site(Site {
            name: "shop".into(),
            host: "origin.test".into(),
            port: 8080,
            preserve_host,
            ..Site::default()
        })
    }

    fn check(request: &str, role: &Role) -> String {
        let text = request.replace('\n', "\r\n") + "\r\n";
        let mut slots = FieldSlots::new();
        let head = RequestHead::parse(
            text.as_bytes(),
            &mut HeadScanner::new(),
            &mut slots,
            &Limits::default(),
        )
        .unwrap()
        .unwrap();
        let url = |url: Url<'_>| {
            let mut out = Vec::new();
            url.write_normalised(&mut out);
            String::from_utf8(out).unwrap()
        };
        match route(&head, role, "me") {
            Route::Fetch(to) => url(to),
            Route::Purge(to) => format!("purge {}", url(to)),
            Route::Connect => "connect".into(),
            Route::Options => "options".into(),
            Route::Trace => "trace".into(),
            Route::Refuse(refusal) => format!("{} {}", refusal.status, refusal.reason),
        }
    }

    #[test]
    fn forward_listeners_take_absolute_targets_and_tunnels() {
        for (request, expected) in [
            ("GET http://A.test/x HTTP/1.1\nHost: b\n", "http://a.test/x"),
            ("GET / HTTP/1.1\nHost: a\n", "400 not-a-proxy-request"),
            ("GET https://A:443/ HTTP/1.1\nHost: a\n", "https://a/"),
            ("CONNECT A.test:443 HTTP/1.1\nHost: a\n", "connect"),
            ("PURGE http://a/x HTTP/1.1\nHost: a\n", "purge http://a/x"),
            ("OPTIONS * HTTP/1.1\nHost: a\n", "options"),
            (
                "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 0\n",
                "options",
            ),
            (
                "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 1\n",
                "http://a/",
            ),
            (
                "TRACE http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 0\n",
                "trace",
            ),
            (
                "GET http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 0\n",
                "http://a/",
            ),
            (
                "GET http://a/ HTTP/1.1\nHost: a\nVia: 1.1 you, 1.1 me (x)\n",
                "508 loop-detected",
            ),
            (
                "GET http://a/ HTTP/1.1\nHost: a\nVia: 1.1 meme, 1.1 x me, 1.1 ME, 1.1 me:80\n",
                "http://a/",
            ),
        ] {
            assert_eq!(check(request, &Role::Forward), expected, "{request}");
        }
    }

    #[test]
    fn a_site_goes_to_its_own_origin_whatever_the_request_says() {
        let get = "GET /x HTTP/1.1\nHost: Public.test\n";
        assert_eq!(check(get, &site(false)), "http://origin.test:8080/x");
        assert_eq!(check(get, &site(true)), "http://public.test/x");
        let Role::Site(mut secure) = site(true) else {
            unreachable!()
        };
        secure.tls = Some(OriginTls::system());
        assert_eq!(check(get, &Role::Site(secure)), "https://public.test/x");
        let other = "GET http://other.test/x HTTP/1.1\nHost: a\n";
        assert_eq!(check(other, &site(false)), "http://origin.test:8080/x");
        assert_eq!(
            check("GET /x HTTP/1.0\n", &site(true)),
            "http://origin.test:8080/x"
        );
        let connect = "CONNECT a:443 HTTP/1.1\nHost: a\n";
        assert_eq!(check(connect, &site(true)), "405 connect-not-offered");
    }
}
