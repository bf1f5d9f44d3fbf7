//! The contents of a certificate: names, issuer, dates.

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The contents of a certificate. They are not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Names and addresses for which the certificate is valid, in lower case. `*.` at the start
    /// stands for one label.
    pub names: Vec<String>,
    /// The issuer, as text for people.
    pub issuer: String,
    /// The start of the certificate's validity, in seconds since 1970.
    pub not_before: i64,
    /// The end of the certificate's validity, in seconds since 1970.
    pub not_after: i64,
}

impl Certificate {
    /// Reads a certificate. Returns `None` if the bytes are not a certificate.
    pub(crate) fn read(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        let alternative = parsed.subject_alternative_name().ok().flatten();
        let names = alternative
            .iter()
            .flat_map(|extension| &extension.value.general_names)
            .filter_map(name)
            .collect();
        let issuer = parsed.issuer();
        let word = |found: Option<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
            found.and_then(|word| word.as_str().ok()).map(str::to_owned)
        };
        let issuer = word(issuer.iter_common_name().next())
            .or_else(|| word(issuer.iter_organization().next()))
            .unwrap_or_else(|| issuer.to_string());
        Some(Self {
            names,
            issuer,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
        })
    }

    /// Returns the number of days from `now` until the certificate expires. The number is negative if the
    /// certificate has expired. `now` is in seconds since 1970.
    #[must_use]
    pub fn days_left(&self, now: i64) -> i64 {
        (self.not_after - now).div_euclid(86_400)
    }

    /// Returns true if the certificate is for this host. The host is a name, or an address without brackets.
    #[must_use]
    pub fn is_for(&self, host: &[u8]) -> bool {
        let host = host.strip_suffix(b".").unwrap_or(host);
        let dot = host.iter().position(|b| *b == b'.');
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(parent) => dot.is_some_and(|dot| {
                dot > 0 && host[dot + 1..].eq_ignore_ascii_case(parent.as_bytes())
            }),
            None => host.eq_ignore_ascii_case(name.as_bytes()),
        })
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_issuer_and_dates_are_read() {
        let names = ["Shop.test", "*.shop.test", "127.0.0.1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let read = Certificate::read(made.cert.der()).unwrap();
        assert_eq!(read.names, ["shop.test", "*.shop.test", "127.0.0.1"]);
        assert_eq!(read.issuer, "rcgen self signed cert");
        assert_eq!(read.days_left(read.not_after - 86_400), 1);
        assert_eq!(read.days_left(read.not_after + 1), -1);
        for (host, right) in [
            ("shop.test", true),
            ("www.shop.test", true),
            ("a.www.shop.test", false),
            ("127.0.0.1", true),
            ("test", false),
            (".shop.test", false),
            ("WWW.Shop.Test.", true),
        ] {
            assert_eq!(read.is_for(host.as_bytes()), right, "{host}");
        }
        assert_eq!(Certificate::read(&CertificateDer::from(vec![1, 2])), None);
    }
}
