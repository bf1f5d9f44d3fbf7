//! Targets of an access log other than files, and the forms in which the log shows clients and queries.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Paths of the sockets of the system's services.
const SYSLOG: &str = "/dev/log";
const JOURNAL: &str = "/run/systemd/journal/socket";

/// A service that receives log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogService {
    /// Syslog at a unix socket.
    Syslog(PathBuf),
    /// Syslog over UDP.
    SyslogUdp(SocketAddr),
    /// The journal of systemd.
    Journal(PathBuf),
}

impl LogService {
    /// Reads `syslog`, `syslog:PATH`, `syslog:ADDRESS:PORT`, `journald` or `journald:PATH`; returns `None`
    /// for the name of a file.
    pub(super) fn named(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let or = |default: &str| PathBuf::from(if rest.is_empty() { default } else { rest });
        match (name, rest.parse()) {
            ("syslog", Ok(address)) => Some(Self::SyslogUdp(address)),
            ("syslog", Err(_)) => Some(Self::Syslog(or(SYSLOG))),
            ("journald", _) => Some(Self::Journal(or(JOURNAL))),
            _ => None,
        }
    }
}

impl fmt::Display for LogService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syslog(path) => write!(f, "syslog at {}", path.display()),
            Self::SyslogUdp(address) => write!(f, "syslog at {address}"),
            Self::Journal(path) => write!(f, "journald at {}", path.display()),
        }
    }
}

/// Form of clients' addresses and names in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogClients {
    /// Address and name unchanged.
    Full,
    /// The network of the address.
    Network,
    /// A pseudonym of address and name.
    Hashed,
    /// Neither address nor name.
    Off,
}

/// Form of the queries of URLs in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogQueries {
    /// The query unchanged.
    Kept,
    /// A pseudonym of the query.
    Hashed,
    /// A `?` in place of a query.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_files_are_told_apart() {
        let unix = |path: &str| Some(LogService::Syslog(path.into()));
        for (text, wanted) in [
            ("syslog", unix("/dev/log")),
            ("syslog:/run/s", unix("/run/s")),
            (
                "syslog:127.0.0.1:514",
                Some(LogService::SyslogUdp("127.0.0.1:514".parse().unwrap())),
            ),
            (
                "syslog:[::1]:514",
                Some(LogService::SyslogUdp("[::1]:514".parse().unwrap())),
            ),
            (
                "journald",
                Some(LogService::Journal("/run/systemd/journal/socket".into())),
            ),
            ("journald:/j", Some(LogService::Journal("/j".into()))),
            ("/var/log/syslog", None),
            ("./syslog", None),
            ("syslog.log", None),
        ] {
            assert_eq!(LogService::named(text), wanted, "{text}");
        }
    }
}
