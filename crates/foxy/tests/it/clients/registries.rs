//! pip, npm, cargo, apt, go and Maven use mirrors of fake registries, which behave like real registries but
//! send no validators. Each client installs a package three times: when Foxy has stored nothing, again after
//! the client's own cache was deleted, and while the upstream fails.

mod archives;
mod cooldown;
mod locks;
mod packages;
mod settings;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clients::process::{Foxy, run, tool};
use crate::clients::web::{Request, Response, Web, serve};
use packages::Packages;
use settings::{set_up, undo};

/// A fake registry of each kind, all on one address, and a switch that makes these registries fail.
struct Registries {
    web: Web,
    fails: Arc<AtomicBool>,
    packages: Arc<Packages>,
    /// Paths of the artefacts that were requested by GET. (uv sends HEAD to find out whether a server
    /// supports ranges.)
    sent: Arc<Mutex<Vec<String>>>,
}

impl Registries {
    fn start() -> Self {
        let fails = Arc::new(AtomicBool::new(false));
        let packages = Arc::new(Packages::new());
        let (failing, contents) = (Arc::clone(&fails), Arc::clone(&packages));
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let own = Arc::clone(&sent);
        let web = serve(move |request: &Request| {
            if request.method == "GET" && is_artefact(&request.path) {
                own.lock().unwrap().push(request.path.clone());
            }
            if failing.load(Ordering::SeqCst) {
                return Response::new(429, "text/plain", "come back tomorrow");
            }
            let base = format!("http://{}", request.fields["host"]);
            let found = contents.answer(&request.path, &base);
            match found.or_else(|| archives::answer(&request.path)) {
                Some((content_type, body)) => Response::new(200, content_type, body),
                None => Response::new(404, "text/plain", "no such thing"),
            }
        })
        .unwrap();
        Self {
            web,
            fails,
            packages,
            sent,
        }
    }

    fn mirrors(&self) -> String {
        let section = |preset: &str, path: &str| {
            let url = self.web.url(path);
            format!("[[mirror]]\npreset = \"{preset}\"\nupstream = \"{url}\"\nfresh = \"1s\"\n")
        };
        [
            section("pypi", "/py"),
            section("npm", "/npm"),
            section("cargo", "/crates"),
            section("apt", "/archive"),
            section("go", "/modules"),
            section("maven", "/maven2"),
        ]
        .concat()
    }

    /// Returns settings for two mirrors with the preset `pypi`, and two with the preset `npm`. One mirror of
    /// each pair is for a public registry, and the other is for this registry. Only this registry has the
    /// packages `foxy*`.
    fn private_mirrors(&self, public: &Web) -> String {
        let section = |preset: &str, path: &str| {
            let [open, own] = [public.url(path), self.web.url(path)];
            format!(
                "[[mirror]]\npreset = \"{preset}\"\nupstream = \"{open}\"\n\
                 [[mirror]]\npreset = \"{preset}\"\nname = \"own-{preset}\"\nupstream = \"{own}\"\n\
                 fresh = \"1s\"\nlogin = \"ann:pw\"\nnames = [\"foxy*\"]\n"
            )
        };
        [section("pypi", "/py"), section("npm", "/npm")].concat()
    }

    /// Returns the paths of the artefacts that were requested by GET.
    fn artefacts(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

fn is_artefact(path: &str) -> bool {
    let ends = [".whl", ".tgz", "/download", ".deb", ".zip", ".jar"];
    ends.iter().any(|end| path.ends_with(end))
}

/// Runs `install` three times. Each call gets a separate folder, and returns the installed artefact.
fn three_times(install: impl Fn(&Foxy, &Path) -> Vec<u8>, expected: impl Fn(&Packages) -> Vec<u8>) {
    let registries = Registries::start();
    let foxy = Foxy::mirroring(&registries.mirrors());
    installs(&registries, &foxy, install, expected);
}

/// Runs `install` three times, as `three_times` does. The client uses the mirror of a public registry, and
/// the package comes from a private registry.
fn from_private(
    install: impl Fn(&Foxy, &Path) -> Vec<u8>,
    expected: impl Fn(&Packages) -> Vec<u8>,
) {
    let registries = Registries::start();
    let public = serve(|_: &Request| Response::new(200, "text/plain", "a trap")).unwrap();
    let foxy = Foxy::mirroring(&registries.private_mirrors(&public));
    installs(&registries, &foxy, install, expected);
    let asked = public.paths();
    let leaked = asked.iter().any(|path| path.contains("foxydemo"));
    assert!(!leaked, "the public registry was asked: {asked:?}");
}

fn installs(
    registries: &Registries,
    foxy: &Foxy,
    install: impl Fn(&Foxy, &Path) -> Vec<u8>,
    expected: impl Fn(&Packages) -> Vec<u8>,
) {
    let mut cold = None;
    for (round, fails) in [("cold", false), ("warm", false), ("failing", true)] {
        if fails {
            registries.fails.store(true, Ordering::SeqCst);
            // After this pause, the index documents are stale, so that they are requested again.
            std::thread::sleep(Duration::from_millis(1100));
        }
        let folder = foxy.dir().join(round);
        std::fs::create_dir(&folder).unwrap();
        let got = install(foxy, &folder);
        assert!(
            got == expected(&registries.packages),
            "{round}: other bytes"
        );
        let asked = registries.artefacts();
        let different: BTreeSet<&String> = asked.iter().collect();
        let once = !asked.is_empty() && different.len() == asked.len();
        assert!(once, "{round}: {:?}", registries.web.paths());
        assert_eq!(cold.get_or_insert_with(|| asked.clone()), &asked, "{round}");
    }
}

/// Returns a command whose settings and caches are in `folder`.
fn alone(mut command: Command, folder: &Path) -> Command {
    for (name, _) in std::env::vars() {
        let lower = name.to_ascii_lowercase();
        if lower.ends_with("_proxy") || lower.starts_with("pip_") || lower.starts_with("npm_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("HOME", folder);
    command
}

/// Returns cargo in a folder, with its own home folder and no setting from outside.
fn plain_cargo(folder: &Path, home: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO")) {
        cargo.env_remove(name);
    }
    cargo.current_dir(folder).env("CARGO_HOME", home);
    for name in [
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "RUSTFLAGS",
    ] {
        cargo.env_remove(name);
    }
    cargo
}

/// Returns the contents of the only file in or below a folder whose path ends with `end`.
fn file(folder: &Path, end: &str) -> Vec<u8> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                return std::fs::read(path).unwrap();
            }
        }
    }
    panic!("there is no {end}");
}

#[test]
fn pip() {
    // The program `pip` itself must exist. `python3 -m pip` may exist without it.
    let Some(_) = tool("pip", "python3-pip") else {
        return;
    };
    let install = &|foxy: &Foxy, folder: &Path| {
        let mut pip = alone(Command::new("pip"), folder);
        set_up(foxy, "pip", folder, &[]);
        run(pip.args([
            "download",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-deps",
            "-d",
            "files",
            "foxydemo",
        ]));
        undo(foxy, "pip", folder, &[]);
        file(&folder.join("files"), ".whl")
    };
    three_times(install, |packages| packages.wheel.clone());
    from_private(install, |packages| packages.wheel.clone());
}

#[test]
fn npm() {
    let Some(_) = tool("npm", "npm") else {
        return;
    };
    let install = &|foxy: &Foxy, folder: &Path| {
        let project =
            "{\"name\":\"x\",\"version\":\"1.0.0\",\"dependencies\":{\"foxydemo\":\"1.0.0\"}}";
        std::fs::write(folder.join("package.json"), project).unwrap();
        set_up(foxy, "npm", folder, &[]);
        run(alone(Command::new("npm"), folder).args([
            "install",
            "--cache",
            "cache",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
        ]));
        let lock = file(folder, "package-lock.json");
        let lock = String::from_utf8(lock).unwrap();
        assert!(
            lock.contains("npm/foxydemo/-/foxydemo-1.0.0.tgz") && lock.contains(&foxy.url()),
            "{lock}"
        );
        undo(foxy, "npm", folder, &[]);
        file(&folder.join("node_modules/foxydemo"), "index.js")
    };
    three_times(install, |_| packages::SOURCE.into());
    from_private(install, |_| packages::SOURCE.into());
}

#[test]
fn cargo() {
    let install = |foxy: &Foxy, folder: &Path| {
        let home = folder.join("home");
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(folder.join("src/main.rs"), "fn main() {}").unwrap();
        let project = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
            [dependencies]\nfoxydemo = \"1.0.0\"\n";
        std::fs::write(folder.join("Cargo.toml"), project).unwrap();
        let env = [("CARGO_HOME", &home)];
        set_up(foxy, "cargo", folder, &env);
        let mut cargo = plain_cargo(folder, &home);
        run(cargo.arg("fetch"));
        undo(foxy, "cargo", folder, &env);
        file(&home.join("registry/cache"), ".crate")
    };
    three_times(install, |packages| packages.krate.clone());
}
