//! Chooses the certificate that a client gets.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ProducesTickets;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::{ALPN, Certificate, ClientOptions, TlsError, files, provider};

/// The PEM files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Settings for the certificates that clients are asked to present.
    pub(crate) clients: Option<ClientOptions>,
}

/// A value that distinguishes two versions of a pair of files and of the file with the authorities of
/// clients. If a path is a symbolic link, the value describes the file to which the link leads. So the value
/// changes when the link is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([(u64, i64, i64, u64); 3]);

impl Pair {
    pub(crate) fn stamp(&self) -> Result<Stamp, TlsError> {
        let of = |path: &Path| {
            let file = std::fs::metadata(path).map_err(|source| TlsError::Read {
                path: path.to_owned(),
                source,
            })?;
            Ok((file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
        };
        let authorities = match &self.clients {
            Some(clients) => of(&clients.authorities)?,
            None => Default::default(),
        };
        Ok(Stamp([of(&self.certificate)?, of(&self.key)?, authorities]))
    }
}

/// A certificate in use.
#[derive(Debug)]
pub struct Served {
    pub(crate) pair: Pair,
    pub(crate) stamp: Stamp,
    /// The set to which the certificate belongs.
    pub(crate) set: u64,
    pub(crate) config: Arc<ServerConfig>,
    certificate: Certificate,
}

impl Served {
    /// Reads a pair and checks that certificate and key belong together.
    pub(crate) fn load(
        pair: &Pair,
        set: u64,
        tickets: &Arc<dyn ProducesTickets>,
    ) -> Result<Self, TlsError> {
        // The stamp is taken before the contents are read. So the next check notices a change between these
        // two steps.
        let stamp = pair.stamp()?;
        let chain = files::certificates(&pair.certificate)?;
        let content = |text: String| TlsError::content(&pair.certificate, text);
        let certificate = chain.first().and_then(Certificate::read);
        let certificate = certificate.ok_or_else(|| content("it is no certificate".to_owned()))?;
        if certificate.names.is_empty() {
            let text = "it has no alternative names (subjectAltName), so no client would accept it";
            return Err(content(text.to_owned()));
        }
        let key = CertifiedKey::from_der(chain, files::key(&pair.key)?, &provider());
        let key = key.map_err(|error| {
            content(format!(
                "does not fit the key {}: {error}",
                pair.key.display()
            ))
        })?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| content(error.to_string()))?;
        let builder = match &pair.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(clients.verifier()?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        match pair.clients {
            None => config.ticketer = Arc::clone(tickets),
            // Resumption is turned off, because a resumed session would not check the client's certificate
            // again.
            Some(_) => config.send_tls13_tickets = 0,
        }
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Self {
            pair: pair.clone(),
            stamp,
            set,
            config: Arc::new(config),
            certificate,
        })
    }

    /// Returns the contents of the certificate.
    #[must_use]
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Returns the certificate's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.pair.certificate
    }
}

/// The certificates by name.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) served: Vec<Arc<Served>>,
    exact: HashMap<String, usize>,
    /// The certificates with a wildcard, by the part of the name after `*.`.
    wildcard: HashMap<String, usize>,
    default: Option<usize>,
}

impl Table {
    /// Makes a table. If several certificates have the same name, the certificate that expires last is used.
    pub(crate) fn new(served: Vec<Arc<Served>>, default: Option<&str>) -> Self {
        let mut table = Self::default();
        let mut order: Vec<usize> = (0..served.len()).collect();
        order.sort_by_key(|at| served[*at].certificate.not_after);
        for at in order {
            for name in &served[at].certificate.names {
                match name.strip_prefix("*.") {
                    Some(parent) => table.wildcard.insert(parent.to_owned(), at),
                    None => table.exact.insert(name.clone(), at),
                };
            }
        }
        table.served = served;
        table.default = default.and_then(|name| table.find(name));
        table
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.exact_at(name).or_else(|| self.wildcard_at(name))
    }

    fn exact_at(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    fn wildcard_at(&self, name: &str) -> Option<usize> {
        let (_, parent) = name.split_once('.')?;
        self.wildcard.get(parent).copied()
    }

    /// Returns the certificate that has exactly this name. The name is in lower case.
    pub(crate) fn exact(&self, name: &str) -> Option<Arc<Served>> {
        Some(Arc::clone(&self.served[self.exact_at(name)?]))
    }

    /// Returns the certificate with a wildcard that covers this name. The name is in lower case.
    pub(crate) fn wildcard(&self, name: &str) -> Option<Arc<Served>> {
        Some(Arc::clone(&self.served[self.wildcard_at(name)?]))
    }

    /// Returns the default certificate. It is for clients that request no name, or a name without a
    /// certificate.
    pub(crate) fn fallback(&self) -> Option<Arc<Served>> {
        Some(Arc::clone(&self.served[self.default?]))
    }

    /// Returns true if there is a default certificate.
    pub(crate) const fn has_default(&self) -> bool {
        self.default.is_some()
    }
}
