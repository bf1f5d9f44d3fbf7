//! The certificates that clients present.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{TlsError, files, provider};

/// Settings for the certificates that clients are asked to present.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// PEM file with the authorities that issue the certificates of clients.
    pub authorities: PathBuf,
    /// True if clients without a certificate are refused. Clients with a bad certificate are always
    /// refused.
    pub required: bool,
}

impl ClientOptions {
    /// Returns the verifier of these certificates.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let path = &self.authorities;
        let mut roots = RootCertStore::empty();
        for certificate in files::certificates(path)? {
            roots.add(certificate).map_err(|error| {
                TlsError::content(
                    path,
                    format!("not the certificate of an authority: {error}"),
                )
            })?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let builder = match self.required {
            true => builder,
            false => builder.allow_unauthenticated(),
        };
        let built = builder.build();
        built.map_err(|error| TlsError::content(path, error.to_string()))
    }
}

/// The contents of the verified certificate of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject of the certificate, such as `CN=node 1, O=Example`.
    pub subject: String,
    /// The alternative names of the certificate, in lower case: hosts, mail addresses, URIs.
    pub names: Vec<String>,
}

impl ClientCertificate {
    /// Reads a certificate that was verified. Parts that cannot be read are empty.
    pub(crate) fn read(der: &CertificateDer<'_>) -> Self {
        let Ok((_, parsed)) = X509Certificate::from_der(der) else {
            return Self::default();
        };
        let alternative = parsed.subject_alternative_name().ok().flatten();
        let all = alternative
            .iter()
            .flat_map(|list| &list.value.general_names);
        let text = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(text) | GeneralName::RFC822Name(text) | GeneralName::URI(text) => {
                Some(text.to_ascii_lowercase())
            }
            _ => None,
        };
        Self {
            subject: parsed.subject().to_string(),
            names: all.filter_map(text).collect(),
        }
    }
}
