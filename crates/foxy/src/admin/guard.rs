//! Access checks of the admin listener. Requests over TCP without a token must use one of the listener's host
//! names. A request without a token must not come from a page of another server. The only exception is a link
//! to the status page. Changes need a token or the `X-Foxy-Admin` field. In addition, each request needs a
//! right, such as the right to purge.

use foxy_base::first;
use foxy_http1::{RequestHead, TargetForm};

use super::State;
use crate::config::Right;

/// The field that a request for a change needs. A browser lets a foreign page send this field only if the
/// server consents (CORS). Foxy never consents.
pub(super) const FIELD: &str = "X-Foxy-Admin";

/// The kind of the listener that received a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenerKind {
    /// TCP.
    Network,
    /// A unix socket. Its permissions determine the users who can connect.
    Socket,
}

/// Reason for which a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The form of the request target, the host or the source of the request is not allowed: 403.
    Forbidden(&'static str),
    /// A token is needed: 401.
    NoToken,
    /// The request has this right, which does not permit the requested action: 403.
    Beyond(Right),
}

/// Checks a request for `path`.
pub(super) fn check(
    head: &RequestHead<'_>,
    path: &str,
    kind: ListenerKind,
    state: &State,
) -> Result<(), Refusal> {
    if head.form() != TargetForm::Origin {
        let words = "this is the admin address of Foxy, not a proxy";
        return Err(Refusal::Forbidden(words));
    }
    let by_token = state.keys.of_token(head);
    // A foreign page does not know a token. Requests with a token therefore need no further check of their
    // source.
    if by_token == Right::Nothing {
        if kind == ListenerKind::Network {
            known_name(head, state)?;
        }
        not_foreign(head, path)?;
    }
    let without = match kind {
        ListenerKind::Network => state.keys.network,
        ListenerKind::Socket => state.keys.socket,
    };
    let has = by_token.max(without);
    let needs = needed(head.method_text(), path);
    if has >= needs {
        return Ok(());
    }
    Err(match has {
        Right::Nothing => Refusal::NoToken,
        has => Refusal::Beyond(has),
    })
}

/// True if a request has a token or the field [`FIELD`]. Each change needs one of them.
pub(super) fn may_change(head: &RequestHead<'_>, state: &State) -> bool {
    first(head, FIELD) == Some(b"1") || state.keys.of_token(head) > Right::Nothing
}

/// Returns the right that a request needs. A request that is not listed in this function needs
/// [`Right::Operate`], which includes all rights.
fn needed(method: &[u8], path: &str) -> Right {
    match (method, path) {
        (b"GET" | b"HEAD", "/healthz" | "/readyz") => Right::Nothing,
        (b"GET" | b"HEAD", _) => Right::Read,
        (b"POST", "/purge") => Right::Purge,
        _ => Right::Operate,
    }
}

fn known_name(head: &RequestHead<'_>, state: &State) -> Result<(), Refusal> {
    let host = first(head, "Host").map(String::from_utf8_lossy);
    if host.is_some_and(|host| known(&host, &state.hosts)) {
        return Ok(());
    }
    let words = "this name is not known; use localhost, or add it to access.admin_hosts";
    Err(Refusal::Forbidden(words))
}

/// Refuses a request if the browser reports that a page of another site made it. The status page may be
/// opened by a link on any page, because the status page itself contains no data.
fn not_foreign(head: &RequestHead<'_>, path: &str) -> Result<(), Refusal> {
    let field = |name| first(head, name);
    let reads = matches!(head.method_text(), b"GET" | b"HEAD");
    let link = reads && path == "/" && field("Sec-Fetch-Mode") == Some(b"navigate");
    let site = field("Sec-Fetch-Site");
    let elsewhere = site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    let origin = field("Origin").is_some_and(|origin| !is_own(origin, field("Host")));
    if (elsewhere && !link) || origin {
        let words = "a page of another site asks; open the admin address itself";
        return Err(Refusal::Forbidden(words));
    }
    Ok(())
}

/// True if the page that made the request is from this listener: its origin has the host and port of the
/// field `Host`.
fn is_own(origin: &[u8], host: Option<&[u8]>) -> bool {
    let authority = [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    match (authority, host) {
        (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    }
}

/// True for loopback names and addresses, the listener's own address, and names that the operator lists.
fn known(host: &str, listed: &[String]) -> bool {
    let name = without_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<std::net::IpAddr>()
        && address.is_loopback()
    {
        return true;
    }
    name.eq_ignore_ascii_case("localhost")
        || listed.iter().any(|known| known.eq_ignore_ascii_case(bare))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') && port.bytes().all(|b| b.is_ascii_digit()) => {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_known() {
        let listed = ["foxy.example".to_owned(), "10.0.0.5".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:3129",
            "127.0.0.1:3129",
            "127.9.9.9",
            "[::1]:3129",
            "[::1]",
            "foxy.example:80",
            "10.0.0.5:3129",
        ] {
            assert!(known(host, &listed), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:3129",
            "10.0.0.6",
        ] {
            assert!(!known(host, &listed), "{host}");
        }
    }

    #[test]
    fn pages_that_are_ours() {
        for (origin, host, own) in [
            ("http://localhost:3129", Some("localhost:3129"), true),
            ("https://Foxy.Example", Some("foxy.example"), true),
            ("http://localhost:8080", Some("localhost:3129"), false),
            (
                "http://localhost:3129.evil.test",
                Some("localhost:3129"),
                false,
            ),
            ("null", Some("null"), false),
            ("http://localhost:3129", None, false),
            ("ftp://localhost:3129", Some("localhost:3129"), false),
        ] {
            let host = host.map(str::as_bytes);
            assert_eq!(is_own(origin.as_bytes(), host), own, "{origin}");
        }
    }

    #[test]
    fn rights_that_requests_need() {
        for (method, path, right) in [
            ("GET", "/healthz", Right::Nothing),
            ("HEAD", "/readyz", Right::Nothing),
            ("GET", "/stats", Right::Read),
            ("GET", "/healthz/", Right::Read),
            ("GET", "/purge", Right::Read),
            ("POST", "/purge", Right::Purge),
            ("POST", "/purge/", Right::Operate),
            ("POST", "/reload", Right::Operate),
            ("POST", "/healthz", Right::Operate),
            ("DELETE", "/", Right::Operate),
            ("purge", "/purge", Right::Operate),
        ] {
            assert_eq!(needed(method.as_bytes(), path), right, "{method} {path}");
        }
    }
}
