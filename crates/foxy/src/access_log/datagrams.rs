//! Log lines as datagrams, to syslog (RFC 5424, over a unix socket or UDP) and to journald (its native
//! protocol).

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

use super::Calendar;
use crate::config::LogService;

/// Facility `daemon`, severity `informational`.
const PRIORITY: u8 = 3 * 8 + 6;
/// Longest time for which a line waits while the receiver (syslog or journald) reads nothing. After this
/// time, the line is dropped, and the drop is counted.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A sender that puts each log line into one datagram.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: SyslogSocket,
    journal: bool,
    host: String,
    clock: SystemClock,
    space: Vec<u8>,
}

#[derive(Debug)]
enum SyslogSocket {
    /// Each call of `send_to` names the path of the receiver's socket, because the receiver has a new socket
    /// after its restart.
    Unix(UnixDatagram, PathBuf),
    Udp(UdpSocket, SocketAddr),
}

impl Datagrams {
    /// Prepares the socket for sending.
    ///
    /// # Errors
    /// An error if there is no socket at the path, or if the system cannot create a socket.
    pub(super) fn new(service: &LogService) -> io::Result<Self> {
        let (socket, journal) = match service {
            LogService::Syslog(path) => (unix(path)?, false),
            LogService::SyslogUdp(address) => (udp(*address)?, false),
            LogService::Journal(path) => (unix(path)?, true),
        };
        let name = rustix::system::uname();
        Ok(Self {
            socket,
            journal,
            host: name.nodename().to_string_lossy().into_owned(),
            clock: SystemClock::default(),
            space: Vec::new(),
        })
    }

    /// Sends every line. Returns the number of lines that could not be sent, and the last error.
    pub(super) fn send(&mut self, lines: &[u8]) -> (u64, Option<io::Error>) {
        let (mut failed, mut why) = (0, None);
        for line in lines.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
            self.frame(line);
            if let Err(error) = self.send_one() {
                failed += 1;
                why = Some(error);
            }
        }
        (failed, why)
    }

    fn send_one(&self) -> io::Result<()> {
        match &self.socket {
            SyslogSocket::Unix(socket, path) => socket.send_to(&self.space, path),
            SyslogSocket::Udp(socket, to) => socket.send_to(&self.space, to),
        }
        .map(drop)
    }

    fn frame(&mut self, line: &[u8]) {
        let space = &mut self.space;
        space.clear();
        // Writing to a Vec cannot fail.
        let _ = match self.journal {
            true => write!(
                space,
                "SYSLOG_IDENTIFIER=foxy\nPRIORITY=6\nSYSLOG_FACILITY=3\nMESSAGE="
            ),
            false => {
                let at = Calendar::of(self.clock.wall());
                let (host, id) = (&self.host, std::process::id());
                write!(
                    space,
                    "<{PRIORITY}>1 {:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z {host} foxy {id} access - ",
                    at.year, at.month, at.day, at.hour, at.minute, at.second, at.millis
                )
            }
        };
        space.extend_from_slice(line);
        if self.journal {
            space.push(b'\n');
        }
    }
}

fn unix(path: &Path) -> io::Result<SyslogSocket> {
    if !std::fs::metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no socket",
        ));
    }
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(SyslogSocket::Unix(socket, path.to_owned()))
}

fn udp(to: SocketAddr) -> io::Result<SyslogSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    Ok(SyslogSocket::Udp(UdpSocket::bind(any)?, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(socket: &UnixDatagram) -> String {
        let mut space = [0; 4096];
        let length = socket.recv(&mut space).unwrap();
        String::from_utf8(space[..length].to_vec()).unwrap()
    }

    fn check_syslog(text: &str, line: &str) {
        let parts: Vec<_> = text.splitn(8, ' ').collect();
        let [head, time, host, name, id, message, data, rest] = parts[..] else {
            panic!("{text}")
        };
        assert_eq!(
            (head, name, message, data),
            ("<30>1", "foxy", "access", "-")
        );
        assert!(
            time.len() == 24 && time.ends_with('Z') && &time[10..11] == "T",
            "{time}"
        );
        assert!(!host.is_empty() && id.parse::<u32>().is_ok(), "{text}");
        assert_eq!(rest, line);
    }

    #[test]
    fn syslog_gets_each_line_over_its_socket_also_after_a_new_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let service = UnixDatagram::bind(&path).unwrap();
        let mut sender = Datagrams::new(&LogService::Syslog(path.clone())).unwrap();
        assert_eq!(sender.send(b"one 1\ntwo\n").0, 0);
        check_syslog(&receive(&service), "one 1");
        check_syslog(&receive(&service), "two");
        drop(service);
        let (failed, why) = sender.send(b"lost\n");
        assert!(failed == 1 && why.is_some());
        std::fs::remove_file(&path).unwrap();
        let service = UnixDatagram::bind(&path).unwrap();
        assert_eq!(sender.send(b"three\n").0, 0);
        check_syslog(&receive(&service), "three");
    }

    #[test]
    fn syslog_gets_each_line_over_udp() {
        let service = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = service.local_addr().unwrap();
        let mut sender = Datagrams::new(&LogService::SyslogUdp(to)).unwrap();
        assert_eq!(sender.send(b"{\"a\":1}\n").0, 0);
        let mut space = [0; 4096];
        let length = service.recv(&mut space).unwrap();
        check_syslog(std::str::from_utf8(&space[..length]).unwrap(), "{\"a\":1}");
    }

    #[test]
    fn the_journal_gets_fields() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let service = UnixDatagram::bind(&path).unwrap();
        let mut sender = Datagrams::new(&LogService::Journal(path)).unwrap();
        assert_eq!(sender.send(b"a=b c\n").0, 0);
        let text = receive(&service);
        let fields: Vec<_> = text.lines().collect();
        let wanted = [
            "SYSLOG_IDENTIFIER=foxy",
            "PRIORITY=6",
            "SYSLOG_FACILITY=3",
            "MESSAGE=a=b c",
        ];
        assert_eq!(fields, wanted);
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn a_path_without_a_socket_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(Datagrams::new(&LogService::Syslog(path.clone())).is_err());
        std::fs::write(&path, "").unwrap();
        assert!(Datagrams::new(&LogService::Journal(path)).is_err());
    }
}
