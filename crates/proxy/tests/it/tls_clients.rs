//! Clients that use TLS: the choice of the certificate by name, refusals, renewal of certificates, truncated
//! answers, and clients that misbehave.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::common::tls::Authority;
use crate::common::{Foxy, NOON, Origin, until};
use foxy_base::{ManualClock, WallTime};
use foxy_proxy::{Config, Event, Role, Site, Use};
use foxy_store::{Engine, EngineConfig};
use foxy_tls::{ServerOptions, ServerTls};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};

type Stream = StreamOwned<ClientConnection, TcpStream>;

const FRESH: &str = "Cache-Control: max-age=60\r\n";

pub(crate) fn listening(role: Role, tls: &ServerTls, config: Config) -> Foxy {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
    Foxy::listening((role, Some(tls.clone())), config, 1, engine, clock)
}

fn site(origin: &Origin) -> Role {
    Role::Site(Site {
        name: "shop".into(),
        host: "origin.test".into(),
        port: origin.addr.port(),
        ..Site::default()
    })
}

fn pages() -> Origin {
    Origin::start(|asked| {
        match asked.path() {
            "/cut" => {
                asked.raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\npart");
                return false;
            }
            "/large" => asked.reply("200 OK", FRESH, vec![b'x'; 400_000]),
            _ => asked.reply("200 OK", FRESH, "page"),
        }
        true
    })
}

/// Certificates for `names`, each under its own file name, in one folder.
pub(crate) fn certificates(
    authority: &Authority,
    names: &[&str],
    default: Option<&str>,
) -> ServerTls {
    for (n, name) in names.iter().enumerate() {
        let made = authority.certificate(&[name], |_| {});
        authority.files(&format!("site{n}"), &made);
    }
    ServerTls::new(ServerOptions {
        folder: Some(authority.folder.path().to_owned()),
        default: default.map(str::to_owned),
        ..ServerOptions::default()
    })
    .unwrap()
}

fn client(authority: &Authority) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authority.roots())
        .with_no_client_auth();
    Arc::new(config)
}

fn connect(foxy: &Foxy, config: &Arc<ClientConfig>, name: &str) -> io::Result<Stream> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut session = ClientConnection::new(config.clone(), name).unwrap();
    let mut tcp = TcpStream::connect(foxy.addr)?;
    tcp.set_read_timeout(Some(Duration::from_secs(20)))?;
    while session.is_handshaking() {
        session.complete_io(&mut tcp)?;
    }
    Ok(StreamOwned::new(session, tcp))
}

/// Returns the head, and the bytes after it within the announced length.
fn ask(stream: &mut Stream, host: &str, path: &str) -> io::Result<(String, Vec<u8>)> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut got = Vec::new();
    loop {
        let mut piece = [0; 16 << 10];
        let n = stream.read(&mut piece)?;
        got.extend_from_slice(&piece[..n]);
        let Some(at) = got.windows(4).position(|w| w == b"\r\n\r\n") else {
            assert!(n > 0, "no head");
            continue;
        };
        let head = String::from_utf8(got[..at].to_vec()).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        if n == 0 || got.len() - at - 4 >= length.unwrap().parse().unwrap() {
            return Ok((head, got.split_off(at + 4)));
        }
    }
}

#[test]
fn names_choose_the_certificate_and_limit_the_hosts() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test", "*.wild.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let trust = client(&authority);
    for (sni, host, status) in [
        ("shop.test", "shop.test", 200),
        ("shop.test", "SHOP.test:443", 200),
        ("shop.test", "a.wild.test", 421),
        ("a.wild.test", "b.wild.test", 200),
        ("a.wild.test", "shop.test", 421),
        ("a.wild.test", "b.a.wild.test", 421),
    ] {
        let mut stream = connect(&foxy, &trust, sni).unwrap();
        let (head, body) = ask(&mut stream, host, "/").unwrap();
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{sni} {host}: {head}"
        );
        assert_eq!(status == 200, body == b"page");
        if status == 421 {
            // The connection can be used again.
            let (head, _) = ask(&mut stream, sni, "/").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        }
    }
    for sni in ["other.test", "wild.test", "a.b.wild.test", "127.0.0.1"] {
        let refused = connect(&foxy, &trust, sni).unwrap_err().to_string();
        assert!(refused.contains("UnrecognisedName"), "{sni}: {refused}");
    }
    foxy.counts(Event::TlsFailedName, 4);
    foxy.counts(Event::TlsHandshakes, 6);
}

#[test]
fn a_default_certificate_is_for_clients_that_name_none() {
    let (authority, origin) = (Authority::new(), pages());
    let made = authority.certificate(&["shop.test", "127.0.0.1"], |_| {});
    let certificate = Some(authority.files("one", &made));
    let options = ServerOptions {
        certificate,
        default: Some("shop.test".into()),
        ..ServerOptions::default()
    };
    let tls = ServerTls::new(options.clone()).unwrap();
    let foxy = listening(site(&origin), &tls, Config::default());
    let mut stream = connect(&foxy, &client(&authority), "127.0.0.1").unwrap();
    let (head, _) = ask(&mut stream, "any.test", "/").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let missing = ServerOptions {
        default: Some("other.test".into()),
        ..options
    };
    assert!(ServerTls::new(missing).is_err());
}

#[test]
fn a_forward_proxy_speaks_tls_to_its_clients() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["proxy.test"], None);
    let foxy = listening(Role::Forward, &tls, Config::default());
    let mut stream = connect(&foxy, &client(&authority), "proxy.test").unwrap();
    for expected in ["fwd=uri-miss", "; hit"] {
        let host = origin.authority();
        let (head, body) = ask(&mut stream, &host, &format!("http://{host}/large")).unwrap();
        assert!(head.contains(expected), "{head}");
        assert_eq!(body.len(), 400_000);
    }
}

#[test]
fn a_changed_certificate_is_used_and_a_bad_one_is_not() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let trust = client(&authority);
    // Each call uses a new client, so that no session is resumed. A resumed session would show the
    // certificate of its first connection.
    let shown = || {
        let stream = connect(&foxy, &client(&authority), "shop.test").unwrap();
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let mut open = connect(&foxy, &trust, "shop.test").unwrap();
    let first = shown();
    let now = 1_700_000_000;
    assert!(tls.renew(now).changed.is_empty());
    // The certificate file contains the new certificate, but the key file still contains the old key. So the
    // files do not match yet.
    let next = authority.certificate(&["shop.test"], |_| {});
    std::fs::write(authority.folder.path().join("site0.crt"), &next.certificate).unwrap();
    let renewed = tls.renew(now);
    assert_eq!(
        (renewed.changed.len(), renewed.problems.len()),
        (0, 1),
        "{renewed:?}"
    );
    assert!(renewed.problems[0].contains("site0.crt"), "{renewed:?}");
    assert!(tls.renew(now).problems.is_empty(), "said once");
    assert_eq!(shown(), first);
    std::fs::write(authority.folder.path().join("site0.key"), &next.key).unwrap();
    assert_eq!(tls.renew(now).changed.len(), 1);
    let second = shown();
    assert_ne!(second, first);
    let (head, _) = ask(&mut open, "shop.test", "/").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 "),
        "an open connection goes on: {head}"
    );
    // Another certificate is added to the folder.
    let more = authority.certificate(&["more.test"], |_| {});
    authority.files("more", &more);
    assert_eq!(tls.renew(now).changed.len(), 1);
    assert!(connect(&foxy, &trust, "more.test").is_ok());
    std::fs::write(authority.folder.path().join("site0.crt"), "nothing").unwrap();
    assert_eq!(tls.renew(now).problems.len(), 1);
    assert_eq!(shown(), second);
}

/// If the default certificate or the folder is gone, the certificates stay as they were. Each of these
/// problems is reported once.
#[test]
fn a_problem_of_all_certificates_is_reported_once() {
    let authority = Authority::new();
    let tls = certificates(&authority, &["shop.test", "more.test"], Some("shop.test"));
    let folder = authority.folder.path();
    let now = 1_700_000_000;
    let problems = || tls.renew(now).problems;
    let key = std::fs::read(folder.join("site0.key")).unwrap();
    for _ in 0..2 {
        std::fs::remove_file(folder.join("site0.key")).unwrap();
        assert!(problems()[0].contains("the default certificate is gone"));
        assert_eq!(problems(), Vec::<String>::new());
        std::fs::write(folder.join("site0.key"), &key).unwrap();
        assert_eq!(problems(), Vec::<String>::new());
    }
    let aside = folder.with_extension("aside");
    std::fs::rename(folder, &aside).unwrap();
    let gone = problems();
    assert!(
        gone.len() == 1 && gone[0].contains(folder.to_str().unwrap()),
        "{gone:?}"
    );
    assert_eq!(problems(), Vec::<String>::new());
    std::fs::rename(&aside, folder).unwrap();
    assert_eq!(problems(), Vec::<String>::new());
}

#[test]
fn sessions_are_continued() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let trust = client(&authority);
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let mut stream = connect(&foxy, &trust, "shop.test").unwrap();
        ask(&mut stream, "shop.test", "/").unwrap();
        let kind = stream.conn.handshake_kind().unwrap();
        assert_eq!(
            kind == HandshakeKind::Resumed,
            expected == HandshakeKind::Resumed
        );
    }
    foxy.counts(Event::TlsResumed, 1);
}

#[test]
fn a_cut_answer_ends_without_announcement() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let mut stream = connect(&foxy, &client(&authority), "shop.test").unwrap();
    let cut = ask(&mut stream, "shop.test", "/cut");
    assert!(
        cut.is_err(),
        "an announced end would be a whole answer: {cut:?}"
    );
    // After a complete answer, Foxy announces the end of the data with `close_notify`.
    let mut stream = connect(&foxy, &client(&authority), "shop.test").unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("page"), "{text}");
}

#[test]
fn clients_that_misbehave_are_closed_in_time() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let mut config = Config::default();
    config.timeouts.head = Duration::from_millis(500);
    let foxy = listening(site(&origin), &tls, config);
    let raw = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(foxy.addr).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    assert_eq!(
        raw(b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")[0],
        21,
        "an alert"
    );
    assert_eq!(raw(&[0xff; 300])[0], 21);
    assert_eq!(
        raw(&[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]),
        b"",
        "half of a hello"
    );
    assert_eq!(raw(b""), b"", "silence");
    foxy.counts(Event::TlsFailedTimeout, 2);
    foxy.counts(Event::TlsFailedHandshake, 2);
    memory_is_given_back(&foxy);
}

/// A handshake whose bytes arrive one at a time is slow, but valid.
#[test]
fn a_client_may_send_its_handshake_one_byte_at_a_time() {
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let name = ServerName::try_from("shop.test").unwrap();
    let mut session = ClientConnection::new(client(&authority), name).unwrap();
    let mut tcp = TcpStream::connect(foxy.addr).unwrap();
    tcp.set_nodelay(true).unwrap();
    while session.is_handshaking() {
        let mut bytes = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut bytes).unwrap();
        }
        for byte in bytes {
            tcp.write_all(&[byte]).unwrap();
        }
        if session.is_handshaking() {
            session.read_tls(&mut tcp).unwrap();
            session.process_new_packets().unwrap();
        }
    }
    let mut stream = StreamOwned::new(session, tcp);
    let (head, _) = ask(&mut stream, "shop.test", "/").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    drop(stream);
    memory_is_given_back(&foxy);
}

/// Waits until all client connections have ended, and checks that they hold no memory.
fn memory_is_given_back(foxy: &Foxy) {
    until(|| foxy.proxy.connections() == 0);
    // Only the pooled connection to the origin is still open. Foxy counts no memory for it, because it is
    // plain and has no read buffer.
    assert_eq!(
        foxy.proxy.memory_used(Use::Connections),
        0,
        "every session gave its memory back"
    );
}

#[test]
fn curl_gets_pages_and_tunnels_over_tls() {
    if std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_err()
    {
        return;
    }
    let (authority, origin) = (Authority::new(), pages());
    let tls = certificates(&authority, &["shop.test"], None);
    let foxy = listening(site(&origin), &tls, Config::default());
    let port = foxy.addr.port();
    for versions in [
        ["--tlsv1.2", "--tls-max", "1.2"],
        ["--tlsv1.3", "--tls-max", "1.3"],
    ] {
        let out = std::process::Command::new("curl")
            .args(["-sS", "--noproxy", "*", "--cacert"])
            .arg(authority.folder.path().join("ca.pem"))
            .args(["--resolve", &format!("shop.test:{port}:127.0.0.1")])
            .args(versions)
            .arg(format!("https://shop.test:{port}/large"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.stdout.len(), 400_000, "{versions:?} {said}");
    }
}
