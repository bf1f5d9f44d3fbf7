//! The servers and tools of the comparison. The module finds these programs, and installs missing programs
//! where possible.

use std::path::Path;
use std::process::{Command, Stdio};

use foxy_lab::kit::peers::{Peer, install};

use super::servers::Kind;

/// The program that this kind of server needs, and the Debian package that contains the program.
const fn needed(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::SquidRock | Kind::SquidAufs => Some(Peer::Squid.package()),
        Kind::Ats => Some(Peer::Ats.package()),
        Kind::Nginx => Some(Peer::Nginx.package()),
        Kind::Varnish => Some(Peer::Varnish.package()),
        Kind::Device => Some(("fio", "fio")),
        Kind::Floor
        | Kind::Foxy
        | Kind::FoxyReverse
        | Kind::Fork
        | Kind::ForkBare
        | Kind::FoxyPublished
        | Kind::FoxyFiles => None,
    }
}

/// Installs missing programs.
pub(super) fn ensure(kinds: &[Kind]) -> Result<(), String> {
    let needed: Vec<_> = kinds.iter().filter_map(|kind| needed(*kind)).collect();
    install::ensure(&needed)
}

/// Version according to the package system, for the head of the table.
pub(super) fn version(kind: Kind) -> String {
    let Some((_, package)) = needed(kind) else {
        return env!("CARGO_PKG_VERSION").to_owned();
    };
    let query = |package: &str| {
        let output = Command::new("dpkg-query")
            .args(["-W", "-f", "${Version}", package])
            .stderr(Stdio::null())
            .output();
        output
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
            .unwrap_or_default()
    };
    let version = query(package);
    if version.is_empty() && Path::new("/usr/sbin/nginx").exists() {
        return query("nginx");
    }
    version
}
