//! A certificate for the servers of a run over TLS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Settings for openssl. Without these settings, openssl would mark the certificate as the certificate of an
/// authority, and a server may not present such a certificate.
const REQUEST: &str = "\
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = conformance
[extensions]
basicConstraints = CA:FALSE
subjectAltName = IP:127.0.0.1, DNS:localhost
";

/// A self-signed certificate and its key, in two files.
#[derive(Debug)]
pub(super) struct TestCertificate {
    pub(super) file: PathBuf,
    pub(super) key: PathBuf,
}

impl TestCertificate {
    /// Creates both files in `folder` with the program `openssl`.
    pub(super) fn make(folder: &Path) -> Result<Self, String> {
        let certificate = Self {
            file: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        };
        let request = folder.join("certificate.cnf");
        std::fs::write(&request, REQUEST)
            .map_err(|error| format!("{}: {error}", request.display()))?;
        let status = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-config"])
            .arg(&request)
            .arg("-keyout")
            .arg(&certificate.key)
            .arg("-out")
            .arg(&certificate.file)
            .stderr(Stdio::null())
            .status();
        let help = "the conformance tests over TLS need it: install the package `openssl`";
        match status {
            Ok(status) if status.success() => Ok(certificate),
            Ok(status) => Err(format!("openssl made no certificate ({status})")),
            Err(error) => Err(format!("openssl did not start ({error}); {help}")),
        }
    }
}
