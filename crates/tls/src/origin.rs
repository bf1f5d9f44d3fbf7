//! TLS to origins: the trusted authorities, the certificate that Foxy presents, and the expected
//! name.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, RootCertStore};

use crate::{ALPN, Session, TlsError, files, provider};

/// TLS settings for the origin of a site. With the defaults, the system's authorities are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginOptions {
    /// PEM file with the only trusted authorities. `None` means that the system's authorities are trusted.
    pub authorities: Option<PathBuf>,
    /// PEM files of the certificate that Foxy presents, and of its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The name that Foxy requests and that the certificate must have. `None` means the origin's host.
    pub name: Option<String>,
}

/// TLS settings that were read and can be used. Copies are cheap and share the stored TLS sessions, which
/// later connections can resume. Two values are equal only if one is a copy of the other. A connection that
/// was made with one value must not be used for an unequal value.
#[derive(Clone)]
pub struct OriginTls(Arc<Inner>);

struct Inner {
    number: u64,
    /// Hash of the options and of the contents of the files that they name.
    likeness: u64,
    name: Option<ServerName<'static>>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl OriginTls {
    /// Returns settings that trust the system's authorities. The authorities are read at the first use, or by
    /// [`prepare`](Self::prepare).
    #[must_use]
    pub fn system() -> Self {
        Self::with(None, 0, OnceLock::new())
    }

    /// Reads the files that the options name.
    ///
    /// # Errors
    /// Returns an error if a file cannot be used, or if the name is neither a host name nor an address.
    pub fn new(options: &OriginOptions) -> Result<Self, TlsError> {
        let roots = match &options.authorities {
            None => system_roots(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in files::certificates(path)? {
                    roots.add(certificate).map_err(|error| {
                        TlsError::content(
                            path,
                            format!("not the certificate of an authority: {error}"),
                        )
                    })?;
                }
                roots
            }
        };
        let name = options.name.as_ref().map(|name| server_name(name));
        let name = name.transpose()?;
        let config = client_config(roots, options.certificate.as_ref())?;
        let config = OnceLock::from(Arc::new(config));
        Ok(Self::with(name, likeness(options), config))
    }

    /// Returns true if both values had the same options and their files had the same contents, so that each
    /// can replace the other.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.0.likeness == other.0.likeness
    }

    fn with(
        name: Option<ServerName<'static>>,
        likeness: u64,
        config: OnceLock<Arc<ClientConfig>>,
    ) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(Inner {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            likeness,
            name,
            config,
        }))
    }

    /// Reads the system's authorities now, if they were not read before. This takes milliseconds.
    pub fn prepare(&self) {
        self.config();
    }

    fn config(&self) -> &Arc<ClientConfig> {
        self.0.config.get_or_init(|| {
            // No file of the user is read, so this cannot fail.
            let config = client_config(system_roots(), None);
            Arc::new(config.unwrap_or_else(|_| unreachable!("no file is read")))
        })
    }

    /// Returns a session with the origin `host`, a name in lower case or an address without brackets.
    ///
    /// # Errors
    /// Returns an error if the host is not a name that a certificate can have.
    pub fn session(&self, host: &str) -> Result<Session, TlsError> {
        let name = match &self.0.name {
            Some(name) => name.clone(),
            None => server_name(host.trim_end_matches('.'))?,
        };
        let connection = ClientConnection::new(Arc::clone(self.config()), name)
            .map_err(|error| TlsError::Settings(error.to_string()))?;
        Ok(Session::new(connection.into()))
    }
}

fn likeness(options: &OriginOptions) -> u64 {
    let mut hash = DefaultHasher::new();
    format!("{options:?}").hash(&mut hash);
    let pair = options.certificate.iter();
    let pair = pair.flat_map(|(certificate, key)| [certificate, key]);
    for path in options.authorities.iter().chain(pair) {
        // The files were already read successfully. If a file cannot be read now, the hash differs from the
        // hash with the contents of the file.
        std::fs::read(path).ok().hash(&mut hash);
    }
    hash.finish()
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // If there is no authority at all, the issuer of every origin is unknown, and the errors state
    // this.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn client_config(
    roots: RootCertStore,
    own: Option<&(PathBuf, PathBuf)>,
) -> Result<ClientConfig, TlsError> {
    let internal = |error: rustls::Error| TlsError::Settings(error.to_string());
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(internal)?
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(files::certificates(certificate)?, files::key(key)?)
            .map_err(|error| {
                let text = format!("does not fit the key {}: {error}", key.display());
                TlsError::content(certificate, text)
            })?,
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

impl Default for OriginTls {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for OriginTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginTls")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl PartialEq for OriginTls {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for OriginTls {}

impl Hash for OriginTls {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}
