//! TLS on both sides of Foxy, for tests that do not use TLS themselves. The clients of these tests connect to
//! a relay, which uses TLS to Foxy. Foxy connects to a TLS server, which forwards the bytes to the origin of
//! the test.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use foxy_proxy::{Role, Serves};
use foxy_tls::{OriginTls, ServerOptions, ServerTls};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, SockRef, Socket, Type};

use super::tls::{Authority, Front, Made, Manner};

/// The environment variable that turns TLS on for a complete test process.
pub const SWITCH: &str = "FOXY_TEST_TLS";

/// Returns true in a process that runs tests with TLS on both sides.
pub fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os(SWITCH).is_some())
}

fn authority() -> &'static (Authority, Made) {
    static AUTHORITY: OnceLock<(Authority, Made)> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let authority = Authority::new();
        let names = ["foxy.test", "origin.test", "127.0.0.1"];
        let made = authority.certificate(&names, |_| {});
        (authority, made)
    })
}

/// Starts the TLS server in front of an origin.
pub fn front(origin: SocketAddr) -> SocketAddr {
    let (authority, made) = authority();
    Front::start(authority.server(made), origin, Manner::default()).addr
}

/// Returns the TLS settings of Foxy for such origins.
pub fn trusted() -> OriginTls {
    static TRUSTED: OnceLock<OriginTls> = OnceLock::new();
    TRUSTED.get_or_init(|| authority().0.trusted()).clone()
}

/// Changes sites so that TLS is used to their origins.
pub fn secured(mut serves: Serves) -> Serves {
    if let Serves::One(Role::Site(site)) = &mut serves {
        site.tls = Some(trusted());
    }
    serves
}

/// Returns certificates for a listener.
pub fn certificates() -> ServerTls {
    let (authority, made) = authority();
    static FILES: OnceLock<(std::path::PathBuf, std::path::PathBuf)> = OnceLock::new();
    let files = FILES.get_or_init(|| authority.files("foxy", made));
    ServerTls::new(ServerOptions {
        certificate: Some(files.clone()),
        default: Some("foxy.test".to_owned()),
        ..ServerOptions::default()
    })
    .unwrap()
}

/// Starts a relay that passes the bytes of plain clients to Foxy over TLS. Returns the relay's address.
pub fn relay(foxy: SocketAddr) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authority().0.roots())
        .with_no_client_auth();
    // The relay names no host in the handshake, so requests may be for any host.
    config.enable_sni = false;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for plain in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || lead(plain, foxy, config));
        }
    });
    addr
}

fn flush(session: &mut ClientConnection, mut tls: &TcpStream) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(&mut tls)?;
    }
    Ok(())
}

/// Ends the connection of a plain client in the same way as Foxy has ended the TLS connection: with an
/// orderly end if `whole` is true, otherwise with a reset.
fn end(plain: &TcpStream, whole: bool) {
    if whole {
        let _ = plain.shutdown(Shutdown::Write);
    } else {
        // The kernel sends the reset when the thread that reads has also dropped the connection.
        let _ = SockRef::from(plain).set_linger(Some(Duration::ZERO));
        let _ = plain.shutdown(Shutdown::Read);
    }
}

/// Opens a connection to Foxy from the address of a client.
fn connect_from(client: SocketAddr, foxy: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(foxy), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(client.ip(), 0).into())?;
    socket.connect(&foxy.into())?;
    Ok(socket.into())
}

fn lead(plain: TcpStream, foxy: SocketAddr, config: Arc<ClientConfig>) -> Option<()> {
    let mut tls = connect_from(plain.peer_addr().ok()?, foxy).ok()?;
    tls.set_nodelay(true).ok()?;
    plain.set_nodelay(true).ok()?;
    let name = ServerName::try_from("foxy.test").unwrap();
    let mut session = ClientConnection::new(config, name).unwrap();
    while session.is_handshaking() {
        if session.complete_io(&mut tls).is_err() {
            end(&plain, false);
            return None;
        }
    }
    let session = Arc::new(Mutex::new(session));
    let back = (
        session.clone(),
        tls.try_clone().ok()?,
        plain.try_clone().ok()?,
    );
    let answers = std::thread::spawn(move || answers(&back.0, &back.1, &back.2));
    let (mut plain, mut piece) = (plain, vec![0; 64 << 10]);
    loop {
        let read = plain.read(&mut piece);
        let mut session = session.lock().unwrap();
        match read {
            Ok(n) if n > 0 => {
                let text = with_https(&piece[..n]);
                session.writer().write_all(&text).unwrap();
                if flush(&mut session, &tls).is_err() {
                    break;
                }
            }
            Ok(_) => {
                session.send_close_notify();
                let _ = flush(&mut session, &tls);
                let _ = tls.shutdown(Shutdown::Write);
                break;
            }
            Err(_) => {
                let _ = SockRef::from(&tls).set_linger(Some(Duration::ZERO));
                let _ = tls.shutdown(Shutdown::Both);
                break;
            }
        }
    }
    let _ = answers.join();
    Some(())
}

/// Returns the bytes after a change: URLs of origins have the scheme `https` instead of `http`.
fn with_https(bytes: &[u8]) -> Vec<u8> {
    const PLAIN: &[u8] = b"http://origin.test:";
    let (mut out, mut at) = (Vec::with_capacity(bytes.len() + 8), 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(PLAIN) {
            out.extend_from_slice(b"https://origin.test:");
            at += PLAIN.len();
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

fn answers(session: &Mutex<ClientConnection>, mut tls: &TcpStream, mut plain: &TcpStream) {
    let mut piece = vec![0; 64 << 10];
    loop {
        let n = tls.read(&mut piece).unwrap_or(0);
        let (mut out, mut ended) = (Vec::new(), n == 0);
        let mut whole = false;
        {
            let mut session = session.lock().unwrap();
            let mut bytes = &piece[..n];
            while !bytes.is_empty() {
                let fine =
                    session.read_tls(&mut bytes).is_ok() && session.process_new_packets().is_ok();
                // `read_to_end` succeeds only if the peer has announced the end of its data by
                // `close_notify`.
                match session.reader().read_to_end(&mut out) {
                    Ok(_) => (ended, whole) = (true, true),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => ended = true,
                }
                if !fine {
                    ended = true;
                    break;
                }
            }
            let _ = flush(&mut session, tls);
        }
        if plain.write_all(&out).is_err() {
            let _ = SockRef::from(tls).set_linger(Some(Duration::ZERO));
            let _ = tls.shutdown(Shutdown::Both);
            return;
        }
        if ended {
            return end(plain, whole);
        }
    }
}
