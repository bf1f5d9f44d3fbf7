//! Kernel memory of TCP sockets, read by the kernel's socket diagnosis (netlink).
//!
//! The program `ss` reads the same values, but this measurement needs the values of 15,000 sockets up to ten
//! times a second. The text output of `ss` would then take a whole core, which the measurement needs itself.
//! Here, one dump of 15,000 sockets takes about 10 ms. `mem` in /proc/net/sockstat is faster, but it counts
//! the sockets of all processes on the machine, including the laboratory's own ends of the same connections.
//!
//! The sum contains these values of `skmem` as `ss -m` prints it: `r` (receive queue), `w` (send queue), `f`
//! (allocated ahead) and `bl` (backlog). The value `t` counts packets that are in the network layer. The
//! bytes of these packets are already part of the send queue, so `t` is left out.

use std::io;

use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Message types and flags of netlink.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;
/// Length of a message's header.
const HEADER: usize = 16;
/// Length of a socket's description before its attributes.
const DESCRIPTION: usize = 72;
/// The requested attribute: an array of `u32`.
const SKMEMINFO: u16 = 7;
/// Indexes of the counted values in the array of [`SKMEMINFO`]: receive queue, allocated ahead, send queue,
/// backlog.
const COUNTED: [usize; 4] = [0, 4, 5, 7];
/// States of the dumped sockets: all states but TIME_WAIT (such sockets have no buffers) and LISTEN.
const STATES: u32 = !(1 << 6 | 1 << 10);

/// Sum over several sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    /// Number of sockets.
    pub(super) count: u64,
    /// Bytes of kernel memory.
    pub(super) bytes: u64,
}

/// Sockets of one process, recognised by their ports.
#[derive(Debug)]
pub(super) struct Sockets {
    netlink: OwnedFd,
    buffer: Vec<u8>,
    /// The port on which the process listens.
    local: u16,
    /// The port to which only this process connects.
    remote: u16,
}

impl Sockets {
    /// Sockets with the local port `local` or the remote port `remote`.
    pub(super) fn new(local: u16, remote: u16) -> io::Result<Self> {
        let netlink = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self {
            netlink,
            buffer: vec![0; 256 << 10],
            local,
            remote,
        })
    }

    /// Kernel memory of these sockets now.
    pub(super) fn sum(&mut self) -> io::Result<Sum> {
        let mut sum = Sum::default();
        self.dump(self.local, 0, &mut sum)?;
        self.dump(0, self.remote, &mut sum)?;
        Ok(sum)
    }

    fn dump(&mut self, local: u16, remote: u16, sum: &mut Sum) -> io::Result<()> {
        send(&self.netlink, &request(local, remote), SendFlags::empty())?;
        loop {
            let (_, length) = recv(&self.netlink, &mut self.buffer[..], RecvFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while let Some((kind, body, later)) = message(rest) {
                match kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return Err(io::Error::other("the kernel refuses the dump")),
                    _ => {
                        sum.count += 1;
                        sum.bytes += memory(body).unwrap_or(0);
                    }
                }
                rest = later;
            }
        }
    }
}

/// A request for all IPv4 TCP sockets with these ports; 0 means any port.
fn request(local: u16, remote: u16) -> Vec<u8> {
    let mut body = vec![2, 6, 1 << (SKMEMINFO - 1), 0];
    body.extend(STATES.to_ne_bytes());
    body.extend(local.to_be_bytes());
    body.extend(remote.to_be_bytes());
    // Addresses, interface and cookie stay zero.
    body.resize(8 + 48, 0);
    let length = u32::try_from(HEADER + body.len()).unwrap_or(0);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Type and content of the first message, and the bytes after that message.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(bytes, 0)?).ok()?;
    let kind = half(bytes, 4)?;
    let body = bytes.get(HEADER..length)?;
    let after = length.next_multiple_of(4).min(bytes.len());
    Some((kind, body, &bytes[after..]))
}

/// Bytes of kernel memory according to a socket's description.
fn memory(body: &[u8]) -> Option<u64> {
    let mut rest = body.get(DESCRIPTION..)?;
    loop {
        let length = usize::from(half(rest, 0)?);
        if half(rest, 2)? == SKMEMINFO {
            let array = rest.get(4..length)?;
            let part = |place: &usize| word(array, place * 4).map(u64::from);
            return COUNTED.iter().map(part).sum();
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(two.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_bytes_are_counted_at_the_end_that_has_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_server, _) = listener.accept().unwrap();
        // The system has just chosen this port, so no process connects to it. With a fixed number, another
        // test could connect to the port.
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let unused_port = unused.local_addr().unwrap().port();
        let mut sockets = Sockets::new(port, unused_port).unwrap();
        let before = sockets.sum().unwrap();
        assert_eq!(before.count, 1);
        client.write_all(&[1; 50_000]).unwrap();
        let after = sockets.sum().unwrap();
        assert!(after.bytes >= before.bytes + 50_000, "{before:?} {after:?}");
    }
}
