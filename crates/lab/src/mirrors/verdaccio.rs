//! verdaccio, a registry for npm that fetches packages from another registry. It is the peer with which Foxy
//! is compared. npm installs it, and it runs on one core.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fixture::pinned;
use crate::kit::{Child, Launch, free_port, peers};

/// The release that is measured.
const PACKAGE: &str = "verdaccio@6";
/// A manifest for the installation. A dependency of verdaccio is named by a tag in place of a version, and
/// some registries do not support such tags. So `overrides` names a version of this dependency.
const MANIFEST: &str =
    "{\"name\":\"peer\",\"private\":true,\"overrides\":{\"node-fetch\":\"2.7.0\"}}";

/// Starts verdaccio in front of the registry at this URL. It is installed into `folder`, unless `installed`
/// names a folder.
pub(super) fn start(
    installed: Option<&Path>,
    folder: &Path,
    registry: &str,
) -> Result<Child, String> {
    let program = match installed {
        Some(installed) => program(installed)?,
        None => install(folder)?,
    };
    let (home, port) = (folder.join("verdaccio"), free_port()?);
    let problem = |error: std::io::Error| format!("no folder: {error}");
    std::fs::create_dir_all(&home).map_err(problem)?;
    // The documents stay fresh for the same time as in the measurement of Foxy.
    let text = format!(
        "storage: {}\nself_path: {}\nuplinks:\n  up:\n    url: {registry}/\n    maxage: 60m\n    \
         timeout: 120s\n    cache: true\npackages:\n  '**':\n    access: $all\n    proxy: up\nweb:\n  enable: false\n\
         log: {{type: stdout, format: json, level: fatal}}\n",
        home.join("storage").display(),
        home.display(),
    );
    let file = home.join("config.yaml");
    std::fs::write(&file, text).map_err(problem)?;
    let mut args = Vec::new();
    // The registry is on this machine, so no proxy may be used.
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
        args.extend(["-u".to_owned(), name.to_owned()]);
    }
    args.push("NODE_ENV=production".to_owned());
    args.push(program.display().to_string());
    args.push(format!("--config={}", file.display()));
    args.push(format!("--listen=127.0.0.1:{port}"));
    let launch = pinned(Launch::new("env".into(), args), true);
    Child::start(&launch, &home, port)
}

fn program(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("node_modules/.bin/verdaccio");
    match program.exists() {
        // verdaccio runs in another folder, so the path must be absolute.
        true => program.canonicalize().map_err(|error| error.to_string()),
        false => Err(format!("{} is not there", program.display())),
    }
}

fn install(folder: &Path) -> Result<PathBuf, String> {
    let npm = peers::install::path("npm")?;
    let folder = folder.join("peer");
    let problem = |error: std::io::Error| format!("npm install: {error}");
    std::fs::create_dir_all(&folder).map_err(problem)?;
    std::fs::write(folder.join("package.json"), MANIFEST).map_err(problem)?;
    eprintln!("   installing {PACKAGE}");
    let mut command = Command::new(npm);
    command
        .args(["install", "--no-audit", "--no-fund", PACKAGE])
        .current_dir(&folder)
        .stdin(Stdio::null());
    let output = command.output().map_err(problem)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let first: Vec<_> = text.lines().take(2).collect();
        return Err(format!("npm install {PACKAGE}: {}", first.join(" ")));
    }
    program(&folder)
}
