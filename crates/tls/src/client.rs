//! Certificates that clients show.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{TlsError, files, provider};

/// Certificates that clients are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// PEM file with the authorities that issue them.
    pub authorities: PathBuf,
    /// Clients without a certificate are refused. Clients with a bad certificate always are.
    pub required: bool,
}

impl ClientOptions {
    /// The check of these certificates.
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

/// Contents of the verified certificate of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject, such as `CN=node 1, O=Example`.
    pub subject: String,
    /// Its alternative names: hosts, addresses of mail, URIs, in lower case.
    pub names: Vec<String>,
}

impl ClientCertificate {
    /// Reads a certificate that was verified. What cannot be read is empty.
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
