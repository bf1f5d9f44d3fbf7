//! Hostile TLS peers: floods of records without content, broken records, hundreds of incomplete handshakes,
//! and origins whose certificate changes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::tls::{Authority, Front, Made, Manner};
use crate::common::{Foxy, NOON, Origin};
use foxy_base::{ManualClock, WallTime};
use foxy_proxy::{Config, Event, Role, Site, UpstreamConfig, Use};
use foxy_store::{Engine, EngineConfig};
use foxy_tls::{ServerOptions, ServerTls};
use rustls::crypto::cipher::{AeadKey, Iv, MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    StreamOwned,
};

fn pages() -> Origin {
    Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "page");
        true
    })
}

fn start(authority: &Authority, origin: &Origin, head: Duration) -> Foxy {
    let made = authority.certificate(&["shop.test"], |_| {});
    let tls = ServerTls::new(ServerOptions {
        certificate: Some(authority.files("shop", &made)),
        ..ServerOptions::default()
    });
    let role = Role::Site(Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    });
    let mut config = Config::default();
    config.timeouts.head = head;
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
    Foxy::listening((role, Some(tls.unwrap())), config, 1, engine, clock)
}

fn trusting(authority: &Authority) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(authority.roots())
        .with_no_client_auth()
}

/// Returns a session after its handshake, and its socket.
fn shaken(foxy: &Foxy, config: ClientConfig) -> (ClientConnection, TcpStream) {
    let name = ServerName::try_from("shop.test").unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tcp = TcpStream::connect(foxy.addr).unwrap();
    tcp.set_nodelay(true).unwrap();
    let limit = Some(Duration::from_secs(20));
    tcp.set_read_timeout(limit).unwrap();
    tcp.set_write_timeout(limit).unwrap();
    while session.is_handshaking() || session.wants_write() {
        session.complete_io(&mut tcp).unwrap();
    }
    (session, tcp)
}

/// A client that builds its own TLS records.
struct Raw {
    tcp: TcpStream,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Raw {
    fn new(foxy: &Foxy, authority: &Authority) -> Self {
        let mut config = trusting(authority);
        config.enable_secret_extraction = true;
        let (session, tcp) = shaken(foxy, config);
        let suite = session.negotiated_cipher_suite().unwrap();
        let secrets = session.dangerous_extract_secrets().unwrap();
        let (sequence, keys) = secrets.tx;
        let (key, iv): (AeadKey, Iv) = match keys {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv }
            | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
            | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
            _ => panic!("another cipher"),
        };
        let encrypter = suite.tls13().unwrap().aead_alg.encrypter(key, iv);
        Self {
            tcp,
            encrypter,
            sequence,
        }
    }

    fn record(&mut self, typ: ContentType, content: &[u8]) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(content),
        };
        let sealed = self.encrypter.encrypt(message, self.sequence).unwrap();
        self.sequence += 1;
        sealed.encode()
    }

    /// Sends records as long as Foxy accepts them. Returns their number.
    fn flood(&mut self, typ: ContentType, content: &[u8], most: usize) -> usize {
        for n in 0..most {
            let record = self.record(typ, content);
            if self.tcp.write_all(&record).is_err() {
                return n;
            }
        }
        most
    }

    /// Returns true if Foxy ends the connection without an answer. Foxy may send an alert.
    fn is_closed(&mut self) -> bool {
        let mut said = Vec::new();
        let end = self.tcp.read_to_end(&mut said);
        let closed =
            end.is_ok() || end.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset);
        closed && said.len() < 2000
    }
}

/// Returns true if Foxy still works: a valid request on a new connection gets its answer.
fn is_well(foxy: &Foxy, authority: &Authority) -> bool {
    let (session, tcp) = shaken(foxy, trusting(authority));
    let mut stream = StreamOwned::new(session, tcp);
    let request = b"GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).is_ok() && text.ends_with("page")
}

/// Waits until all connections have ended and have freed their memory.
fn settles(foxy: &Foxy) {
    for _ in 0..4000 {
        if foxy.proxy.connections() == 0 && foxy.proxy.memory_used(Use::Connections) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let used = foxy.proxy.memory_used(Use::Connections);
    panic!("{} connections, {used} bytes", foxy.proxy.connections());
}

const LONG: Duration = Duration::from_secs(15);

#[test]
fn records_without_content_end_the_connection() {
    let (authority, origin) = (Authority::new(), pages());
    let foxy = start(&authority, &origin, LONG);
    assert!(is_well(&foxy, &authority));
    for (typ, content, word) in [
        (ContentType::ApplicationData, &b""[..], "empty records"),
        (ContentType::Alert, &[1, 90], "warnings"),
        (
            ContentType::Handshake,
            &[0, 0, 0, 0],
            "requests to begin anew",
        ),
        (ContentType::ChangeCipherSpec, &[1], "changes of the cipher"),
        (ContentType::Heartbeat, &[1], "heartbeats"),
    ] {
        let mut raw = Raw::new(&foxy, &authority);
        raw.flood(typ, content, 100_000);
        assert!(raw.is_closed(), "{word}");
        assert!(is_well(&foxy, &authority), "{word}");
    }
    settles(&foxy);
}

#[test]
fn floods_of_new_keys_end_the_connection_and_single_ones_do_not() {
    let (authority, origin) = (Authority::new(), pages());
    let foxy = start(&authority, &origin, LONG);
    let (mut session, mut tcp) = shaken(&foxy, trusting(&authority));
    let mut sent = 0;
    let refused = loop {
        session.refresh_traffic_keys().unwrap();
        let mut bytes = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut bytes).unwrap();
        }
        if tcp.write_all(&bytes).is_err() {
            break true;
        }
        sent += 1;
        if sent == 20_000 {
            break false;
        }
    };
    let mut said = Vec::new();
    let end = tcp.read_to_end(&mut said);
    assert!(
        refused || end.is_err() || said.len() < 20_000,
        "{sent} new keys, {} bytes",
        said.len()
    );
    assert!(is_well(&foxy, &authority));
    // A client that renews its keys sometimes still gets its answers.
    let (session, tcp) = shaken(&foxy, trusting(&authority));
    let mut stream = StreamOwned::new(session, tcp);
    for _ in 0..100 {
        stream.conn.refresh_traffic_keys().unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !answer.ends_with(b"page") {
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0);
            answer.extend_from_slice(&piece[..n]);
        }
    }
    drop(stream);
    settles(&foxy);
}

#[test]
fn broken_records_end_the_connection() {
    let (authority, origin) = (Authority::new(), pages());
    let foxy = start(&authority, &origin, LONG);
    let request = b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n";
    type Break = fn(&mut Vec<u8>);
    let breaks: [(&str, Break); 5] = [
        ("another byte", |record| *record.last_mut().unwrap() ^= 1),
        ("another length", |record| {
            record[4] = record[4].wrapping_sub(1);
        }),
        ("too long", |record| (record[3], record[4]) = (0xff, 0xff)),
        ("another type", |record| record[0] = 99),
        ("no encryption", |record| {
            *record = b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n".to_vec();
        }),
    ];
    for (word, change) in breaks {
        let mut raw = Raw::new(&foxy, &authority);
        let mut record = raw.record(ContentType::ApplicationData, request);
        change(&mut record);
        record.extend([0; 40]);
        raw.tcp.write_all(&record).unwrap();
        assert!(raw.is_closed(), "{word}");
    }
    // If an attacker sends a TLS record twice, the cipher detects the second copy. So a request cannot be
    // replayed.
    let mut raw = Raw::new(&foxy, &authority);
    let record = raw.record(ContentType::ApplicationData, request);
    raw.tcp.write_all(&[&record[..], &record].concat()).unwrap();
    raw.is_closed();
    let lines = || {
        foxy.logged()
            .iter()
            .filter(|line| line.ends_with(" /"))
            .count()
    };
    assert!(is_well(&foxy, &authority));
    settles(&foxy);
    assert!(lines() <= 2, "answered at most once: {:?}", foxy.logged());
}

#[test]
fn one_byte_in_each_record_is_slow_and_right() {
    let (authority, origin) = (Authority::new(), pages());
    let foxy = start(&authority, &origin, LONG);
    let mut raw = Raw::new(&foxy, &authority);
    for byte in b"GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n" {
        let record = raw.record(ContentType::ApplicationData, &[*byte]);
        raw.tcp.write_all(&record).unwrap();
    }
    let mut said = Vec::new();
    raw.tcp.read_to_end(&mut said).unwrap();
    assert!(said.len() > 100, "an answer");
    settles(&foxy);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn half_handshakes_by_the_hundred_cost_others_nothing() {
    let (authority, origin) = (Authority::new(), pages());
    let foxy = start(&authority, &origin, Duration::from_secs(8));
    let name = ServerName::try_from("shop.test").unwrap();
    let mut session = ClientConnection::new(Arc::new(trusting(&authority)), name).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    // The clients send half of a ClientHello, a complete ClientHello, or nothing.
    let pieces = [&hello[..hello.len() / 2], &hello[..], &[]];
    let held: Vec<TcpStream> = (0..600)
        .map(|n| {
            let mut tcp = TcpStream::connect(foxy.addr).unwrap();
            tcp.write_all(pieces[n % 3]).unwrap();
            tcp
        })
        .collect();
    for _ in 0..20 {
        assert!(is_well(&foxy, &authority));
    }
    // The time limit for a request head also limits each handshake. All 600 connections exceed this limit.
    foxy.counts(Event::TlsFailedTimeout, 600);
    settles(&foxy);
    drop(held);
}

/// A server's choice among several certificates. The test chooses the certificate through `now`.
#[derive(Debug)]
struct InTurn {
    keys: Vec<Arc<rustls::sign::CertifiedKey>>,
    now: Arc<AtomicUsize>,
}

impl rustls::server::ResolvesServerCert for InTurn {
    fn resolve(
        &self,
        _hello: rustls::server::ClientHello<'_>,
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        self.keys.get(self.now.load(Ordering::SeqCst)).cloned()
    }
}

fn signing(made: &Made) -> Arc<rustls::sign::CertifiedKey> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let chain = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap();
    let key = rustls::sign::CertifiedKey::from_der(vec![chain], key, &provider);
    Arc::new(key.unwrap())
}

#[test]
fn an_origin_whose_certificate_changes_is_checked_each_time() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=5\r\nETag: \"v\"\r\nConnection: close\r\n";
        asked.reply("200 OK", fields, "page");
        false
    });
    let made = [
        authority.certificate(&["origin.test"], |_| {}),
        stranger.certificate(&["origin.test"], |_| {}),
        authority.certificate(&["other.test"], |_| {}),
        authority.certificate(&["origin.test"], |_| {}),
    ];
    let now = Arc::new(AtomicUsize::new(0));
    let mut server = authority.server(&made[0]);
    server.cert_resolver = Arc::new(InTurn {
        keys: made.iter().map(signing).collect(),
        now: now.clone(),
    });
    // Without session tickets no session is resumed, so the server shows its certificate on each connection.
    server.send_tls13_tickets = 0;
    let front = Front::start(server, origin.addr, Manner::default());
    let config = Config {
        upstream: UpstreamConfig {
            tls: authority.trusted(),
            ..UpstreamConfig::default()
        },
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let get = |path: &str| {
        let host = front.authority();
        foxy.ask(&format!(
            "GET https://{host}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ))
    };
    assert_eq!(get("/kept").text(), "page");
    for (turn, reason) in [
        (1, "origin-certificate-issuer"),
        (2, "origin-certificate-name"),
    ] {
        now.store(turn, Ordering::SeqCst);
        let asked = origin.asked();
        assert_eq!(
            get("/kept").text(),
            "page",
            "what was checked is still fresh"
        );
        let refused = get("/new");
        assert_eq!(refused.status, 502);
        assert!(refused.cache().contains(reason), "{}", refused.cache());
        let post = foxy.ask(&format!(
            "POST https://{0}/p HTTP/1.1\r\nHost: {0}\r\nContent-Length: 6\r\n\r\nsecret",
            front.authority()
        ));
        assert_eq!(post.status, 502);
        assert_eq!(origin.asked(), asked, "nothing was sent");
        assert_eq!(foxy.engine.stats().ram_objects, 1, "nothing was stored");
    }
    now.store(3, Ordering::SeqCst);
    assert_eq!(get("/new").text(), "page");
    assert!(get("/new").cache().contains("; hit"));
}
