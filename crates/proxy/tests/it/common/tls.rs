//! A certificate authority, certificates, and a TLS server in front of a plain server.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests"
)]
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foxy_tls::{OriginOptions, OriginTls};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection};

/// A certificate authority, and a folder for its files.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pub folder: tempfile::TempDir,
}

/// A certificate and its key, in PEM.
pub struct Made {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("authority {number}");
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self {
            der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            folder,
        }
    }

    /// Makes a certificate for these names. `change` may make the certificate bad.
    pub fn certificate(&self, names: &[&str], change: impl Fn(&mut CertificateParams)) -> Made {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Made {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// Writes a certificate and its key to files.
    pub fn files(&self, name: &str, made: &Made) -> (PathBuf, PathBuf) {
        let file = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        std::fs::write(file("crt"), &made.certificate).unwrap();
        std::fs::write(file("key"), &made.key).unwrap();
        (file("crt"), file("key"))
    }

    /// Returns the TLS settings for origins whose certificates this authority has issued.
    pub fn trusted(&self) -> OriginTls {
        self.trusted_with(OriginOptions::default())
    }

    pub fn trusted_with(&self, options: OriginOptions) -> OriginTls {
        let authorities = Some(self.folder.path().join("ca.pem"));
        OriginTls::new(&OriginOptions {
            authorities,
            ..options
        })
        .unwrap()
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        roots
    }

    /// Returns a server's settings with this certificate.
    pub fn server(&self, made: &Made) -> ServerConfig {
        server(made, None)
    }

    /// Returns a server's settings with this certificate. Clients must show a certificate of this authority.
    pub fn strict_server(&self, made: &Made) -> ServerConfig {
        server(made, Some(self.roots()))
    }
}

fn server(made: &Made, clients: Option<RootCertStore>) -> ServerConfig {
    use rustls::pki_types::pem::PemObject;
    let chain = vec![CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .unwrap(),
        ),
    };
    builder.with_single_cert(chain, key).unwrap()
}

/// Additional behaviour of a [`Front`] (a TLS server).
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// True if the front never announces the end of a connection with `close_notify`.
    pub truncates: bool,
    /// True if the front sends its bytes one at a time.
    pub drips: bool,
}

/// A front: a TLS server that passes all bytes on to a plain server.
pub struct Front {
    pub addr: SocketAddr,
    /// Number of full handshakes.
    pub full: Arc<AtomicUsize>,
    /// Number of resumed handshakes.
    pub resumed: Arc<AtomicUsize>,
}

impl Front {
    pub fn start(config: ServerConfig, plain: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = Self {
            addr: listener.local_addr().unwrap(),
            full: Arc::default(),
            resumed: Arc::default(),
        };
        let counts = (front.full.clone(), front.resumed.clone());
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, counts) = (config.clone(), counts.clone());
                std::thread::spawn(move || pass(stream, config, plain, manner, &counts));
            }
        });
        front
    }

    pub fn authority(&self) -> String {
        format!("origin.test:{}", self.addr.port())
    }
}

/// Writes the bytes that wait in `session` to the socket `tls`, one byte at a time if `drips` is true.
fn flush(session: &mut ServerConnection, mut tls: &TcpStream, drips: bool) -> io::Result<()> {
    while session.wants_write() {
        let mut bytes = Vec::new();
        session.write_tls(&mut bytes)?;
        for piece in bytes.chunks(if drips { 1 } else { usize::MAX }) {
            tls.write_all(piece)?;
        }
    }
    Ok(())
}

fn pass(
    tls: TcpStream,
    config: Arc<ServerConfig>,
    plain: SocketAddr,
    manner: Manner,
    (full, resumed): &(Arc<AtomicUsize>, Arc<AtomicUsize>),
) -> Option<()> {
    tls.set_nodelay(true).ok()?;
    let mut session = ServerConnection::new(config).ok()?;
    let mut piece = vec![0; 64 << 10];
    while session.is_handshaking() {
        let n = (&tls).read(&mut piece).ok().filter(|n| *n > 0)?;
        feed(&mut session, &piece[..n], &tls, manner)?;
    }
    match session.handshake_kind() {
        Some(HandshakeKind::Resumed) => resumed,
        _ => full,
    }
    .fetch_add(1, Ordering::SeqCst);
    let plain = TcpStream::connect(plain).ok()?;
    plain.set_nodelay(true).ok()?;
    let session = Arc::new(Mutex::new(session));
    let back = (
        session.clone(),
        tls.try_clone().ok()?,
        plain.try_clone().ok()?,
    );
    std::thread::spawn(move || answers(&back.0, &back.1, &back.2, manner));
    loop {
        let mut out = Vec::new();
        let read = session.lock().unwrap().reader().read_to_end(&mut out);
        (&plain).write_all(&out).ok()?;
        let clean = read.is_ok();
        let n = if clean {
            0
        } else {
            (&tls).read(&mut piece).unwrap_or(0)
        };
        if n == 0 {
            let _ = plain.shutdown(Shutdown::Write);
            return None;
        }
        feed(&mut session.lock().unwrap(), &piece[..n], &tls, manner)?;
    }
}

fn feed(
    session: &mut ServerConnection,
    mut bytes: &[u8],
    tls: &TcpStream,
    manner: Manner,
) -> Option<()> {
    while !bytes.is_empty() {
        session.read_tls(&mut bytes).ok()?;
        let done = session.process_new_packets();
        flush(session, tls, manner.drips).ok()?;
        done.ok()?;
    }
    Some(())
}

fn answers(
    session: &Mutex<ServerConnection>,
    tls: &TcpStream,
    mut plain: &TcpStream,
    manner: Manner,
) {
    let mut piece = vec![0; 16 << 10];
    loop {
        let read = plain.read(&mut piece);
        let mut session = session.lock().unwrap();
        match read {
            Ok(n) if n > 0 => {
                session.writer().write_all(&piece[..n]).unwrap();
                if flush(&mut session, tls, manner.drips).is_err() {
                    return;
                }
            }
            end => {
                if end.is_ok() && !manner.truncates {
                    session.send_close_notify();
                    let _ = flush(&mut session, tls, false);
                }
                let _ = tls.shutdown(Shutdown::Write);
                std::thread::sleep(Duration::from_millis(1));
                return;
            }
        }
    }
}
