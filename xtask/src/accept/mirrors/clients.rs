//! The clients pip, npm, cargo and apt. Each client installs the packages of a small project into a folder,
//! with an empty cache.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{Files, below};

/// A client of registries.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Preset (kind of registry) of the Foxy mirror that the client uses.
    pub(super) preset: &'static str,
    /// Returns the registry in the client's settings on this machine; `None` for the public registry.
    pub(super) registry: fn() -> Result<Option<String>, String>,
    /// Installs the packages into an empty folder and leaves the lock file there.
    pub(super) install: fn(&Path, Packages<'_>) -> Result<Files, String>,
}

/// The registry and the versions for one installation. By default, the client gets the newest versions
/// without Foxy: npm and apt from the registry in their settings on this machine, pip and cargo from the
/// public registry.
#[derive(Clone, Copy, Default)]
pub(super) struct Packages<'a> {
    /// URL of a Foxy to use in place of the registry.
    pub(super) foxy: Option<&'a str>,
    /// Folder of an earlier installation. Its lock file contains the versions to install.
    pub(super) lock: Option<&'a Path>,
}

pub(super) const CLIENTS: [Client; 4] = [
    Client {
        name: "pip",
        preset: "pypi",
        registry: || setting(Command::new("pip").args(["config", "get", "global.index-url"])),
        install: pip,
    },
    Client {
        name: "npm",
        preset: "npm",
        registry: || setting(Command::new("npm").args(["config", "get", "registry"])),
        install: npm,
    },
    Client {
        name: "cargo",
        preset: "cargo",
        registry: || Ok(None),
        install: cargo,
    },
    Client {
        name: "apt",
        preset: "apt",
        registry: || archive().map(|archive| Some(archive.host)),
        install: apt,
    },
];

/// Runs a command that prints the registry in a client's settings, and returns this registry. Returns `None`
/// if no registry is set. In this case, the command fails or prints no URL.
fn setting(command: &mut Command) -> Result<Option<String>, String> {
    let output = command.output();
    let output = output.map_err(|error| format!("{error}; install the client"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let url = text
        .trim_end_matches('/')
        .trim_end_matches("/simple")
        .to_owned();
    Ok((output.status.success() && url.starts_with("http")).then_some(url))
}

/// Runs a command in `folder`, without the environment variables that can set a registry or a proxy.
fn run(command: &mut Command, folder: &Path) -> Result<(), String> {
    for (name, _) in std::env::vars() {
        let lower = name.to_ascii_lowercase();
        // `pip_cert` stays set, because it contains certificate authorities and not a registry.
        let kept = lower == "pip_cert";
        let named = ["pip_", "npm_", "cargo"]
            .iter()
            .any(|start| lower.starts_with(start));
        let proxy = lower.ends_with("_proxy") || lower == "rustflags";
        if !kept && (named || proxy) && command.get_envs().all(|(set, _)| set != name.as_str()) {
            command.env_remove(name);
        }
    }
    let output = command.current_dir(folder).output();
    let output = output.map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().rev().take(8).collect();
    let tail = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
    Err(format!(
        "{:?}: {}\n{tail}",
        command.get_program(),
        output.status
    ))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(name: &str, from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from.join(name), to.join(name))
        .map(drop)
        .map_err(|error| format!("{}: {error}", from.join(name).display()))
}

fn folders(root: &Path, names: &[&str]) -> Result<(), String> {
    names.iter().try_for_each(|name| {
        std::fs::create_dir_all(root.join(name)).map_err(|error| format!("{name}: {error}"))
    })
}

/// Installs with pip. Its lock file is a list of versions with digests.
fn pip(folder: &Path, packages: Packages<'_>) -> Result<Files, String> {
    let mut pip = Command::new("pip");
    pip.args([
        "download",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]);
    pip.args(["-q", "-d", "files"])
        .env("PIP_CONFIG_FILE", "/dev/null");
    if let Some(url) = packages.foxy {
        pip.args(["--index-url", &format!("{url}/pypi/simple/")]);
    }
    match packages.lock {
        Some(lock) => {
            copy("requirements.txt", lock, folder)?;
            pip.args(["--require-hashes", "-r", "requirements.txt"]);
        }
        None => {
            pip.args(["requests", "flask", "numpy", "pandas"]);
        }
    }
    run(&mut pip, folder)?;
    let files = below(&folder.join("files"), &[])?;
    let mut lock = String::new();
    for (file, digest) in &files {
        let name = file.to_string_lossy();
        let mut parts = name.split('-');
        if let (Some(package), Some(version)) = (parts.next(), parts.next()) {
            let _ = write!(lock, "{package}=={version} --hash=sha256:");
            digest.iter().for_each(|byte| {
                let _ = write!(lock, "{byte:02x}");
            });
            lock.push('\n');
        }
    }
    write(&folder.join("requirements.txt"), &lock)?;
    Ok(files)
}

fn npm(folder: &Path, packages: Packages<'_>) -> Result<Files, String> {
    let project = "{\"name\":\"x\",\"version\":\"1.0.0\",\"dependencies\":\
        {\"express\":\"*\",\"webpack\":\"*\",\"react-dom\":\"*\",\"eslint\":\"*\"}}";
    write(&folder.join("package.json"), project)?;
    let mut npm = Command::new("npm");
    match packages.lock {
        Some(lock) => {
            copy("package-lock.json", lock, folder)?;
            npm.arg("ci");
        }
        None => {
            npm.arg("install");
        }
    }
    npm.args([
        "--cache",
        "cache",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]);
    npm.args(["--no-update-notifier", "--loglevel", "error"]);
    if let Some(url) = packages.foxy {
        npm.args(["--registry", &format!("{url}/npm/")]);
    }
    run(&mut npm, folder)?;
    // npm's own record of the installation contains the registry's address, so it is not compared.
    below(&folder.join("node_modules"), &[".package-lock.json"])
}

fn cargo(folder: &Path, packages: Packages<'_>) -> Result<Files, String> {
    folders(folder, &["src", "home"])?;
    write(&folder.join("src/main.rs"), "fn main() {}")?;
    let project = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
        [dependencies]\ntokio = \"1\"\nserde = \"1\"\nclap = \"4\"\nreqwest = \"0.12\"\n";
    write(&folder.join("Cargo.toml"), project)?;
    if let Some(url) = packages.foxy {
        let settings = format!(
            "[source.crates-io]\nreplace-with = \"foxy\"\n[source.foxy]\nregistry = \"sparse+{url}/cargo/\"\n"
        );
        write(&folder.join("home/config.toml"), &settings)?;
    }
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo
        .args(["fetch", "--quiet"])
        .env("CARGO_HOME", folder.join("home"));
    if let Some(lock) = packages.lock {
        copy("Cargo.lock", lock, folder)?;
        cargo.arg("--locked");
    }
    run(&mut cargo, folder)?;
    // The folder of the files is named after the registry, so only the file name of each path is used.
    let crates = below(&folder.join("home/registry/cache"), &[])?;
    let named = |path: PathBuf| path.file_name().map(PathBuf::from).unwrap_or(path);
    Ok(crates
        .into_iter()
        .map(|(path, digest)| (named(path), digest))
        .collect())
}

/// The first Debian archive that this machine's apt uses.
struct Archive {
    host: String,
    suite: String,
}

fn archive() -> Result<Archive, String> {
    let file = "/etc/apt/sources.list.d/debian.sources";
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|rest| rest.split_whitespace().next());
        word.ok_or_else(|| format!("{file} has no {name}"))
    };
    let uri = field("URIs:")?.trim_end_matches('/');
    let host = uri.strip_suffix("/debian");
    Ok(Archive {
        host: host
            .ok_or_else(|| format!("{uri} does not end in /debian"))?
            .to_owned(),
        suite: field("Suites:")?.to_owned(),
    })
}

/// Installs with apt. apt has no lock file, because the archive has only one version of a package.
fn apt(folder: &Path, packages: Packages<'_>) -> Result<Files, String> {
    let archive = archive()?;
    folders(
        folder,
        &[
            "etc/parts",
            "etc/preferences.d",
            "state/lists/partial",
            "cache/archives/partial",
            "files",
        ],
    )?;
    write(&folder.join("state/status"), "")?;
    let host = packages
        .foxy
        .map_or(archive.host, |url| format!("{url}/apt"));
    let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let sources = format!(
        "deb [signed-by={key}] {host}/debian {} main\n",
        archive.suite
    );
    write(&folder.join("etc/sources.list"), &sources)?;
    // apt reads this file first. It contains the paths of other folders for settings, so apt does not read
    // the system's own settings.
    let settings = format!(
        "Dir \"{root}\";\nDir::Etc \"etc\";\nDir::Etc::parts \"parts\";\nDir::State \"state\";\n\
         Dir::State::status \"{root}/state/status\";\nDir::Cache \"cache\";\n\
         Dir::Bin::methods \"/usr/lib/apt/methods\";\nAPT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n",
        root = folder.display()
    );
    write(&folder.join("apt.conf"), &settings)?;
    let wanted = [
        "libc6",
        "gcc-12",
        "vim",
        "git",
        "perl",
        "openssl",
        "libllvm15",
    ];
    let apt = |args: &[&str], place: &Path| {
        let mut apt = Command::new("apt-get");
        run(
            apt.arg("-q")
                .args(args)
                .env("APT_CONFIG", folder.join("apt.conf")),
            place,
        )
    };
    apt(&["update"], folder)?;
    apt(
        &[&["download"], &wanted[..]].concat(),
        &folder.join("files"),
    )?;
    below(&folder.join("files"), &[])
}
