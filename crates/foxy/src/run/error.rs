//! Reasons why Foxy did not start. Every message describes how to correct the problem.

use std::io;
use std::net::SocketAddr;

use foxy_disk::DiskError;
use foxy_store::OpenError;

use crate::config::LogTarget;

/// An error of a start. No part of Foxy is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or device cannot be used.
    #[error("store {0}")]
    Disk(#[from] DiskError),
    /// The file or device contains no usable store.
    #[error("store {0}")]
    Store(#[from] OpenError),
    /// The folder of a new store cannot be created.
    #[error("store {path}: its folder cannot be made: {source}; make it, or choose another path")]
    Folder {
        /// The store's path.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Foxy cannot listen on an address.
    #[error("cannot listen on {address} ({user}): {source}; {advice}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The user of the address: `forward proxy`, `admin` or the site's name.
        user: String,
        /// The error of the system.
        source: io::Error,
        /// The way to correct the problem.
        advice: &'static str,
    },
    /// Two sites that share an address have the same host and path.
    #[error("{0}")]
    Sites(String),
    /// A socket that the service manager passes is not a listening TCP socket.
    #[error(
        "a socket of the service manager cannot be used: {0}; ListenStream= in foxy.socket makes TCP sockets from ADDRESS:PORT"
    )]
    Passed(#[source] io::Error),
    /// The service manager passes a socket for an address that is not configured.
    #[error(
        "the service manager passes a socket for {0}, where nothing is configured to listen; make `listen` and ListenStream= in foxy.socket equal"
    )]
    NotListened(SocketAddr),
    /// The access log cannot be opened.
    #[error("access log {target}: {source}; correct log.access, or make the folder writable")]
    AccessLog {
        /// The path of the log.
        target: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The admin token cannot be read or created.
    #[error(
        "admin token {path}: {source}; correct access.admin_token_file, or remove the file to get a new one"
    )]
    Token {
        /// The file of the token.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// One of the further tokens cannot be read.
    #[error("admin token {path}: {source}; correct access.{setting}")]
    FurtherToken {
        /// The file of the token.
        path: String,
        /// The setting that names the file.
        setting: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The unix socket of the admin listener cannot be created.
    #[error(
        "admin socket {path}: {source}; correct access.admin_socket, or make its folder for Foxy to write to"
    )]
    AdminSocket {
        /// The path of the socket.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses to start a thread or runtime.
    #[error("cannot start a {what} thread: {source}; the limit on processes or memory is too low")]
    Thread {
        /// The kind of thread.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl StartError {
    /// True if the disk of a store is the cause. Foxy can run without that disk.
    pub(super) const fn is_of_a_disk(&self) -> bool {
        match self {
            Self::Disk(error) => error.is_of_the_disk(),
            Self::Store(error) => error.is_of_the_disk(),
            _ => false,
        }
    }

    /// Returns the error of an access log.
    pub(super) fn access_log(target: &LogTarget, source: io::Error) -> Self {
        let target = match target {
            LogTarget::File(path) => path.display().to_string(),
            LogTarget::Service(service) => service.to_string(),
            LogTarget::Stdout => "stdout".to_owned(),
            LogTarget::Off => "off".to_owned(),
        };
        Self::AccessLog { target, source }
    }

    /// Returns the error of an address, with advice for this kind of error.
    pub(crate) fn listen(address: SocketAddr, user: &str, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another program (or another Foxy) uses it: stop that one or choose another port"
            }
            io::ErrorKind::AddrNotAvailable => "it is not an address of this machine",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a privilege: choose another port or grant CAP_NET_BIND_SERVICE"
            }
            _ => "choose another address",
        };
        Self::Listen {
            address,
            user: user.to_owned(),
            source,
            advice,
        }
    }
}
