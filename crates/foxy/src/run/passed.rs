//! Listening sockets that a service manager has opened and passes to Foxy (socket activation,
//! `sd_listen_fds(3)`). The manager keeps the sockets open over a restart of Foxy, so that connections that
//! arrive during the restart wait in the queue.

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

use super::StartError;

/// Sockets that were passed and are not in use yet, each with its address.
#[derive(Debug, Default)]
pub struct Passed(Vec<(SocketAddr, TcpListener)>);

impl Passed {
    /// Takes the sockets that the environment variables `LISTEN_FDS` and `LISTEN_PID` announce, and removes
    /// these variables. Must be called before the first thread starts.
    ///
    /// # Errors
    /// An error if one of the sockets is not a listening TCP socket.
    pub fn from_environment() -> Result<Self, StartError> {
        let mut from = ListenFd::from_env();
        let number = from.len();
        let listener = |index| {
            let listener = from.take_tcp_listener(index)?;
            let listener = listener.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC)?;
            Ok(listener)
        };
        let listeners: io::Result<Vec<_>> = (0..number).map(listener).collect();
        listeners.and_then(Self::new).map_err(StartError::Passed)
    }

    /// Makes a value from these listening sockets.
    ///
    /// # Errors
    /// An error if the system does not know the address of a socket.
    pub fn new(listeners: Vec<TcpListener>) -> io::Result<Self> {
        let mut all = Vec::with_capacity(listeners.len());
        for listener in listeners {
            all.push((listener.local_addr()?, listener));
        }
        Ok(Self(all))
    }

    /// True if a socket was passed for exactly this address.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|(of, _)| *of == address)
    }

    /// Returns a socket for each of `workers` workers, if at least one socket was passed for exactly this
    /// address. If fewer sockets than workers were passed, workers share a socket: each of these workers sees
    /// every new connection, and one of them accepts it.
    ///
    /// # Errors
    /// An error if the process has no free file descriptors.
    pub(super) fn take(
        &mut self,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Option<Vec<TcpListener>>> {
        let is_for = |(of, _): &mut (SocketAddr, TcpListener)| *of == address;
        let found: Vec<_> = self.0.extract_if(.., is_for).map(|(_, one)| one).collect();
        if found.is_empty() {
            return Ok(None);
        }
        for listener in &found {
            listener.set_nonblocking(true)?;
        }
        // Every socket gets at least one worker. Otherwise connections would wait forever in the queue of a
        // socket that no worker reads.
        let users = workers.max(found.len());
        let mut sockets = Vec::with_capacity(users);
        for listener in found.iter().cycle().take(users) {
            sockets.push(listener.try_clone()?);
        }
        Ok(Some(sockets))
    }

    /// Fails if a socket was passed for an address that the configuration does not use. Connections to it
    /// would wait forever.
    pub(super) fn expect_none(&self) -> Result<(), StartError> {
        match self.0.first() {
            None => Ok(()),
            Some((address, _)) => Err(StartError::NotListened(*address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    #[test]
    fn each_worker_gets_the_socket_of_its_address() {
        let (one, two) = (listener(), listener());
        let (first, second) = (one.local_addr().unwrap(), two.local_addr().unwrap());
        let mut passed = Passed::new(vec![one, two]).unwrap();
        let sockets = passed.take(second, 3).unwrap().unwrap();
        assert_eq!(sockets.len(), 3);
        assert!(sockets.iter().all(|s| s.local_addr().unwrap() == second));
        assert!(passed.take(second, 3).unwrap().is_none(), "taken once");
        let error = passed.expect_none().unwrap_err().to_string();
        assert!(error.contains(&first.to_string()), "{error}");
        assert_eq!(passed.take(first, 1).unwrap().unwrap().len(), 1);
        passed.expect_none().unwrap();
    }

    #[test]
    fn any_worker_accepts_from_a_shared_socket() {
        let one = listener();
        let address = one.local_addr().unwrap();
        let mut passed = Passed::new(vec![one]).unwrap();
        let sockets = passed.take(address, 2).unwrap().unwrap();
        for socket in &sockets {
            let client = std::net::TcpStream::connect(address).unwrap();
            let (_, peer) = socket.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
        let nothing = sockets[0].accept().unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn another_port_or_address_is_not_taken() {
        let one = listener();
        let mut other = one.local_addr().unwrap();
        other.set_ip([0, 0, 0, 0].into());
        let mut passed = Passed::new(vec![one]).unwrap();
        assert!(passed.take(other, 1).unwrap().is_none());
    }
}
