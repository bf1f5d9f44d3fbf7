//! A mirror of a registry of container images, tested with a fake registry. The fake registry has a separate
//! token service, and a storage server with signed URLs for the layers. It sends no validators. A test can
//! make it answer every request with an error, such as 429.

mod fake;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use foxy_base::WallTime;
use foxy_proxy::{Event, Role};

use crate::common::{Answer, Foxy, NOON, until};
use crate::mirrors::config;
use fake::{ANN, Fake, digest};

fn get(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    let host = foxy.addr;
    foxy.ask(&format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ))
}

#[test]
fn an_image_is_pulled_once_and_by_everybody() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let base = get(&foxy, "/v2/", "");
    assert_eq!((base.status, base.text()), (200, "{}".to_owned()));
    let layer = fake.state.layer.lock().unwrap().clone();
    let manifest = fake.state.manifest.lock().unwrap().clone();
    for (path, what) in [
        ("/v2/a/manifests/latest".to_owned(), &manifest),
        (
            "/v2/library/a/manifests/latest?ns=docker.io".to_owned(),
            &manifest,
        ),
        (
            format!("/v2/docker.io/a/manifests/{}", digest(&manifest)),
            &manifest,
        ),
        (format!("/v2/a/blobs/{}", fake.layer()), &layer),
        (
            format!("/v2/library/a/blobs/{}?ns=docker.io", fake.layer()),
            &layer,
        ),
        (format!("/v2/team/b/blobs/{}", fake.layer()), &layer),
    ] {
        let answer = get(&foxy, &path, "");
        assert_eq!((answer.status, &answer.body), (200, what), "{path}");
    }
    let state = &fake.state;
    assert_eq!(state.count("storage GET"), 1, "{:?}", state.asked);
    assert_eq!(
        state.count("registry GET /v2/library/a/manifests/latest"),
        2,
        "with a token, and before"
    );
    assert_eq!(state.count("auth GET"), 2, "one token for each repository");
    assert!(!state.leaked.load(Ordering::SeqCst));
    let proofs = "registry HEAD /v2/library/a/blobs/";
    let asked = state.count(proofs);
    assert!(asked > 0);
    // The stored layer also answers a range request and a HEAD request.
    let part = get(
        &foxy,
        &format!("/v2/a/blobs/{}", fake.layer()),
        "Range: bytes=5-9\r\n",
    );
    assert_eq!((part.status, part.body.len()), (206, 5));
    let mut client = foxy.connect();
    client.send(format!(
        "HEAD /v2/a/blobs/{} HTTP/1.1\r\nHost: x\r\n\r\n",
        fake.layer()
    ));
    let head = client.answer_to("HEAD");
    assert_eq!(
        (head.status, head.field("Content-Length")),
        (200, Some("100000"))
    );
    assert_eq!(state.count("storage GET"), 1);
    assert_eq!(
        state.count(proofs),
        asked,
        "the proof is known: {:?}",
        state.asked
    );
    assert!(
        foxy.logged()
            .iter()
            .any(|line| line.contains("/v2/a/blobs/sha256:"))
    );
}

/// Clients use several names for the registry, and Foxy stores a separate copy of the tag for each
/// credential. One purge must remove all copies.
#[test]
fn a_purge_of_a_tag_or_a_layer_covers_all_names_and_credentials() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let login = format!("Authorization: {ANN}\r\n");
    let layer = format!("/v2/a/blobs/{}", fake.layer());
    let ways = [
        ("/v2/a/manifests/latest", ""),
        ("/v2/library/a/manifests/latest?ns=docker.io", ""),
        ("/v2/a/manifests/latest", &login[..]),
        (&layer[..], ""),
    ];
    for known in [false, true] {
        for (path, fields) in ways {
            let answer = get(&foxy, path, fields);
            let hit = answer.cache().contains("hit");
            assert!(
                answer.status == 200 && (hit || !known),
                "{path} {fields}: {}",
                answer.cache()
            );
        }
    }
    for path in ["/v2/docker.io/a/manifests/latest", &layer] {
        let host = foxy.addr;
        let answer = foxy.ask(&format!("PURGE {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    for (path, fields) in [ways[0], ways[2], ways[3]] {
        let answer = get(&foxy, path, fields);
        assert!(
            !answer.cache().contains("hit"),
            "{path} {fields}: {}",
            answer.cache()
        );
    }
}

#[test]
fn four_clients_at_once_are_one_transfer() {
    let fake = Fake::start();
    let state = &fake.state;
    let layer: Vec<u8> = (0..2 << 20)
        .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    *state.layer.lock().unwrap() = layer.clone();
    state.go.store(false, Ordering::SeqCst);
    let foxy = fake.foxy();
    for repository in ["a", "team/b"] {
        let path = format!("/v2/{repository}/blobs/{}", fake.layer());
        let mut client = foxy.connect();
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(client.answer_to("HEAD").status, 200);
    }
    let asks: Vec<_> = ["a", "library/a", "team/b", "docker.io/team/b"]
        .iter()
        .map(|repository| {
            let mut client = foxy.connect();
            let path = format!("/v2/{repository}/blobs/{}", fake.layer());
            client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            std::thread::spawn(move || client.answer())
        })
        .collect();
    foxy.counts(Event::Followers, 3);
    state.go.store(true, Ordering::SeqCst);
    for ask in asks {
        let answer = ask.join().unwrap();
        assert!(answer.status == 200 && answer.whole && answer.body == layer);
    }
    foxy.counts(Event::FillsStored, 3);
    let path = format!("/v2/a/blobs/{}", fake.layer());
    assert!(get(&foxy, &path, "").body == layer, "out of the store");
    assert_eq!(state.count("storage GET"), 1, "{:?}", state.asked);
}

#[test]
fn a_layer_is_for_those_who_may_have_it_alone() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let of = |repository: &str| format!("/v2/{repository}/blobs/{}", fake.layer());
    let ann = format!("Authorization: {ANN}\r\n");
    let refused = get(&foxy, &of("team/secret"), "");
    assert_eq!(refused.status, 401, "{}", refused.text());
    let own = get(&foxy, &of("team/secret"), &ann);
    assert_eq!((own.status, own.body.len()), (200, 100_000));
    // The layer is stored now. A client must not get it through a public repository that does not have it,
    // without the credential, or with another credential.
    assert_eq!(get(&foxy, &of("team/public"), "").status, 404);
    assert_eq!(get(&foxy, &of("team/public"), &ann).status, 404);
    for other in [
        "",
        "Authorization: Basic Ym9iOnB3\r\n",
        "Authorization: Bearer ann/team/secret\r\n",
    ] {
        assert_eq!(get(&foxy, &of("team/secret"), other).status, 401, "{other}");
        let tag = get(&foxy, "/v2/team/secret/manifests/latest", other);
        assert_eq!(tag.status, 401, "{other}");
        assert!(tag.field("WWW-Authenticate").unwrap().starts_with("Basic "));
    }
    assert_eq!(
        get(&foxy, "/v2/team/secret/manifests/latest", &ann).status,
        200
    );
    assert_eq!(
        get(&foxy, "/v2/team/secret/manifests/latest", "").status,
        401
    );
    // A client of another repository that also has the layer gets the stored copy.
    let before = fake.state.count("storage GET");
    assert_eq!(get(&foxy, &of("a"), "").body.len(), 100_000);
    assert_eq!(fake.state.count("storage GET"), before);
    assert!(!fake.state.leaked.load(Ordering::SeqCst));
}

#[test]
fn the_last_known_manifest_is_served_while_the_registry_wants_a_pause() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let state = &fake.state;
    let path = "/v2/a/manifests/latest";
    let layer = format!("/v2/a/blobs/{}", fake.layer());
    let first = get(&foxy, path, "").body;
    assert_eq!(get(&foxy, &layer, "").status, 200);
    let sent = state.count("registry GET");
    let at = |seconds: i64| foxy.clock.set_wall(WallTime::from_secs(NOON + seconds));
    // Foxy sends a HEAD request. The answer shows that the manifest is unchanged, so no GET request follows.
    at(61);
    assert_eq!(get(&foxy, path, "").body, first);
    assert_eq!(state.count("registry GET"), sent, "{:?}", state.asked);
    assert_eq!(
        state.count("registry HEAD /v2/library/a/manifests/latest"),
        1
    );
    for (days, status) in [(2, 429), (3, 503), (4, 500)] {
        state.fails.store(status, Ordering::SeqCst);
        at(days * 86_400);
        let stale = get(&foxy, path, "");
        assert_eq!((stale.status, &stale.body), (200, &first), "{status}");
        assert_eq!(
            stale.field("Age"),
            Some(&(days * 86_400 - 61).to_string()[..])
        );
        let old = get(&foxy, &layer, "");
        assert_eq!(
            (old.status, old.body.len()),
            (200, 100_000),
            "the proof of before counts"
        );
        let unknown = get(&foxy, "/v2/a/manifests/never-seen", "").status;
        assert_eq!(unknown, if status == 429 { 503 } else { status });
        assert_eq!(
            get(&foxy, &layer.replace("/a/", "/team/b/"), "").status,
            502
        );
    }
    state.fails.store(0, Ordering::SeqCst);
    *state.manifest.lock().unwrap() = b"{\"schemaVersion\":2,\"new\":1}".to_vec();
    at(5 * 86_400);
    assert!(get(&foxy, path, "").text().contains("new"));
}

#[test]
fn a_proof_ends_when_the_registry_says_no() {
    for no in [404, 401] {
        let fake = Fake::start();
        let foxy = fake.foxy();
        let path = format!("/v2/team/b/blobs/{}", fake.layer());
        assert_eq!(get(&foxy, &path, "").status, 200);
        fake.state.fails.store(no, Ordering::SeqCst);
        foxy.clock.set_wall(WallTime::from_secs(NOON + 2 * 86_400));
        assert_eq!(get(&foxy, &path, "").status, no);
        // The registry has refused the layer, so Foxy has removed the proof (the stored confirmation that
        // clients may have the layer). So while the registry fails, the client gets an error.
        fake.state.fails.store(503, Ordering::SeqCst);
        assert_eq!(get(&foxy, &path, "").status, 502, "after {no}");
    }
}

#[test]
fn no_client_keeps_a_layer_or_a_manifest_with_another_digest() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let mut wrong = fake.state.layer.lock().unwrap().clone();
    wrong[50_000] ^= 1;
    *fake.state.wrong.lock().unwrap() = Some(wrong);
    let path = format!("/v2/a/blobs/{}", fake.layer());
    let ask = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut client = foxy.connect();
    client.send(&ask);
    let got = client.to_end();
    let head = got.windows(4).position(|end| end == b"\r\n\r\n");
    let body = got.len() - head.map_or(got.len(), |at| at + 4);
    assert!(body < 100_000, "whole");
    until(|| foxy.proxy.totals().event(Event::MirrorMismatch) > 0);
    *fake.state.wrong.lock().unwrap() = None;
    assert_eq!(get(&foxy, &path, "").body.len(), 100_000);
    let other = format!("/v2/a/manifests/{}", digest(b"other"));
    let mut client = foxy.connect();
    client.send(format!(
        "GET {other} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    ));
    let got = String::from_utf8_lossy(&client.to_end()).into_owned();
    assert!(!got.contains("schemaVersion"), "{got}");
}

#[test]
fn registries_that_are_not_configured_are_never_asked() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    for path in [
        "/v2/a/manifests/x?ns=169.254.169.254",
        "/v2/a/manifests/x?ns=metadata.test",
        "/v2/metadata.test/a/manifests/x",
        "/v2/quay.io/a/b/manifests/x",
        "/v2/_catalog",
        "/v2/a/../../x",
        "/v2/a/blobs/uploads/",
    ] {
        assert_eq!(get(&foxy, path, "").status, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let ask =
            format!("{method} /v2/a/manifests/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(foxy.ask(&ask).status, 405, "{method}");
    }
    assert_eq!(fake.registry.asked(), 0);
}

#[test]
fn redirects_lead_to_listed_servers_or_by_tls_through_the_guard() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let path = format!("/v2/a/blobs/{}", fake.layer());
    let port = fake.storage.addr.port();
    for (to, status) in [
        ("http://169.254.169.254/latest".to_owned(), 502),
        ("https://169.254.169.254".to_owned(), 403),
        ("https://metadata.test".to_owned(), 403),
        ("https://224.0.0.1".to_owned(), 403),
        ("https://0.0.0.0".to_owned(), 403),
        ("https://origin.test:8443".to_owned(), 502),
        (format!("http://127.0.0.2:{port}"), 502),
        ("ftp://127.0.0.1".to_owned(), 502),
        ("//127.0.0.1".to_owned(), 502),
    ] {
        *fake.state.storage.lock().unwrap() = to.clone();
        assert_eq!(get(&foxy, &path, "").status, status, "{to}");
    }
    // The registry redirects to itself.
    let registry = format!(
        "http://127.0.0.1:{}/v2/library/a/blobs/{}",
        fake.registry.addr.port(),
        fake.layer()
    );
    *fake.state.storage.lock().unwrap() = registry;
    assert_ne!(get(&foxy, &path, "").status, 200);
    assert_eq!(fake.storage.asked(), 0);
}

#[test]
fn credentials_go_to_listed_token_services_alone() {
    let fake = Fake::start();
    let site = fake.mirror("own.test", &[&fake.storage], Some("ann:pw"));
    let foxy = Foxy::start(Role::Forward, config(vec![site]), 1);
    assert_eq!(
        get(&foxy, "/v2/team/secret/manifests/latest", "").status,
        502
    );
    assert_eq!(fake.auth.asked(), 0);
    foxy.counts(Event::MirrorLeft, 1);
    // If the mirror lists the token service and the storage, Foxy uses the mirror's own login for all clients
    // of the mirror.
    let site = fake.mirror("own.test", &[&fake.auth, &fake.storage], Some("ann:pw"));
    let foxy = Foxy::start(Role::Forward, config(vec![site]), 1);
    let path = format!("/v2/team/secret/blobs/{}", fake.layer());
    assert_eq!(get(&foxy, &path, "").body.len(), 100_000);
    assert!(!fake.state.leaked.load(Ordering::SeqCst));
    let seen: BTreeSet<String> = foxy.logged().into_iter().collect();
    assert!(
        !seen
            .iter()
            .any(|line| line.contains("sig=") || line.contains("pw")),
        "{seen:?}"
    );
}

#[test]
fn a_tag_that_was_asked_for_by_head_alone_is_known_when_the_registry_fails() {
    let fake = Fake::start();
    let foxy = fake.foxy();
    let head = || {
        let mut client = foxy.connect();
        client.send("HEAD /v2/a/manifests/latest HTTP/1.1\r\nHost: x\r\n\r\n");
        client.answer_to("HEAD")
    };
    let first = head();
    let length = fake.state.manifest.lock().unwrap().len().to_string();
    assert_eq!(
        (first.status, first.field("Content-Length")),
        (200, Some(&length[..]))
    );
    foxy.counts(Event::FillsStored, 1);
    fake.state.fails.store(429, Ordering::SeqCst);
    foxy.clock.set_wall(WallTime::from_secs(NOON + 3600));
    let later = head();
    assert_eq!(
        (later.status, later.field("Content-Length")),
        (200, Some(&length[..]))
    );
    assert_eq!(
        later.field("Docker-Content-Digest"),
        first.field("Docker-Content-Digest")
    );
}
