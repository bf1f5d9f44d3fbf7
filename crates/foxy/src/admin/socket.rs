//! The unix socket of the admin listener. Clients cannot connect before the socket has its permissions. The
//! file is removed when Foxy ends.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::AdminSocket;

/// Largest number of connections that wait to be accepted.
const QUEUE: i32 = 64;

/// A listening socket. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Creates the socket and listens. A socket file that another process left behind is replaced.
    ///
    /// # Errors
    /// An error if another process listens there, if another file has the name, or if the folder cannot be
    /// written.
    pub(crate) fn bind(wanted: &AdminSocket) -> io::Result<Self> {
        remove_left_behind(wanted)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(&wanted.path)?)?;
        // The file belongs to this process from here on. If a later step fails, dropping `listener` removes
        // it.
        let listener = Self {
            listener: socket.into(),
            path: wanted.path.clone(),
        };
        // Clients cannot connect before the call of `listen`.
        std::fs::set_permissions(&wanted.path, Permissions::from_mode(wanted.mode))?;
        rustix::net::listen(&listener.listener, QUEUE)?;
        listener.listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Returns a handle for the thread that accepts connections.
    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // If the folder cannot be written any more, the file stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn remove_left_behind(wanted: &AdminSocket) -> io::Result<()> {
    let path = &wanted.path;
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another file has this name",
            ));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(folder: &tempfile::TempDir, mode: u32) -> AdminSocket {
        AdminSocket {
            path: folder.path().join("admin.sock"),
            mode,
        }
    }

    #[test]
    fn it_has_its_permissions_and_is_removed_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o660, 0o666] {
            let wanted = wanted(&folder, mode);
            let socket = UnixSocket::bind(&wanted).unwrap();
            let found = std::fs::metadata(&wanted.path).unwrap().permissions();
            assert_eq!(found.mode() & 0o777, mode);
            UnixStream::connect(&wanted.path).unwrap();
            drop(socket);
            assert!(!wanted.path.exists());
        }
    }

    #[test]
    fn one_in_use_and_other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted(&folder, 0o600);
        let first = UnixSocket::bind(&wanted).unwrap();
        let second = UnixSocket::bind(&wanted).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&wanted.path).unwrap();
        drop(first);
        std::fs::write(&wanted.path, "text").unwrap();
        assert!(UnixSocket::bind(&wanted).is_err());
        assert_eq!(std::fs::read(&wanted.path).unwrap(), b"text");
    }

    #[test]
    fn one_left_behind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted(&folder, 0o600);
        // The listener of the standard library does not remove its file when it is dropped.
        drop(UnixListener::bind(&wanted.path).unwrap());
        assert!(wanted.path.exists());
        UnixSocket::bind(&wanted).unwrap();
    }
}
