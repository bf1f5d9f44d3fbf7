//! The settings of clients that `foxy mirror setup` makes and undoes.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::alone;
use crate::clients::process::{Foxy, run};

/// Applies the mirror's settings to the client whose home folder is `home`, with these variables.
pub(super) fn set_up(foxy: &Foxy, tool: &str, home: &Path, env: &[(&str, &PathBuf)]) {
    run(setup(foxy, tool, home, env).arg("--write"));
    assert!(
        names(foxy, home).next().is_some(),
        "nothing was written for {tool}"
    );
}

/// Undoes the settings, and checks that no setting names the mirror any more.
pub(super) fn undo(foxy: &Foxy, tool: &str, home: &Path, env: &[(&str, &PathBuf)]) {
    run(setup(foxy, tool, home, env).arg("--undo"));
    let left: Vec<_> = names(foxy, home).collect();
    assert!(left.is_empty(), "{tool}: {left:?}");
}

fn setup(foxy: &Foxy, tool: &str, home: &Path, env: &[(&str, &PathBuf)]) -> Command {
    let mut setup = alone(Command::new(env!("CARGO_BIN_EXE_foxy")), home);
    // Settings must be below the home folder.
    for name in ["XDG_CONFIG_HOME", "CARGO_HOME", "GRADLE_USER_HOME", "GOENV"] {
        setup.env_remove(name);
    }
    setup.args(["mirror", "setup", tool, "--url", &foxy.url()]);
    setup.envs(env.iter().copied());
    setup
}

/// Returns the settings files below a home folder that name the mirror.
fn names(foxy: &Foxy, home: &Path) -> impl Iterator<Item = PathBuf> {
    let mut folders = vec![home.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_cache = [
                ".cache",
                ".npm",
                ".local",
                "cache",
                "registry",
                "path",
                "node_modules",
            ];
            if path.is_dir() && !path.is_symlink() {
                if !is_cache.contains(&name.as_ref()) {
                    folders.push(path);
                }
            } else if is_settings(&name) {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                if text.contains(&foxy.proxy.to_string()) {
                    found.push(path);
                }
            }
        }
    }
    found.into_iter()
}

/// True if a file with this name contains settings, and is not a lock file.
fn is_settings(name: &str) -> bool {
    let ends = [
        "pip.conf",
        "uv.toml",
        "npmrc",
        "auth.ini",
        "rc",
        ".yarnrc",
        ".yarnrc.yml",
        "config.toml",
        "env",
        "settings.xml",
    ];
    ends.iter().any(|end| name.ends_with(end))
}
