//! The send queue of a socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Number of bytes in the send queue of a socket: bytes that are not sent yet, and bytes that the peer has
/// not acknowledged.
///
/// # Errors
/// The error of the system, for example for a descriptor that is not a socket.
pub fn send_queue(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one int to the address that it gets. `bytes` is an int that lives until
    // after the call. The descriptor is open as long as it is borrowed.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match done {
        0 => Ok(usize::try_from(bytes).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn bytes_that_the_peer_does_not_read_are_queued() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        assert_eq!(send_queue(&sender).unwrap(), 0);
        sender.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(n) = sender.write(&[7; 64 << 10]) {
            written += n;
        }
        assert!(send_queue(&sender).unwrap() > 0);
        peer.read_exact(&mut vec![0; written]).unwrap();
        while send_queue(&sender).unwrap() > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_has_no_send_queue() {
        let file = tempfile::tempfile().unwrap();
        assert!(send_queue(&file).is_err());
    }
}
