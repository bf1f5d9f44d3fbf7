//! Registries that send wrong data, and clients that ask mirrors for objects that they may not have. More
//! tests of attacks are in the modules of the attacked functions: `mirrors` (names by which clients know
//! Foxy), `images` (`?ns=`, `/v2/`), `private_names`, `client_logins`, and `artefacts` (documents that name
//! digests for files of other packages).

use std::sync::{Arc, Mutex};

use foxy_proxy::mirror::{Mirror, preset};
use foxy_proxy::{Access, Config, Event, MirrorSite, Role};
use sha2::{Digest as _, Sha256};

use crate::common::{Foxy, Origin, until};
use crate::mirrors::{config, get, mirror};

/// Returns URLs that lead away from a registry on this port. Documents and redirects of the registry may
/// contain such URLs.
fn foreign(port: u16) -> Vec<String> {
    vec![
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "//169.254.169.254/latest".to_owned(),
        "http://[::ffff:169.254.169.254]/x".to_owned(),
        format!("http://127.0.0.2:{port}/x"),
        "http://127.0.0.1/x".to_owned(),
        format!("http://[::1]:{port}/x"),
        "http://localhost:3129/purge".to_owned(),
        format!("http://origin.test:{port}@evil.test/x"),
        format!("http://evil.test:{port}/x"),
        format!("http://origin.test.evil.test:{port}/x"),
        "http:\\\\evil.test\\x".to_owned(),
        "file:///etc/passwd".to_owned(),
    ]
}

#[test]
fn no_document_leads_to_a_foreign_host_by_way_of_the_mirror() {
    for (name, path, kind) in [
        ("pypi", "/simple/a/", "application/vnd.pypi.simple.v1+json"),
        ("pypi", "/simple/a/", "text/html"),
        ("npm", "/a", "application/json"),
        ("cargo", "/config.json", "application/json"),
    ] {
        let link = Arc::new(Mutex::new(String::new()));
        let named = Arc::clone(&link);
        let origin = Origin::start(move |asked| {
            let url = named.lock().unwrap().replace('\\', "\\\\");
            let document = match (kind, asked.path()) {
                ("text/html", _) => format!("<a href='{url}'>a</a>"),
                (_, "/simple/a/") => format!("{{\"files\":[{{\"url\":\"{url}\"}}]}}"),
                (_, "/a") => {
                    format!("{{\"versions\":{{\"1.0.0\":{{\"dist\":{{\"tarball\":\"{url}\"}}}}}}}}")
                }
                _ => format!("{{\"dl\":\"{url}\"}}"),
            };
            asked.reply("200 OK", &format!("Content-Type: {kind}\r\n"), document);
            true
        });
        for url in foreign(origin.addr.port()) {
            link.lock().unwrap().clone_from(&url);
            let foxy = Foxy::start(Role::Forward, config(vec![mirror(name, &origin)]), 1);
            let answer = get(
                &foxy,
                &format!("/{name}{path}"),
                &format!("Accept: {kind}\r\n"),
            );
            let text = answer.text().replace("\\\\", "\\");
            assert_eq!(answer.status, 200);
            assert!(
                text.contains(&url) && !text.contains(&foxy.addr.to_string()),
                "{text}"
            );
            // Paths of this form lead to the servers that the mirror lists. The mirror does not list the
            // server of this URL, so this path must not lead to that server.
            let asked = origin.asked();
            let rest = url.split_once("//").map_or("evil.test/x", |(_, rest)| rest);
            let rest = rest.replace(['[', ']'], "").replace(':', "~");
            let there = get(&foxy, &format!("/{name}/~{rest}"), "");
            assert!(
                matches!(there.status, 400 | 404),
                "{rest}: {}",
                there.status
            );
            assert_eq!(origin.asked(), asked, "{rest}");
        }
    }
}

#[test]
fn no_redirect_leads_to_a_foreign_host() {
    let target = Arc::new(Mutex::new(String::new()));
    let location = Arc::clone(&target);
    let origin = Origin::start(move |asked| {
        let location = location.lock().unwrap();
        asked.reply("302 Found", &format!("Location: {location}\r\n"), "");
        true
    });
    for path in ["/npm/a", "/npm/a/-/a-1.0.0.tgz", "/npm/-/ping"] {
        let foxy = Foxy::start(Role::Forward, config(vec![mirror("npm", &origin)]), 1);
        let all = foreign(origin.addr.port());
        for url in &all {
            target.lock().unwrap().clone_from(url);
            let answer = get(&foxy, path, "");
            let got = (answer.status, answer.field("Location"));
            assert_eq!(got, (502, None), "{path} to {url}");
        }
        foxy.counts(Event::MirrorLeft, all.len() as u64);
    }
}

/// The servers in presets (built-in settings for registries) are public. If the name of such a server has a
/// private address, Foxy must not send a request to it.
#[test]
fn a_server_that_nobody_has_named_is_not_asked_at_a_private_address() {
    let origin = Origin::start(|asked| {
        asked.reply("200 OK", "", "secret");
        true
    });
    let site = mirror("npm", &origin);
    let site = MirrorSite {
        named: vec![false; site.named.len()],
        ..site
    };
    // The listener can be reached from other machines.
    let config = Config {
        access: Access {
            loopback_only: false,
            ..Access::default()
        },
        ..config(vec![site])
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let port = origin.addr.port();
    for path in [
        "/npm/a".to_owned(),
        "/npm/a/-/a-1.0.0.tgz".to_owned(),
        format!("/npm/~origin.test~{port}/a/-/a-1.0.0.tgz"),
    ] {
        let answer = get(&foxy, &path, "");
        assert_eq!(answer.status, 403, "{path}: {}", answer.text());
    }
    assert_eq!(origin.asked(), 0);
}

/// The index of a public package contains the digest of a stored private file. A client must not get the
/// bytes of the file only because of the digest.
#[test]
fn a_poisoned_index_brings_no_bytes_of_another_package() {
    const SECRET: &[u8] = b"the private package";
    let digest: String = Sha256::digest(SECRET)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let private = Origin::start(|asked| {
        asked.reply("200 OK", "", SECRET);
        true
    });
    let public = Origin::start(move |asked| {
        match asked.path() {
            "/simple/evil/" => asked.reply(
                "200 OK",
                "Content-Type: text/html\r\n",
                format!(
                    "<a href='/packages/evil-1.0.tar.gz#sha256={digest}'>a</a>\
                     <a href='/packages/evil-2.0.tar.gz#sha256={digest}'>b</a>"
                ),
            ),
            "/packages/evil-1.0.tar.gz" => asked.reply("200 OK", "", "something else"),
            _ => asked.reply("404 Not Found", "", ""),
        }
        true
    });
    let own = MirrorSite {
        mirror: Mirror::new(
            "own".into(),
            "/own",
            format!("http://127.0.0.1:{}", private.addr.port())
                .parse()
                .unwrap(),
            Vec::new(),
            preset("pypi").unwrap().classes.clone(),
        ),
        ..mirror("pypi", &private)
    };
    let foxy = Foxy::start(Role::Forward, config(vec![mirror("pypi", &public), own]), 1);
    let file = "/own/packages/acme-1.0.tar.gz";
    assert_eq!(get(&foxy, file, "").body, SECRET);
    until(|| get(&foxy, file, "").cache().contains("hit"));
    assert_eq!(get(&foxy, "/pypi/simple/evil/", "").status, 200);
    let mut client = foxy.connect();
    let host = foxy.addr;
    client.send(format!(
        "GET /pypi/packages/evil-1.0.tar.gz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ));
    let got = String::from_utf8_lossy(&client.to_end()).into_owned();
    assert!(
        !got.contains("private") && !got.ends_with("something else"),
        "{got}"
    );
    foxy.counts(Event::MirrorMismatch, 1);
    let missing = get(&foxy, "/pypi/packages/evil-2.0.tar.gz", "");
    assert_eq!(missing.status, 404, "{}", missing.text());
}
