//! Foxy with TLS on both sides, for measurements that use plain HTTP. The requests of such a measurement, and
//! the answers of its origin, pass through bridges. A bridge forwards every byte. If a connection on one side
//! of a bridge is closed or breaks, the bridge also closes or breaks the connection on the other side.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::generate_simple_self_signed;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::client::connect;
use super::{Child, Launch, Mode, free_port};

/// Address of Foxy and of the origin in URLs. The certificate that both use contains this address.
const ADDRESS: &str = "127.0.0.1";
/// Another name in the certificate. Clients send this name in their handshakes, because Foxy refuses
/// handshakes without a name.
const NAME: &str = "localhost";

/// A Foxy that accepts and opens only TLS connections, and its bridges. Foxy and the bridges end when this
/// value is dropped.
#[derive(Debug)]
pub struct Secured {
    foxy: Child,
    _bridges: Runtime,
    target: TlsTarget,
    address: SocketAddr,
    origin: u16,
}

/// The data that a client needs to connect to Foxy with TLS.
#[derive(Clone)]
pub struct TlsTarget {
    to: SocketAddr,
    config: Arc<ClientConfig>,
}

impl fmt::Debug for TlsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsTarget").field(&self.to).finish()
    }
}

impl TlsTarget {
    /// Opens a TCP connection, from the given source address or from any address.
    ///
    /// # Errors
    /// An error if Foxy does not accept the connection.
    pub async fn reach(&self, from: Option<IpAddr>) -> io::Result<TcpStream> {
        let stream = connect(from, self.to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Opens a connection and completes the handshake.
    ///
    /// # Errors
    /// An error if Foxy refuses the connection or the handshake.
    pub async fn connect(&self, from: Option<IpAddr>) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name()?, self.reach(from).await?).await
    }

    /// Returns the first bytes of a handshake (the ClientHello).
    ///
    /// # Errors
    /// An error if the TLS library cannot create these bytes.
    pub fn hello(&self) -> io::Result<Vec<u8>> {
        let config = Arc::clone(&self.config);
        let mut session = ClientConnection::new(config, name()?).map_err(io::Error::other)?;
        let mut hello = Vec::new();
        session.write_tls(&mut hello)?;
        Ok(hello)
    }
}

fn name() -> io::Result<ServerName<'static>> {
    ServerName::try_from(NAME).map_err(io::Error::other)
}

impl Secured {
    /// Starts Foxy with TLS in front of the origin on port `origin`, with the settings of [`super::foxy`].
    ///
    /// # Errors
    /// The same errors as those of [`Child::start`]. Also an error if there is no port or no certificate.
    pub fn start(program: &Path, mode: Mode, origin: u16, folder: &Path) -> Result<Self, String> {
        let certificate = TestCertificate::new(folder)?;
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all();
        let bridges = runtime.build().map_err(|e| format!("no runtime: {e}"))?;
        let origin = local(origin);
        let acceptor = certificate.acceptor()?;
        let before_origin = bridges.block_on(bridge(move |plain| {
            let acceptor = acceptor.clone();
            async move {
                join(
                    acceptor.accept(plain).await?,
                    TcpStream::connect(origin).await?,
                )
                .await
            }
        }))?;
        let port = free_port()?;
        let launch = certificate.launch(program, (mode, folder), (port, before_origin.port()))?;
        let foxy = Child::start(&launch, folder, port)?;
        let target = TlsTarget {
            to: foxy.address(),
            config: certificate.client()?,
        };
        let secured = target.clone();
        let address = bridges.block_on(bridge(move |plain| {
            let target = secured.clone();
            async move { join(target.connect(None).await?, plain).await }
        }))?;
        Ok(Self {
            foxy,
            _bridges: bridges,
            target,
            address,
            origin: before_origin.port(),
        })
    }

    /// The data to connect to Foxy directly, without the bridge.
    #[must_use]
    pub fn target(&self) -> TlsTarget {
        self.target.clone()
    }

    /// PID of Foxy.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.foxy.pid()
    }

    /// Address that accepts requests without TLS. The bridge forwards them to Foxy with TLS.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Scheme of the URLs in requests; `None`: requests contain only paths.
    #[must_use]
    pub fn scheme(mode: Mode) -> Option<&'static str> {
        mode.scheme().map(|_| "https")
    }

    /// Port on which Foxy connects to the origin with TLS.
    #[must_use]
    pub const fn origin(&self) -> u16 {
        self.origin
    }
}

/// A certificate, and the files that contain it and its key. Foxy and the origin present it, and both sides
/// trust it.
struct TestCertificate {
    file: PathBuf,
    key: PathBuf,
    der: CertificateDer<'static>,
    secret: Vec<u8>,
}

impl TestCertificate {
    fn new(folder: &Path) -> Result<Self, String> {
        let made = generate_simple_self_signed([NAME, ADDRESS].map(str::to_owned))
            .map_err(|e| e.to_string())?;
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            let written = std::fs::write(&path, text)
                .and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(0o600)));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<_, String>(path)
        };
        Ok(Self {
            file: write("certificate.pem", made.cert.pem())?,
            key: write("key.pem", made.signing_key.serialize_pem())?,
            der: made.cert.der().clone(),
            secret: made.signing_key.serialize_der(),
        })
    }

    fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.secret.clone()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![self.der.clone()], key)
            .map_err(|error| error.to_string())?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn client(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        let added = roots.add(self.der.clone());
        added.map_err(|error| error.to_string())?;
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }

    /// Arguments to start Foxy on `port` in front of the TLS origin on port `origin`.
    fn launch(
        &self,
        program: &Path,
        (mode, folder): (Mode, &Path),
        (port, origin): (u16, u16),
    ) -> Result<Launch, String> {
        let (certificate, key) = (self.file.display(), self.key.display());
        let listen = format!("listen_tls = \"{ADDRESS}:{port}\"\n");
        let pair = format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n");
        let text = match mode {
            Mode::Forward => format!("{listen}[tls]\n{pair}"),
            Mode::Reverse => format!(
                "[[site]]\nname = \"pages\"\n{listen}{pair}origin = \"https://{ADDRESS}:{origin}\"\n\
                 origin_ca = \"{certificate}\"\n"
            ),
        };
        let config = folder.join("foxy.toml");
        std::fs::write(&config, text).map_err(|e| format!("{}: {e}", config.display()))?;
        let mut args = vec!["serve".to_owned(), "--config".to_owned()];
        args.push(config.to_string_lossy().into_owned());
        args.extend(super::foxy::settings(folder));
        let launch = Launch::new(program.to_path_buf(), args);
        // The forward proxy trusts the system's certificate authorities. This variable replaces them with the
        // certificate of the measurement.
        Ok(launch.with("SSL_CERT_FILE", certificate.to_string()))
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Listens, and passes every connection to `pass`.
async fn bridge<F>(pass: impl Fn(TcpStream) -> F + Send + 'static) -> Result<SocketAddr, String>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind(local(0)).await;
    let listener = listener.map_err(|error| format!("a bridge has no port: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(pass(stream));
                }
                // No file descriptor is free. Connections that end will release file descriptors.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    });
    Ok(address)
}

/// Forwards bytes in both directions until both sides have ended. If the connection of one side breaks, the
/// connection of the other side is broken too.
async fn join<S>(mut secured: S, mut plain: TcpStream) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let carried = copy_bidirectional(&mut secured, &mut plain).await;
    if carried.is_err() {
        // A linger time of zero makes the close a reset. The TLS connection is dropped without a shutdown, so
        // it ends without close_notify.
        let _ = plain.set_zero_linger();
    }
    carried.map(drop)
}
