//! Programs from system packages. The module finds these programs, and installs missing programs if possible.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Installs the missing programs of a list of `(program, Debian package)`. The error contains the packages
/// that could not be installed, and the command to install them.
///
/// # Errors
/// An error if some programs are still missing.
pub fn ensure(needed: &[(&str, &str)]) -> Result<(), String> {
    let missing = || -> Vec<&str> {
        let absent = needed.iter().filter(|(program, _)| find(program).is_none());
        let mut packages: Vec<_> = absent.map(|(_, package)| *package).collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    eprintln!("   installing {}", packages.join(", "));
    let _ = apt(&["update", "-q"])
        && apt(&[
            &["install", "-y", "-q", "--no-install-recommends"],
            &packages[..],
        ]
        .concat());
    let still = missing();
    if still.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not installed: {}. Install them (apt-get install {}) or leave them out",
        still.join(", "),
        still.join(" ")
    ))
}

/// Finds a program in the search path or in the system's folders for servers.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders
        .iter()
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Returns the path of a program.
///
/// # Errors
/// An error if the program is not installed.
pub fn path(program: &str) -> Result<PathBuf, String> {
    find(program).ok_or_else(|| format!("{program} is not installed"))
}

/// Runs apt, which needs root and a Debian system. The variable `RUNLEVEL` prevents the packages from
/// starting their services.
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
