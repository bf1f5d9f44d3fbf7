//! The servers and tools of the comparison: found, or installed where that is possible.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::servers::Kind;

/// Program, Debian package.
const fn needed(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::SquidRock | Kind::SquidAufs => Some(("squid", "squid")),
        Kind::Ats => Some(("traffic_server", "trafficserver")),
        Kind::Nginx => Some(("nginx", "nginx-light")),
        Kind::Varnish => Some(("varnishd", "varnish")),
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

/// Installs what is missing; who cannot be had is named with the command that gets it.
pub(super) fn ensure(kinds: &[Kind]) -> Result<(), String> {
    let missing = || -> Vec<(&str, &str)> {
        let mut all: Vec<_> = kinds.iter().filter_map(|kind| needed(*kind)).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|(program, _)| find(program).is_none());
        all
    };
    let packages: Vec<_> = missing().iter().map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    println!("   installing {}", packages.join(", "));
    let _ = apt(&["update", "-q"])
        && apt(&[
            &["install", "-y", "-q", "--no-install-recommends"],
            &packages[..],
        ]
        .concat());
    let still: Vec<_> = missing().iter().map(|(_, package)| *package).collect();
    if still.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not to be had: {}. Install them (apt-get install {}) or leave them out with --proxies",
        still.join(", "),
        still.join(" ")
    ))
}

/// A program in the search path, or where servers are put.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders
        .iter()
        .map(|f| f.join(program))
        .find(|p| p.is_file())
}

/// Its path, or a complaint.
pub(super) fn path(program: &str) -> Result<PathBuf, String> {
    find(program).ok_or_else(|| format!("{program} is not installed"))
}

/// Versions as the package system knows them, for the head of the table.
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

/// Needs root and a Debian. The run level keeps the packages from starting their services.
fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("RUNLEVEL", "1")
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
