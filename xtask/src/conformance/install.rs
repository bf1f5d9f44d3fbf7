//! Fetches the test suite of HTTP caches, and the HTTP client that the suite uses. Both packages are used as
//! they were published, and are checked against a pinned hash.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::{output, target_folder};

const HELP: &str = "the conformance tests run on Node.js 20 or later, with npm: install the \
                    packages `nodejs` and `npm` of your system, or see https://nodejs.org/";

/// A package in a registry.
struct Package {
    name: &'static str,
    version: &'static str,
    integrity: &'static str,
}

/// The newest release of the suite.
const SUITE: Package = Package {
    name: "http-cache-tests",
    version: "0.4.5",
    integrity: "sha512-DjuwN9nUZXLTW+wav1LRESCZNVxl8SshwOy4z1pxuWbWt5/ay6sM9QQ1lebBaDO6P1IMBoK6mdf+PuVP/QNL8A==",
};

/// An HTTP client that supports forward proxies and shows interim responses.
const CLIENT: Package = Package {
    name: "undici",
    version: "7.30.2",
    integrity: "sha512-mLyPQnHwUxaM/rideoK/+KL8DaAJLRl4aBCfmX444aCSLnIaomqPLtNRe2jdCYcsk5wZzXrDIQC8ZeYNRAYyIA==",
};

/// Proof that the needed programs were found.
#[derive(Debug)]
pub(super) struct Tools(());

impl Tools {
    pub(super) fn find() -> Result<Self, String> {
        let version = output(Command::new("node").arg("--version"), HELP)?;
        output(Command::new("npm").arg("--version"), HELP)?;
        let major = version.trim_start_matches('v').split('.').next();
        let major: u32 = major.and_then(|n| n.parse().ok()).unwrap_or(0);
        if major < 20 {
            return Err(format!("found Node.js {}; {HELP}", version.trim()));
        }
        Ok(Self(()))
    }
}

/// A version of the suite.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) folder: PathBuf,
    /// Name of the table with the verdicts of this version.
    pub(super) table: &'static str,
    /// Name of the table with the losses: the tests whose verdict with Foxy's default settings differs from
    /// the verdict in `table`.
    pub(super) losses: &'static str,
    /// True if this version has tests of Surrogate-Control.
    pub(super) surrogate: bool,
}

impl Suite {
    /// Uses a checkout of the suite's repository.
    pub(super) fn checkout(folder: &Path) -> Result<Self, String> {
        let folder = folder
            .canonicalize()
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        if !folder.join("test-engine").join("server").is_dir() {
            return Err(format!(
                "{} is no checkout of cache-tests",
                folder.display()
            ));
        }
        Ok(Self {
            surrogate: folder.join("tests").join("surrogate-control.mjs").exists(),
            folder,
            table: "git.toml",
            losses: "git-defaults.toml",
        })
    }

    /// Path of the suite's origin program.
    pub(super) fn server(&self) -> PathBuf {
        let new = self.folder.join("test-engine/server/server.mjs");
        if new.exists() {
            new
        } else {
            self.folder.join("server/server.mjs")
        }
    }
}

/// Returns the pinned release of the suite.
pub(super) fn release(tools: &Tools, folder: &Path) -> Result<Suite, String> {
    Ok(Suite {
        folder: unpacked(tools, &SUITE, folder)?,
        table: "npm.toml",
        losses: "npm-defaults.toml",
        surrogate: true,
    })
}

/// Returns the folder of the pinned client.
pub(super) fn client(tools: &Tools, folder: &Path) -> Result<PathBuf, String> {
    unpacked(tools, &CLIENT, folder)
}

/// Folder for the suite and its results.
pub(super) fn folder() -> Result<PathBuf, String> {
    let folder = target_folder()?.join("conformance");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Fetches a package if it does not exist yet. The dependencies of the package are not used, and are not
/// fetched.
fn unpacked(_: &Tools, package: &Package, folder: &Path) -> Result<PathBuf, String> {
    let name = format!("{}-{}", package.name, package.version);
    let at = folder.join(&name);
    if at.is_dir() {
        return Ok(at);
    }
    let packed = output(
        Command::new("npm")
            .current_dir(folder)
            .args(["pack", "--json", "--ignore-scripts"])
            .arg(format!("{}@{}", package.name, package.version)),
        HELP,
    )?;
    if !packed.contains(package.integrity) {
        return Err(format!(
            "{name} is not what it was when its hash was pinned"
        ));
    }
    // The package is unpacked under a temporary name and then renamed, so that a folder with this name is
    // always complete.
    let aside = folder.join(format!("{name}.part"));
    let _ = std::fs::remove_dir_all(&aside);
    std::fs::create_dir(&aside).map_err(|error| format!("{}: {error}", aside.display()))?;
    output(
        Command::new("tar")
            .current_dir(folder)
            .arg("-xzf")
            .arg(format!("{name}.tgz"))
            .args(["--strip-components", "1", "-C"])
            .arg(&aside),
        HELP,
    )?;
    std::fs::rename(&aside, &at).map_err(|error| format!("{}: {error}", at.display()))?;
    Ok(at)
}
