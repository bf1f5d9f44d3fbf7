//! Reads certificates and keys from PEM files.

use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;

fn failed(path: &Path, error: pem::Error, what: &str) -> TlsError {
    match error {
        pem::Error::Io(source) => TlsError::Read {
            path: path.to_owned(),
            source,
        },
        pem::Error::NoItemsFound => TlsError::content(
            path,
            format!("there is no {what} in it; it must be a PEM file (-----BEGIN ...-----)"),
        ),
        error => TlsError::content(path, format!("the {what} cannot be read: {error:?}")),
    }
}

/// Returns all certificates in a file. There is at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |error| failed(path, error, "certificate");
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(fail)?.collect();
    let found = found.map_err(fail)?;
    if found.is_empty() {
        return Err(fail(pem::Error::NoItemsFound));
    }
    Ok(found)
}

/// Returns the first private key in a file.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| failed(path, error, "private key"))
}
