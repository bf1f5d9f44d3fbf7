//! Several sites on one listener. The name in the TLS handshake, the host and the path determine which site
//! answers. The tests also check that this site's keys, purges and access lists apply.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::common::tls::Authority;
use crate::common::{Foxy, NOON, Origin};
use foxy_base::{ManualClock, WallTime};
use foxy_proxy::{Config, Serves, Site, SiteNames, SiteTable, Token};
use foxy_store::{Engine, EngineConfig};
use foxy_tls::{ListenerTls, ServerOptions, ServerTls};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// An origin that states its name and the number of requests that it has received.
fn origin(name: &'static str) -> Origin {
    let asked_before = std::sync::atomic::AtomicUsize::new(0);
    Origin::start(move |asked| {
        let n = asked_before.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let body = format!("{name} {n}");
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", body);
        true
    })
}

fn site(name: &str, origin: &Origin) -> Site {
    Site {
        name: name.into(),
        host: "origin.test".into(),
        port: origin.addr.port(),
        preserve_host: true,
        ..Site::default()
    }
}

fn names(hosts: &[&str], paths: &[&str]) -> SiteNames {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    SiteNames {
        hosts: texts(hosts),
        paths: texts(paths),
    }
}

/// Starts a listener with these sites. Each site has its certificates.
fn listen(sites: Vec<(SiteNames, Site, Option<ServerTls>)>, config: Config) -> Foxy {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
    let table: Vec<_> = sites.iter().map(|(names, ..)| names.clone()).collect();
    let own = |(names, _, tls): &(SiteNames, _, Option<ServerTls>)| {
        Some((tls.clone()?, names.hosts.clone()))
    };
    let sets: Vec<_> = sites.iter().filter_map(own).collect();
    let tls = (!sets.is_empty()).then(|| ListenerTls::of_sites(sets));
    let sites = sites
        .into_iter()
        .map(|(_, site, tls)| (site, tls))
        .collect();
    let table = Arc::new(SiteTable::new(&table).unwrap());
    Foxy::serving(
        (Serves::Sites(table, sites), tls, false),
        config,
        1,
        engine,
        clock,
    )
}

fn certificates(authority: &Authority, file: &str, of: &[&str], default: bool) -> ServerTls {
    let made = authority.certificate(of, |_| {});
    ServerTls::new(ServerOptions {
        certificate: Some(authority.files(file, &made)),
        default: default.then(|| of[0].to_owned()),
        ..ServerOptions::default()
    })
    .unwrap()
}

/// Sends a request over TLS with the name `sni` in the handshake. Returns the result of [`said`] for the
/// answer, or `None` if the handshake was refused.
fn over_tls(foxy: &Foxy, authority: &Authority, sni: &str, host: &str) -> Option<String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    let _ = authority;
    // Clients do not send addresses as names in the handshake. So a client that connects to an address sends
    // no name.
    let name = if sni.is_empty() { "127.0.0.1" } else { sni };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tcp = TcpStream::connect(foxy.addr).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut tcp).ok()?;
    }
    let mut stream = StreamOwned::new(session, tcp);
    write!(
        stream,
        "GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Some(said(&answer))
}

/// Returns the status of an answer, as in `421`. If the status is 200, the name of the site follows it, as in
/// `200 a`.
fn said(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = &head[9..12];
    match status {
        "200" => format!("200 {}", body.split(' ').next().unwrap()),
        other => other.to_owned(),
    }
}

/// A verifier that accepts every certificate. These tests only check which site answers.
#[derive(Debug)]
struct Any;

impl rustls::client::danger::ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Name in the handshake, host, and the expected result of [`over_tls`]. `-` means that the handshake is
/// refused.
type Row = (&'static str, &'static str, &'static str);

/// Site `a` has the hosts `a.test` and `*.a.test`. Site `b` has `b.test`, and site `c` has `c.test`. The
/// certificates of `a` are for both of its hosts and for `c.test`. `b` and `c` have their own certificates.
const ROWS: [Row; 12] = [
    ("a.test", "a.test", "200 a"),
    ("a.test", "www.a.test:443", "200 a"),
    ("a.test", "b.test", "421"),
    // The host is on the certificate of the connection, but its site `c` has its own certificates.
    ("a.test", "c.test", "421"),
    ("a.test", "unknown.test", "421"),
    ("www.a.test", "a.test", "200 a"),
    ("www.a.test", "x.www.a.test", "421"),
    ("b.test", "b.test", "200 b"),
    ("b.test", "a.test", "421"),
    ("c.test", "c.test", "200 c"),
    ("unknown.test", "a.test", "-"),
    ("", "a.test", "-"),
];

#[test]
fn twelve_pairs_of_name_and_host() {
    let authority = Authority::new();
    let origins = [origin("a"), origin("b"), origin("c")];
    let start = |default: bool| {
        let own =
            |file: &str, of: &[&str], default| Some(certificates(&authority, file, of, default));
        listen(
            vec![
                (
                    names(&["a.test", "*.a.test"], &[]),
                    site("a", &origins[0]),
                    own("a", &["a.test", "*.a.test", "c.test"], default),
                ),
                (
                    names(&["b.test"], &[]),
                    site("b", &origins[1]),
                    own("b", &["b.test"], false),
                ),
                (
                    names(&["c.test"], &[]),
                    site("c", &origins[2]),
                    own("c", &["c.test"], false),
                ),
            ],
            Config::default(),
        )
    };
    let foxy = start(false);
    for (sni, host, expected) in ROWS {
        let got = over_tls(&foxy, &authority, sni, host);
        assert_eq!(got.as_deref().unwrap_or("-"), expected, "{sni} {host}");
    }
    // A client that got the default certificate may send requests for any host, so only the host decides.
    let foxy = start(true);
    for (sni, host, expected) in [
        ("unknown.test", "a.test", "200 a"),
        ("", "b.test", "200 b"),
        ("", "unknown.test", "421"),
        ("a.test", "b.test", "421"),
    ] {
        let got = over_tls(&foxy, &authority, sni, host);
        assert_eq!(got.as_deref().unwrap_or("-"), expected, "{sni} {host}");
    }
}

#[test]
fn unknown_hosts_and_paths_are_not_found_over_plain_http() {
    let (shop, api, rest) = (origin("shop"), origin("api"), origin("rest"));
    let sites = |others: bool| {
        let mut sites = vec![
            (names(&["shop.test"], &[]), site("shop", &shop), None),
            (names(&["shop.test"], &["/api"]), site("api", &api), None),
        ];
        if others {
            sites.push((names(&["*"], &[]), site("rest", &rest), None));
        }
        listen(sites, Config::default())
    };
    let foxy = sites(false);
    let ask = |foxy: &Foxy, line: &str, host: &str| {
        let answer = foxy.ask(&format!("{line} HTTP/1.1\r\n{host}\r\n"));
        let word = answer.text();
        let word = word.split(' ').next().unwrap().to_owned();
        match answer.status {
            200 if answer.field("Allow").is_some() => "200 options".to_owned(),
            200 => format!("200 {word}"),
            status => status.to_string(),
        }
    };
    for (line, host, expected) in [
        ("GET /x", "Host: shop.test\r\n", "200 shop"),
        ("GET /x", "Host: SHOP.test:8080\r\n", "200 shop"),
        ("GET /api/x", "Host: shop.test\r\n", "200 api"),
        ("GET /%61pi/x", "Host: shop.test\r\n", "200 api"),
        ("GET /x/../api", "Host: shop.test\r\n", "400"),
        ("GET /x", "Host: other.test\r\n", "404"),
        ("GET /x", "Host: 127.0.0.1\r\n", "404"),
        (
            "GET http://shop.test/api",
            "Host: other.test\r\n",
            "200 api",
        ),
        ("GET http://other.test/", "Host: shop.test\r\n", "404"),
        (
            "POST /x",
            "Host: other.test\r\nContent-Length: 0\r\n",
            "404",
        ),
        ("CONNECT shop.test:443", "Host: shop.test:443\r\n", "405"),
        ("OPTIONS *", "Host: shop.test\r\n", "200 options"),
    ] {
        assert_eq!(ask(&foxy, line, host), expected, "{line} {host}");
    }
    let old = foxy.ask("GET /x HTTP/1.0\r\n\r\n");
    assert_eq!(
        (old.status, old.cache().contains("no-site-for-host")),
        (404, true)
    );
    let foxy = sites(true);
    assert_eq!(ask(&foxy, "GET /x", "Host: other.test\r\n"), "200 rest");
    assert_eq!(foxy.ask("GET /x HTTP/1.0\r\n\r\n").status, 200);
}

#[test]
fn each_request_of_a_connection_chooses_anew_and_keys_purges_and_access_follow() {
    let (open, closed) = (origin("open"), origin("closed"));
    let nobody = Site {
        allow_clients: Some(Vec::new()),
        ..site("closed", &closed)
    };
    let foxy = listen(
        vec![
            (names(&["open.test"], &[]), site("open", &open), None),
            (names(&["open.test"], &["/b"]), site("other", &closed), None),
            (names(&["closed.test"], &[]), nobody, None),
        ],
        Config::default(),
    );
    let mut client = foxy.connect();
    let mut ask = |method: &str, host: &str, path: &str| {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let answer = client.answer();
        (answer.status, answer.text())
    };
    let of = |status: u16, text: &str| (status, text.to_owned());
    assert_eq!(ask("GET", "open.test", "/x"), of(200, "open 0"));
    assert_eq!(ask("GET", "open.test", "/b"), of(200, "closed 0"));
    assert_eq!(ask("GET", "closed.test", "/x").0, 403);
    assert_eq!(ask("GET", "unknown.test", "/x").0, 404);
    assert_eq!(ask("GET", "open.test", "/x"), of(200, "open 0"));
    assert_eq!(ask("PURGE", "open.test", "/b").0, 200);
    assert_eq!(ask("GET", "open.test", "/b"), of(200, "closed 1"));
    assert_eq!(ask("GET", "open.test", "/x"), of(200, "open 0"));
    assert_eq!(ask("PURGE", "closed.test", "/x").0, 403);
    drop(client);
    let logged = foxy.logged();
    assert!(
        logged[3].starts_with("bad-request 404 no-site-for-host"),
        "{logged:?}"
    );
}

#[test]
fn a_purge_of_everything_at_one_site_leaves_the_others() {
    const TOKEN: &str = "0123456789abcdef0123";
    let (one, two) = (origin("one"), origin("two"));
    let mut config = Config::default();
    config.access.token = Token::new(TOKEN);
    let foxy = listen(
        vec![
            (names(&["one.test"], &[]), site("one", &one), None),
            (names(&["two.test"], &[]), site("two", &two), None),
        ],
        config,
    );
    let ask = |method: &str, host: &str, fields: &str| {
        foxy.ask(&format!(
            "{method} / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ))
    };
    for host in ["one.test", "two.test"] {
        assert_eq!(ask("GET", host, "").status, 200);
    }
    let all = format!("X-Foxy-Token: {TOKEN}\r\nX-Purge-Method: all\r\n");
    assert_eq!(ask("PURGE", "one.test", &all).status, 200);
    assert_eq!(ask("GET", "one.test", "").text(), "one 1");
    assert_eq!(ask("GET", "two.test", "").text(), "two 0");
}
