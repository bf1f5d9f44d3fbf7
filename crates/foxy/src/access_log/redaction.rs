//! The redaction of client data in the log: addresses, names of users, and queries of URLs. Fields of
//! requests are never logged, except `Referer`, `User-Agent` and `traceparent`.

use std::fmt;
use std::hash::Hasher;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foxy_base::WallTime;
use foxy_proxy::LogRecord;
use siphasher::sip::SipHasher24;

use super::text;
use crate::config::{LogClients, LogQueries};

const DAY_SECONDS: i64 = 86_400;

/// The random key from which this process makes pseudonyms. Pseudonyms that were made with different keys
/// cannot be compared.
#[derive(Clone, Copy)]
pub(super) struct Secret([u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Returns a key with these bytes.
    #[cfg(test)]
    pub(super) const fn of(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns a key from the system's source of randomness.
    ///
    /// # Errors
    /// An error if the system cannot provide random bytes.
    pub(super) fn drawn() -> io::Result<Self> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Returns a pseudonym of `text`. The same text has another pseudonym on each day (in UTC).
    fn pseudonym(self, at: WallTime, text: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_i64(at.secs().div_euclid(DAY_SECONDS));
        hasher.write(text);
        hasher.finish()
    }
}

/// The address of a client as the log shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownClient {
    Full(SocketAddr),
    Network(IpAddr),
    Pseudonym(u64),
    Off,
}

impl ShownClient {
    /// Appends the address, and the port if it is known.
    pub(super) fn with_port(self, out: &mut Vec<u8>) {
        match self {
            Self::Full(SocketAddr::V6(address)) => text::display(address, out),
            Self::Full(SocketAddr::V4(address)) => {
                text::address(IpAddr::V4(*address.ip()), out);
                out.push(b':');
                text::number(address.port(), out);
            }
            _ => self.address(out),
        }
    }

    /// Appends the address without the port.
    pub(super) fn address(self, out: &mut Vec<u8>) {
        match self {
            Self::Full(address) => text::address(address.ip(), out),
            Self::Network(network) => text::address(network, out),
            Self::Pseudonym(number) => text::hex(&number.to_be_bytes(), out),
            Self::Off => out.push(b'-'),
        }
    }
}

/// The forms in which the log shows clients and queries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redaction {
    pub(super) clients: LogClients,
    pub(super) queries: LogQueries,
    pub(super) secret: Secret,
}

/// Buffers for the values that replace parts of a record.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    target: Vec<u8>,
    referer: Vec<u8>,
    user: String,
}

impl Redaction {
    /// Returns the address to show.
    pub(super) fn client(&self, record: &LogRecord<'_>) -> ShownClient {
        let ip = record.client.ip().to_canonical();
        match self.clients {
            LogClients::Full => ShownClient::Full(record.client),
            LogClients::Network => ShownClient::Network(network(ip)),
            LogClients::Hashed => {
                let octets = match ip {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                ShownClient::Pseudonym(self.secret.pseudonym(record.at, &octets))
            }
            LogClients::Off => ShownClient::Off,
        }
    }

    /// Returns the redacted record. The `?` of a query stays, so that a page with a query differs from the
    /// page without a query.
    pub(super) fn apply<'s>(
        &self,
        record: &LogRecord<'s>,
        scratch: &'s mut Scratch,
    ) -> LogRecord<'s> {
        let Scratch {
            target,
            referer,
            user,
        } = scratch;
        LogRecord {
            target: self.url(record, record.target, target),
            referer: self.url(record, record.referer, referer),
            user: self.user(record, user),
            ..*record
        }
    }

    fn url<'s>(&self, record: &LogRecord<'_>, url: &'s [u8], space: &'s mut Vec<u8>) -> &'s [u8] {
        let Some(at) = memchr::memchr(b'?', url) else {
            return url;
        };
        let (before, query) = url.split_at(at + 1);
        match self.queries {
            LogQueries::Kept => url,
            LogQueries::Off => before,
            LogQueries::Hashed => {
                space.clear();
                space.extend_from_slice(before);
                let number = self.secret.pseudonym(record.at, query);
                text::hex(&number.to_be_bytes(), space);
                space
            }
        }
    }

    fn user<'s>(&self, record: &LogRecord<'s>, space: &'s mut String) -> &'s str {
        match self.clients {
            LogClients::Full | LogClients::Network => record.user,
            LogClients::Off => "",
            LogClients::Hashed if record.user.is_empty() => "",
            LogClients::Hashed => {
                let number = self.secret.pseudonym(record.at, record.user.as_bytes());
                *space = format!("{number:016x}");
                space
            }
        }
    }
}

/// Returns the network of an address: its first 24 bits for IPv4, its first 48 bits for IPv6.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
    }
}
