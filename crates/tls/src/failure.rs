//! Reasons why a handshake failed. Each reason has a stable word.

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// The reason why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer's certificate has expired.
    Expired,
    /// The peer's certificate is not valid yet.
    NotYetValid,
    /// The peer's certificate is valid only for other names.
    WrongName,
    /// No trusted authority has issued the peer's certificate.
    UnknownIssuer,
    /// The peer's certificate is bad for another reason.
    BadCertificate,
    /// The peer supports neither TLS 1.2 nor TLS 1.3.
    Version,
    /// The client requested a name for which there is no certificate.
    UnknownName,
    /// The peer has ended the handshake, or does not use TLS.
    Handshake,
}

impl Failure {
    /// All failures, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Expired,
        Self::NotYetValid,
        Self::WrongName,
        Self::UnknownIssuer,
        Self::BadCertificate,
        Self::Version,
        Self::UnknownName,
        Self::Handshake,
    ];

    /// Returns the failure that corresponds to an error of the TLS library.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::NoCertificatesPresented => Self::BadCertificate,
            Error::AlertReceived(AlertDescription::ProtocolVersion) => Self::Version,
            Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::Tls13RequiredForQuic
                | PeerIncompatible::SupportedVersionsExtensionRequired,
            ) => Self::Version,
            _ => Self::Handshake,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongName
            }
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            _ => Self::BadCertificate,
        }
    }
}
