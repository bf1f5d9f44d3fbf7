//! Rights at the admin listener: of requests with a token, of requests over the socket, and of requests from
//! loopback without a token.

use std::path::PathBuf;

use super::kind::Value;
use super::values::Values;

/// Words of the rights that a token or socket may have.
pub(super) const RIGHTS: [&str; 3] = ["read", "purge", "operate"];
/// Words of the rights that requests from loopback may have.
pub(super) const LOOPBACK_RIGHTS: [&str; 4] = ["none", "read", "purge", "operate"];
/// Permissions that the socket may have.
pub(super) const MODES: [&str; 3] = ["0600", "0660", "0666"];

/// The actions that a request may perform. Each right includes the rights before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Only requests about health.
    #[default]
    Nothing,
    /// All requests that change nothing.
    Read,
    /// Purges, and all requests that change nothing.
    Purge,
    /// All requests, including reloads and changes of stores.
    Operate,
}

impl Right {
    fn named(word: &str) -> Self {
        match word {
            "read" => Self::Read,
            "purge" => Self::Purge,
            "operate" => Self::Operate,
            _ => Self::Nothing,
        }
    }

    /// Returns the name of the right, for messages about refused requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "health",
            Self::Read => "read",
            Self::Purge => "purge",
            Self::Operate => "operate",
        }
    }
}

/// A unix socket of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSocket {
    /// The path of the socket.
    pub path: PathBuf,
    /// The permissions of the socket.
    pub mode: u32,
}

/// The rights of requests without the admin token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminRights {
    /// The right of requests from loopback without a token.
    pub loopback: Right,
    /// The right of requests over the socket without a token.
    pub socket: Right,
    /// File with a token that may read and purge.
    pub purge_token: Option<PathBuf>,
    /// File with a token that may read.
    pub read_token: Option<PathBuf>,
}

pub(super) fn socket(values: &mut Values<'_>) -> Option<AdminSocket> {
    let mode = values.text("admin_socket_mode");
    let path = path(values, "admin_socket")?;
    Some(AdminSocket {
        path,
        mode: u32::from_str_radix(&mode, 8).unwrap_or(0o600),
    })
}

pub(super) fn rights(values: &mut Values<'_>) -> AdminRights {
    AdminRights {
        loopback: Right::named(&values.text("admin_loopback_rights")),
        socket: Right::named(&values.text("admin_socket_rights")),
        purge_token: path(values, "admin_purge_token_file"),
        read_token: path(values, "admin_read_token_file"),
    }
}

fn path(values: &Values<'_>, name: &str) -> Option<PathBuf> {
    match values.given(name) {
        Some(Value::Text(path)) => Some(PathBuf::from(path)),
        _ => None,
    }
}
