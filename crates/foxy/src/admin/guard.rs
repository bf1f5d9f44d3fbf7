//! Access checks: requests must use a known name, changes need the `X-Foxy-Admin` field, and
//! requests from other machines need the admin token except for health.

use foxy_base::first;
use foxy_http1::{RequestHead, TargetForm};

use super::State;

/// The field that a change needs. Browsers let no foreign page send it without our consent.
pub(super) const FIELD: &str = "X-Foxy-Admin";

/// Why a request is not answered, if so.
pub(super) fn refuse(head: &RequestHead<'_>, state: &State) -> Option<&'static str> {
    if head.form() != TargetForm::Origin {
        return Some("this is the admin address of Foxy, not a proxy");
    }
    // A foreign page that points its own name here does not know the token.
    if has_token(head, state) {
        return None;
    }
    let host = first(&head, "Host").map(String::from_utf8_lossy);
    if !host.is_some_and(|host| known(&host, &state.hosts)) {
        return Some("this name is not known; use localhost, or add it to access.admin_hosts");
    }
    None
}

/// Returns whether a changing request may change.
pub(super) fn may_change(head: &RequestHead<'_>, state: &State) -> bool {
    first(&head, FIELD) == Some(b"1") || has_token(head, state)
}

/// True if a request lacks the token that it needs.
pub(super) fn lacks_token(head: &RequestHead<'_>, path: &str, state: &State) -> bool {
    let local = state
        .addresses
        .admin
        .is_some_and(|own| own.ip().is_loopback());
    !local && !matches!(path, "/healthz" | "/readyz") && !has_token(head, state)
}

fn has_token(head: &RequestHead<'_>, state: &State) -> bool {
    state.token.as_ref().is_some_and(|token| token.is_in(head))
}

/// Loopback names and addresses, the listener's own address, and what the operator lists.
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
}
