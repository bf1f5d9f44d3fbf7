//! Tests of the heads that go to origins.

use super::*;
use crate::{Access, Site};
use foxy_http1::{Escapes, FieldSlots, HeadScanner, Limits};

fn sent(request_text: &str, config: &HeaderConfig, changes: &Changes<'_>) -> String {
    let way = (&Role::Forward, &Access::default(), None);
    sent_as(way, request_text, config, changes)
}

fn sent_as(
    (role, access, surrogate): (&Role, &Access, Option<&str>),
    request_text: &str,
    config: &HeaderConfig,
    changes: &Changes<'_>,
) -> String {
    let text = request_text.replace('\n', "\r\n") + "\r\n";
    let mut slots = FieldSlots::new();
    let mut scanner = HeadScanner::new();
    let limits = Limits::default();
    let head = RequestHead::parse(text.as_bytes(), &mut scanner, &mut slots, &limits)
        .unwrap()
        .unwrap();
    let url = head.url(Scheme::Http).unwrap();
    let peer = "192.0.2.9:5".parse().unwrap();
    let identity = ClientIdentity::new(access, role, peer).of(access, role, &head);
    let hop = Hop {
        instance: "me",
        forwarding: Forwarding::of(config, role, identity.trusted),
        identity: &identity,
        changed: None,
        surrogate,
    };
    let mut out = Vec::new();
    let mut target = Vec::new();
    head.target()
        .write_origin_form(head.method(), Escapes::Normal, &mut target);
    let to = (url.authority, url.scheme, &target[..]);
    request(&mut out, &head, to, &hop, changes);
    String::from_utf8(out).unwrap().replace("\r\n", "\n")
}

#[test]
fn end_to_end_fields_go_on_and_hop_by_hop_fields_do_not() {
    let got = sent(
        "GET http://A.test:80/x?y HTTP/1.1\nHost: b\nConnection: X-Own, keep-alive\n\
         X-Own: 1\nProxy-Authorization: Basic s\nAccept: */*\nX-Forwarded-For: 10.0.0.1\n",
        &HeaderConfig::default(),
        &Changes::default(),
    );
    assert_eq!(
        got,
        "GET /x?y HTTP/1.1\nHost: a.test\nAccept: */*\nVia: 1.1 me\n\
         X-Forwarded-For: 10.0.0.1, 192.0.2.9\n\n"
    );
}

#[test]
fn bodies_expectations_and_upgrades_are_written_afresh() {
    let none = HeaderConfig {
        x_forwarded_for: Some(ForwardedMode::Remove),
        ..HeaderConfig::default()
    };
    let changes = Changes::default();
    let post =
        "POST http://a/ HTTP/1.1\nHost: a\nExpect: 100-continue\nTransfer-Encoding: chunked\n";
    assert_eq!(
        sent(post, &none, &changes),
        "POST / HTTP/1.1\nHost: a\nVia: 1.1 me\nTransfer-Encoding: chunked\nExpect: 100-continue\n\n"
    );
    let socket = "GET http://a/ HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: websocket\n\
                  Sec-WebSocket-Key: k\n";
    assert_eq!(
        sent(socket, &none, &changes),
        "GET / HTTP/1.1\nHost: a\nSec-WebSocket-Key: k\nVia: 1.1 me\nConnection: Upgrade\n\
         Upgrade: websocket\n\n"
    );
}

#[test]
fn a_fill_asks_for_the_whole_on_its_own_conditions() {
    let none = HeaderConfig {
        x_forwarded_for: Some(ForwardedMode::Replace),
        ..HeaderConfig::default()
    };
    let changes = Changes {
        drop_conditions: true,
        drop_range: true,
        as_get: true,
        add: &[("If-None-Match", b"\"v1\"")],
    };
    assert_eq!(
        sent(
            "HEAD http://a/ HTTP/1.1\nHost: a\nRange: bytes=0-1\nIf-None-Match: \"v0\"\n\
             If-Range: \"v0\"\nX-Forwarded-For: 10.0.0.1\n",
            &none,
            &changes
        ),
        "GET / HTTP/1.1\nHost: a\nIf-None-Match: \"v1\"\nVia: 1.1 me\n\
         X-Forwarded-For: 192.0.2.9\n\n"
    );
}

#[test]
fn a_surrogate_says_so() {
    let none = HeaderConfig {
        x_forwarded_for: Some(ForwardedMode::Remove),
        ..HeaderConfig::default()
    };
    let get = "GET http://a/ HTTP/1.1\nHost: a\nSurrogate-Capability: other=\"Surrogate/1.0\"\n";
    assert_eq!(
        sent_as(
            (&Role::Forward, &Access::default(), Some("foxy")),
            get,
            &none,
            &Changes::default()
        ),
        "GET / HTTP/1.1\nHost: a\nSurrogate-Capability: other=\"Surrogate/1.0\"\nVia: 1.1 me\n\
         Surrogate-Capability: foxy=\"Surrogate/1.0\"\n\n"
    );
}

const TELLING: &str = "GET http://a/ HTTP/1.1\nHost: a\nX-Forwarded-For: 10.0.0.1\n\
    Forwarded: for=10.0.0.1\nX-Forwarded-Host: evil.test\nX-Forwarded-Proto: https\n\
    X-Forwarded-Port: 1\nX-Forwarded-Server: s\nX-Real-IP: 10.0.0.1\n\
    X-Original-URL: /admin\nX-Rewrite-URL: /admin\nX-Other: 1\n";

#[test]
fn identity_fields_of_strangers_are_removed_for_sites() {
    let site = Role::Site(Site::default());
    let (nobody, changes) = (Access::default(), Changes::default());
    let got = sent_as(
        (&site, &nobody, None),
        TELLING,
        &HeaderConfig::default(),
        &changes,
    );
    assert_eq!(
        got,
        "GET / HTTP/1.1\nHost: a\nX-Other: 1\nVia: 1.1 me\nX-Forwarded-For: 192.0.2.9\n\n"
    );
    // An explicit setting applies to all peers.
    let set = HeaderConfig {
        x_forwarded_for: Some(ForwardedMode::Append),
        forwarded: Some(ForwardedMode::Transparent),
        ..HeaderConfig::default()
    };
    let got = sent_as((&site, &nobody, None), TELLING, &set, &changes);
    assert_eq!(
        got,
        "GET / HTTP/1.1\nHost: a\nForwarded: for=10.0.0.1\nX-Other: 1\nVia: 1.1 me\n\
         X-Forwarded-For: 10.0.0.1, 192.0.2.9\n\n"
    );
}

#[test]
fn identity_fields_of_trusted_proxies_and_forward_clients_pass() {
    let trusting = Access {
        trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()],
        ..Access::default()
    };
    let site = Role::Site(Site::default());
    let whole = TELLING
        .replace("http://a/", "/")
        .replace("X-Forwarded-For: 10.0.0.1\n", "")
        + "Via: 1.1 me\nX-Forwarded-For: 10.0.0.1, 192.0.2.9\n\n";
    let changes = Changes::default();
    for (role, access) in [(&site, &trusting), (&Role::Forward, &Access::default())] {
        let got = sent_as(
            (role, access, None),
            TELLING,
            &HeaderConfig::default(),
            &changes,
        );
        assert_eq!(got, whole, "{role:?}");
    }
    // A new list names the client behind the trusted proxy.
    let replace = HeaderConfig {
        x_forwarded_for: Some(ForwardedMode::Replace),
        ..HeaderConfig::default()
    };
    let got = sent_as((&site, &trusting, None), TELLING, &replace, &changes);
    assert!(got.ends_with("\nX-Forwarded-For: 10.0.0.1\n\n"), "{got}");
}

#[test]
fn the_admin_token_goes_nowhere() {
    let get = "GET http://a/ HTTP/1.1\nHost: a\nX-Foxy-Token: secret\n";
    let got = sent(get, &HeaderConfig::default(), &Changes::default());
    assert!(!got.contains("secret"), "{got}");
}

#[test]
fn max_forwards_counts_down() {
    let got = sent(
        "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 3\n",
        &HeaderConfig::default(),
        &Changes::default(),
    );
    assert!(got.contains("Max-Forwards: 2\n"), "{got}");
}
