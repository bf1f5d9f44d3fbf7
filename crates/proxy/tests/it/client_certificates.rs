//! Certificates of clients: sites that require or request them, bad certificates, sites that permit only some
//! names, and one connection for two sites.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::common::tls::{Authority, Made};
use crate::common::{Foxy, NOON, Origin};
use foxy_base::{ManualClock, WallTime};
use foxy_proxy::rules::rewrite::{Direction, FieldRules, Rewriting};
use foxy_proxy::rules::rules::Pattern;
use foxy_proxy::{Config, Event, Role, Serves, Site, SiteNames, SiteTable};
use foxy_store::{Engine, EngineConfig};
use foxy_tls::{ClientOptions, ListenerTls, ServerOptions, ServerTls};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};

/// Returns the TLS settings of a site. `clients` contains the authority that issues the certificates of
/// clients. The flag is true if clients must show a certificate.
fn server(authority: &Authority, name: &str, clients: Option<(&Authority, bool)>) -> ServerTls {
    let made = authority.certificate(&[name], |_| {});
    ServerTls::new(ServerOptions {
        certificate: Some(authority.files(name, &made)),
        clients: clients.map(|(authority, required)| ClientOptions {
            authorities: authority.folder.path().join("ca.pem"),
            required,
        }),
        ..ServerOptions::default()
    })
    .unwrap()
}

/// Makes a client's certificate for this subject.
fn client(authority: &Authority, subject: &str, change: impl Fn(&mut CertificateParams)) -> Made {
    authority.certificate(&[], |params| {
        params.distinguished_name.push(DnType::CommonName, subject);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(params);
    })
}

fn config(authority: &Authority, shows: Option<&Made>) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authority.roots());
    Arc::new(match shows {
        None => builder.with_no_client_auth(),
        Some(made) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap(),
            )
            .unwrap(),
    })
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn connect(foxy: &Foxy, config: &Arc<ClientConfig>, name: &str) -> Stream {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let session = ClientConnection::new(config.clone(), name).unwrap();
    let stream = TcpStream::connect(foxy.addr).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    StreamOwned::new(session, stream)
}

/// Sends one request. Returns status line, fields and body as text. The text is empty if the handshake or the
/// read fails.
fn say(stream: &mut Stream, host: &str, path: &str, more: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return String::new();
    }
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece) {
            Ok(n) if n > 0 => got.extend_from_slice(&piece[..n]),
            _ => return String::new(),
        }
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("Content-Length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() == length.unwrap_or(0) {
                return text;
            }
        }
    }
}

fn ask(foxy: &Foxy, authority: &Authority, shows: Option<&Made>, path: &str) -> String {
    let mut stream = connect(foxy, &config(authority, shows), "shop.test");
    say(&mut stream, "shop.test", path, "")
}

fn shop(origin: &Origin, tls: &ServerTls) -> Site {
    let entries = [
        "set X-Subject: {client_subject}".to_owned(),
        "set X-Names: {client_names}".to_owned(),
    ];
    Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        rewriting: Some(Arc::new(Rewriting {
            requests: FieldRules::parse(&entries, Direction::Request).unwrap(),
            ..Rewriting::default()
        })),
        verified_by: tls
            .clients()
            .is_some_and(|clients| clients.required)
            .then(|| tls.clone()),
        ..Site::default()
    }
}

fn serving(serves: Serves, tls: ListenerTls) -> Foxy {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
    Foxy::serving(
        (serves, Some(tls), false),
        Config::default(),
        1,
        engine,
        clock,
    )
}

fn start(site: Site, tls: &ServerTls) -> Foxy {
    serving(Serves::One(Role::Site(site)), tls.clone().into())
}

/// An origin that repeats the name of the client in its answer. Only answers with the directive `public` may
/// be stored for all clients.
fn origin() -> Origin {
    Origin::start(|asked| {
        let life = match asked.path() {
            "/public" => "public, max-age=60",
            _ => "max-age=60",
        };
        let body = format!(
            "subject={} names={}",
            asked.field("X-Subject").unwrap_or("-"),
            asked.field("X-Names").unwrap_or("-")
        );
        asked.reply("200 OK", &format!("Cache-Control: {life}\r\n"), body);
        true
    })
}

#[test]
fn a_required_certificate_is_verified_and_told_to_the_origin() {
    let (authority, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let origin = origin();
    let tls = server(&authority, "shop.test", Some((&clients, true)));
    let foxy = start(shop(&origin, &tls), &tls);
    let node = client(&clients, "node 1", |params| {
        let name = |text: &str| text.to_owned().try_into().unwrap();
        params.subject_alt_names = vec![
            SanType::DnsName(name("Node1.test")),
            SanType::URI(name("spiffe://a/b")),
        ];
    });
    let got = ask(&foxy, &authority, Some(&node), "/a");
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    assert!(
        got.contains("CN=node 1") && got.contains("names=node1.test, spiffe://a/b"),
        "{got}"
    );
    let refused = foxy.proxy.totals().event(Event::TlsFailedCertificate);
    let old = client(&clients, "old", |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let server_only = client(&clients, "server", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let stranger = client(&strangers, "node 1", |_| {});
    for (shows, word) in [
        (None, "none"),
        (Some(&old), "expired"),
        (Some(&server_only), "of a server"),
        (Some(&stranger), "of another authority"),
    ] {
        assert_eq!(ask(&foxy, &authority, shows, "/a"), "", "{word}");
    }
    foxy.counts(Event::TlsFailedCertificate, refused + 4);
    assert_eq!(origin.asked(), 1, "nobody else has asked");
}

#[test]
fn a_requested_certificate_may_be_missing_and_not_bad() {
    let (authority, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let origin = origin();
    let tls = server(&authority, "shop.test", Some((&clients, false)));
    let foxy = start(shop(&origin, &tls), &tls);
    let without = config(&authority, None);
    let forged = "X-Subject: CN=node 1\r\nX-Names: a\r\n";
    let got = say(
        &mut connect(&foxy, &without, "shop.test"),
        "shop.test",
        "/a",
        forged,
    );
    assert!(
        got.ends_with("subject= names="),
        "what a client claims is removed: {got}"
    );
    let node = client(&clients, "node 1", |_| {});
    let got = ask(&foxy, &authority, Some(&node), "/b");
    assert!(got.contains("CN=node 1"), "{got}");
    let stranger = client(&strangers, "x", |_| {});
    assert_eq!(ask(&foxy, &authority, Some(&stranger), "/c"), "");
}

#[test]
fn answers_for_a_named_client_are_not_for_others() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let origin = origin();
    let tls = server(&authority, "shop.test", Some((&clients, false)));
    let foxy = start(shop(&origin, &tls), &tls);
    let nodes = ["one", "two"].map(|name| client(&clients, name, |_| {}));
    for (node, name) in [(&nodes[0], "one"), (&nodes[1], "two"), (&nodes[0], "one")] {
        let got = ask(&foxy, &authority, Some(node), "/mine");
        assert!(got.contains(&format!("CN={name}")), "{got}");
    }
    let nobody = ask(&foxy, &authority, None, "/mine");
    assert!(nobody.ends_with("subject= names="), "{nobody}");
    let before = origin.asked();
    for node in &nodes {
        ask(&foxy, &authority, Some(node), "/public");
    }
    assert_eq!(
        origin.asked(),
        before + 1,
        "`public` says that it is for all"
    );
}

#[test]
fn names_in_certificates_open_a_site() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let origin = origin();
    let tls = server(&authority, "shop.test", Some((&clients, false)));
    let mut site = shop(&origin, &tls);
    site.allow_client_names = Some(vec![Pattern::new("*.nodes.test"), Pattern::new("CN=admin")]);
    let foxy = start(site, &tls);
    let named = |name: &'static str| {
        client(&clients, "x", move |params| {
            params.subject_alt_names = vec![SanType::DnsName(name.to_owned().try_into().unwrap())];
        })
    };
    let admin = client(&clients, "admin", |_| {});
    for (shows, status) in [
        (Some(named("a.nodes.test")), "200"),
        (Some(admin), "200"),
        (Some(named("nodes.test")), "403"),
        (Some(named("a.nodes.test.evil")), "403"),
        (None, "403"),
    ] {
        let got = ask(&foxy, &authority, shows.as_ref(), "/a");
        assert!(
            got.starts_with(&format!("HTTP/1.1 {status}")),
            "{status}: {got}"
        );
    }
}

#[test]
fn a_connection_for_one_site_does_not_open_another() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let origin = origin();
    let strict = server(&authority, "shop.test", Some((&clients, true)));
    // The certificate of the open site also contains the name of the strict site, which requires
    // certificates. It is the default certificate.
    let made = authority.certificate(&["open.test", "shop.test"], |_| {});
    let open = ServerTls::new(ServerOptions {
        certificate: Some(authority.files("open", &made)),
        default: Some("open.test".to_owned()),
        ..ServerOptions::default()
    })
    .unwrap();
    let names = |host: &str| SiteNames {
        hosts: vec![host.to_owned()],
        paths: Vec::new(),
    };
    let table = SiteTable::new(&[names("shop.test"), names("open.test")]).unwrap();
    let other = Site {
        name: "open".into(),
        verified_by: None,
        ..shop(&origin, &open)
    };
    let sites = vec![
        (shop(&origin, &strict), Some(strict.clone())),
        (other, Some(open.clone())),
    ];
    let certificates = [
        (strict, vec!["shop.test".to_owned()]),
        (open, vec!["open.test".to_owned()]),
    ];
    let foxy = serving(
        Serves::Sites(Arc::new(table), sites),
        ListenerTls::of_sites(certificates),
    );
    let without = config(&authority, None);
    let mut stream = connect(&foxy, &without, "open.test");
    assert!(say(&mut stream, "open.test", "/", "").starts_with("HTTP/1.1 200"));
    let crossed = say(&mut stream, "shop.test", "/", "");
    assert!(crossed.starts_with("HTTP/1.1 421"), "{crossed}");
    // A client that connects by address names no host in the handshake, and gets the default certificate.
    // With such a connection, the client has no access to the strict site either.
    let provider = connect(&foxy, &without, "127.0.0.1");
    drop(provider);
    let mut nameless = {
        let mut config = (*config(&authority, None)).clone();
        config.enable_sni = false;
        let session =
            ClientConnection::new(Arc::new(config), ServerName::try_from("open.test").unwrap());
        StreamOwned::new(session.unwrap(), TcpStream::connect(foxy.addr).unwrap())
    };
    let crossed = say(&mut nameless, "shop.test", "/", "");
    assert!(crossed.starts_with("HTTP/1.1 421"), "{crossed}");
    assert_eq!(origin.asked(), 1);
    let node = client(&clients, "node", |_| {});
    assert!(ask(&foxy, &authority, Some(&node), "/n").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_site_whose_clients_show_certificates_is_not_reached_without_tls() {
    let (authority, origin) = (Authority::new(), origin());
    let tls = server(&authority, "shop.test", Some((&authority, true)));
    let foxy = Foxy::start(Role::Site(shop(&origin, &tls)), Config::default(), 1);
    let answer = foxy.ask("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
    assert_eq!(answer.status, 403, "{}", answer.head);
    assert_eq!(origin.asked(), 0);
}

#[test]
fn every_connection_is_checked_anew() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let origin = origin();
    let tls = server(&authority, "shop.test", Some((&clients, true)));
    let foxy = start(shop(&origin, &tls), &tls);
    let node = client(&clients, "node", |_| {});
    let config = config(&authority, Some(&node));
    for _ in 0..2 {
        let mut stream = connect(&foxy, &config, "shop.test");
        assert!(say(&mut stream, "shop.test", "/", "").starts_with("HTTP/1.1 200"));
        assert_ne!(stream.conn.handshake_kind(), Some(HandshakeKind::Resumed));
    }
    // The file of trusted authorities is replaced: it now contains another authority.
    let next = Authority::new();
    let pem = std::fs::read(next.folder.path().join("ca.pem")).unwrap();
    std::fs::write(clients.folder.path().join("ca.pem"), pem).unwrap();
    assert_eq!(tls.renew(NOON).problems, Vec::<String>::new());
    assert_eq!(
        say(
            &mut connect(&foxy, &config, "shop.test"),
            "shop.test",
            "/",
            ""
        ),
        ""
    );
    let new = client(&next, "new", |_| {});
    assert!(ask(&foxy, &authority, Some(&new), "/").starts_with("HTTP/1.1 200"));
}
