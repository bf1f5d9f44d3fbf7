//! The rights of a `PURGE` request on a listener.

use foxy_base::{Fields, rule};
use foxy_store::{Purge, PurgeError, PurgeKind};

use crate::Access;
use crate::access::refusal::Refusal;
use crate::access::settings::contains;
use crate::http::client_identity::{ClientIdentity, Foreign, foreign};

/// The kinds of client that may purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purger {
    /// A client with the admin credential. It has the same rights as on the admin address.
    Operator,
    /// A client that may purge single URLs.
    Client,
}

/// Judges a request by its credential, or by its source if it has no credential.
///
/// The address of the peer is not enough as a proof: a page in a browser can send `PURGE` to the host from
/// which it was loaded, and a proxy on this machine forwards requests from the whole Internet.
pub(super) fn purger<F: Fields + ?Sized>(
    access: &Access,
    identity: &ClientIdentity,
    head: &F,
) -> Result<Purger, Refusal> {
    let token = access.token.as_ref();
    if token.is_some_and(|token| {
        rule!(
            "purge: only the admin credential makes an operator",
            token.is_in(head),
            true
        )
    }) {
        return Ok(Purger::Operator);
    }
    match foreign(head) {
        Foreign::Page => rule!(
            "purge: a page in a browser has no right to it",
            return Err(refused("purge-from-a-page")),
            ()
        ),
        Foreign::Forwarded
            if rule!(
                "purge: a request that others forward has no right to it",
                !identity.trusted,
                false
            ) =>
        {
            return Err(refused("purge-forwarded"));
        }
        Foreign::Forwarded | Foreign::No => {}
    }
    let known = identity.client;
    let right = rule!(
        "purge: only clients in the list have a right to it",
        known.is_some_and(|client| contains(&access.purge_from, client)),
        true
    );
    match right {
        true => Ok(Purger::Client),
        false => Err(refused("purge-not-allowed")),
    }
}

/// Checks that the purger may carry out all of these purges. A client may purge only single URLs and their
/// variants.
pub(super) fn within_rights(purger: Purger, wanted: &[Purge]) -> Result<(), Refusal> {
    let url_alone = wanted.iter().all(|purge| purge.kind == PurgeKind::Url);
    match purger {
        Purger::Operator => Ok(()),
        Purger::Client if rule!("purge: a client purges single URLs only", url_alone, true) => {
            Ok(())
        }
        Purger::Client => Err(refused("purge-beyond-url")),
    }
}

const fn refused(reason: &'static str) -> Refusal {
    Refusal {
        status: 403,
        reason,
    }
}

/// Refusal of a purge when there are too many purges at present.
pub(super) const TOO_MANY: Refusal = Refusal {
    status: 429,
    reason: "too-many-purges",
};

/// Returns the refusal for a purge that the store rejects: the purge is invalid, or too many purges are
/// active.
pub(super) const fn not_accepted(error: &PurgeError) -> Refusal {
    match error {
        PurgeError::TooLong(_) | PurgeError::Empty | PurgeError::Expression(_) => Refusal {
            status: 400,
            reason: "bad-purge",
        },
        // The store limits the number of active purges. The purges that it has already accepted stay valid.
        _ => TOO_MANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Token};

    const TOKEN: &str = "0123456789abcdef";

    fn judge(peer: &str, fields: &[(&str, &str)]) -> &'static str {
        let access = Access {
            trusted_proxies: vec!["192.0.2.1/32".parse().unwrap()],
            token: Token::new(TOKEN),
            ..Access::default()
        };
        let peer = format!("{peer}:9").parse().unwrap();
        let identity =
            ClientIdentity::new(&access, &Role::Forward, peer).of(&access, &Role::Forward, fields);
        match purger(&access, &identity, fields) {
            Ok(Purger::Operator) => "operator",
            Ok(Purger::Client) => "client",
            Err(refusal) => refusal.reason,
        }
    }

    const XFF: &str = "X-Forwarded-For";

    /// A test case: peer, fields, and the expected result.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
    );

    const CASES: &[Case] = &[
        ("127.0.0.1", &[], "client"),
        (
            "127.0.0.1",
            &[("User-Agent", "curl"), ("Host", "a")],
            "client",
        ),
        ("10.0.0.1", &[], "purge-not-allowed"),
        ("203.0.113.1", &[], "purge-not-allowed"),
        // A web page in a browser on this machine.
        (
            "127.0.0.1",
            &[("Origin", "http://evil.test")],
            "purge-from-a-page",
        ),
        ("127.0.0.1", &[("Origin", "null")], "purge-from-a-page"),
        (
            "127.0.0.1",
            &[("Sec-Fetch-Site", "same-origin")],
            "purge-from-a-page",
        ),
        (
            "127.0.0.1",
            &[("sec-fetch-mode", "cors")],
            "purge-from-a-page",
        ),
        (
            "127.0.0.1",
            &[("Referer", "http://a/")],
            "purge-from-a-page",
        ),
        // An Internet client behind a front end on this machine.
        ("127.0.0.1", &[("Via", "1.1 front")], "purge-forwarded"),
        ("127.0.0.1", &[(XFF, "203.0.113.1")], "purge-forwarded"),
        ("127.0.0.1", &[(XFF, "127.0.0.1")], "purge-forwarded"),
        (
            "127.0.0.1",
            &[("Forwarded", "for=127.0.0.1")],
            "purge-forwarded",
        ),
        (
            "127.0.0.1",
            &[("X-Real-IP", "127.0.0.1")],
            "purge-forwarded",
        ),
        (
            "127.0.0.1",
            &[("X-Forwarded-Proto", "https")],
            "purge-forwarded",
        ),
        // The peer is a trusted proxy, so the client that it names is judged. A web page is refused behind
        // such a proxy too.
        ("192.0.2.1", &[(XFF, "127.0.0.1")], "client"),
        ("192.0.2.1", &[(XFF, "203.0.113.1")], "purge-not-allowed"),
        (
            "192.0.2.1",
            &[(XFF, "127.0.0.1, 203.0.113.1")],
            "purge-not-allowed",
        ),
        (
            "192.0.2.1",
            &[(XFF, "127.0.0.1, junk")],
            "purge-not-allowed",
        ),
        (
            "192.0.2.1",
            &[(XFF, "127.0.0.1"), ("Origin", "http://a")],
            "purge-from-a-page",
        ),
        // The admin credential is sufficient, from any address.
        (
            "203.0.113.1",
            &[("Authorization", "Bearer 0123456789abcdef")],
            "operator",
        ),
        (
            "127.0.0.1",
            &[("X-Foxy-Token", TOKEN), (XFF, "8.8.8.8")],
            "operator",
        ),
        (
            "203.0.113.1",
            &[("Authorization", "Bearer 0123")],
            "purge-not-allowed",
        ),
    ];

    #[test]
    fn the_source_of_a_purge_decides_its_rights() {
        for (peer, fields, expected) in CASES {
            assert_eq!(judge(peer, fields), *expected, "{peer} {fields:?}");
        }
    }

    #[test]
    fn without_a_credential_there_is_no_operator() {
        let access = Access::default();
        let peer = "127.0.0.1:9".parse().unwrap();
        let identity = ClientIdentity::new(&access, &Role::Forward, peer);
        let fields: &[(&str, &str)] = &[("X-Foxy-Token", "")];
        assert_eq!(purger(&access, &identity, fields), Ok(Purger::Client));
    }

    #[test]
    fn a_client_purges_urls_alone() {
        let purge = |kind| Purge {
            kind,
            text: b"x".to_vec(),
            partition: String::new(),
            soft: false,
        };
        for (kind, client) in [
            (PurgeKind::Url, true),
            (PurgeKind::All, false),
            (PurgeKind::Prefix, false),
            (PurgeKind::Host, false),
            (PurgeKind::Tag, false),
            (PurgeKind::Expression, false),
        ] {
            let wanted = [purge(PurgeKind::Url), purge(kind)];
            assert_eq!(within_rights(Purger::Client, &wanted).is_ok(), client);
            assert!(within_rights(Purger::Operator, &wanted).is_ok());
        }
    }
}
