//! Other caches (the peers of Foxy), and their installation, configuration and start. The measurements of the
//! laboratory and `cargo xtask bench peers` use the same configurations.

mod ats;
pub mod install;
mod nginx;
mod squid;
mod varnish;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use super::{Child, Launch, free_port};

pub use ats::ats;
pub use nginx::nginx;
pub use squid::{SquidDisk, squid};
pub use varnish::varnish;

/// The values from which the configuration of a peer is made.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The server's own folder.
    pub folder: &'a Path,
    /// A name that differs from the names of all other running servers.
    pub name: &'a str,
    /// Port of the listener on 127.0.0.1.
    pub port: u16,
    /// The origin's port on 127.0.0.1.
    pub origin: u16,
    /// Memory for contents, in MiB.
    pub memory_mib: u64,
    /// Disk space, in GiB.
    pub disk_gib: u64,
    /// True if hits are read from the disk. Then the server must be configured so that a disk read does not
    /// block its only worker.
    pub disk_hits: bool,
    /// True if the server should send only one request to the origin when several requests for an object
    /// arrive at the same time. Some servers do not support this.
    pub collapse: bool,
}

/// A peer of Foxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// nginx with `proxy_cache` and `proxy_cache_lock`, as a reverse proxy.
    Nginx,
    /// Varnish, as a reverse proxy.
    Varnish,
    /// Squid with `collapsed_forwarding`, as a forward proxy.
    Squid,
    /// Apache Traffic Server as a forward proxy. It sends an object to waiting clients while it still stores
    /// the object.
    Ats,
}

/// All peers.
pub const PEERS: [Peer; 4] = [Peer::Nginx, Peer::Varnish, Peer::Squid, Peer::Ats];

impl Peer {
    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Varnish => "varnish",
            Self::Squid => "squid",
            Self::Ats => "ats",
        }
    }

    /// True if the peer is a reverse proxy in front of one origin.
    #[must_use]
    pub const fn is_reverse(self) -> bool {
        matches!(self, Self::Nginx | Self::Varnish)
    }

    /// Program and Debian package.
    #[must_use]
    pub const fn package(self) -> (&'static str, &'static str) {
        match self {
            Self::Nginx => ("nginx", "nginx-light"),
            Self::Varnish => ("varnishd", "varnish"),
            Self::Squid => ("squid", "squid"),
            Self::Ats => ("traffic_server", "trafficserver"),
        }
    }

    /// Installs the peer if it is missing. Starts it in an empty folder, in front of the origin on port
    /// `origin`.
    ///
    /// # Errors
    /// An error if the peer cannot be installed or does not start.
    pub fn start(self, origin: u16, folder: &Path) -> Result<Child, String> {
        install::ensure(&[self.package()])?;
        // Squid gives up the rights of root, so its own user must be able to enter these folders.
        for folder in folder.ancestors().take(2) {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let port = free_port()?;
        let name = format!("foxylab{port}");
        let place = Place {
            folder,
            name: &name,
            port,
            origin,
            memory_mib: 256,
            disk_gib: 1,
            disk_hits: false,
            collapse: true,
        };
        let launch: Launch = match self {
            Self::Nginx => nginx(&place)?,
            Self::Varnish => varnish(&place)?,
            Self::Squid => squid(&place, SquidDisk::Off)?,
            Self::Ats => ats(&place)?,
        };
        let child = Child::start(&launch, folder, port)?;
        // Some peers open their store after they begin to listen.
        std::thread::sleep(std::time::Duration::from_secs(1));
        Ok(child)
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = PEERS.into_iter().find(|peer| peer.name() == text);
        found.ok_or_else(|| {
            let names = PEERS.map(Self::name).join(", ");
            format!("`{text}` is none of {names}")
        })
    }
}

/// Writes one file of a configuration.
fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
