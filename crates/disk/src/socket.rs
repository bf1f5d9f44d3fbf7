//! The send queue of a socket, and the receive window of its peer.

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

/// Bytes of `struct tcp_info` (`include/uapi/linux/tcp.h`) up to the end of `tcpi_snd_wnd`, which is the last
/// field that is read here. Linux has this field since 5.4.
const INFO_BYTES: usize = 232;

/// Number of bytes that the peer of a TCP socket is ready to receive now: the window that it announced last.
/// The window shrinks while the peer's program leaves received bytes unread. Returns `None` if the system
/// does not report the window.
///
/// # Errors
/// The error of the system, for example for a socket that is not a TCP socket.
pub fn peer_window(socket: impl AsFd) -> io::Result<Option<u32>> {
    let mut info = [0_u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has that length, and sets `length`.
    // Both live until after the call. The descriptor is open as long as it is borrowed.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let [.., a, b, c, d] = info;
    let is_complete = length as usize >= INFO_BYTES;
    Ok(is_complete.then_some(u32::from_ne_bytes([a, b, c, d])))
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
    fn a_window_shrinks_by_bytes_that_the_peer_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let window = || peer_window(&sender).unwrap().unwrap() as usize;
        // The kernel may enlarge the window when the first bytes arrive.
        let (mut greatest, mut unread) = (window(), 0);
        assert!(greatest > 10_000, "{greatest}");
        while window() > greatest / 2 {
            (&sender).write_all(&[7; 10_000]).unwrap();
            unread += 10_000;
            while send_queue(&sender).unwrap() > 0 {
                std::thread::yield_now();
            }
            greatest = greatest.max(window());
        }
        peer.read_exact(&mut vec![0; unread]).unwrap();
        while window() <= greatest / 2 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_is_no_socket() {
        let file = tempfile::tempfile().unwrap();
        assert!(send_queue(&file).is_err());
        assert!(peer_window(&file).is_err());
    }
}
