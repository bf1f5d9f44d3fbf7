//! The programs that tests drive: found, or installed where that is possible, or named.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::workspace::target_folder;

/// Program and Debian package.
const TOOLS: [(&str, &str); 17] = [
    ("curl", "curl"),
    ("git", "git"),
    ("chromium", "chromium"),
    ("promtool", "prometheus"),
    ("cc", "gcc"),
    ("ccache", "ccache"),
    ("skopeo", "skopeo"),
    ("podman", "podman"),
    ("containerd", "containerd"),
    ("squid", "squid"),
    ("openssl", "openssl"),
    ("javac", "default-jdk-headless"),
    ("go", "golang-go"),
    ("mvn", "maven"),
    ("gpg", "gpg"),
    ("pip", "python3-pip"),
    ("npm", "npm"),
];

/// A program that Debian does not have, and the registry that has it.
enum Fetched {
    Pypi {
        folder: &'static str,
        package: &'static str,
    },
    Npm {
        folder: &'static str,
        packages: &'static [&'static str],
    },
}

/// In folders of their own below `clients` in the target folder. Their tests name the same folders.
const FETCHED: [Fetched; 3] = [
    Fetched::Pypi {
        folder: "uv",
        package: "uv==0.13.9",
    },
    Fetched::Npm {
        folder: "npm",
        packages: &["pnpm@12.21.0", "@yarnpkg/cli-dist@4.18.1"],
    },
    // Both generations have a program of the same name.
    Fetched::Npm {
        folder: "yarn-1",
        packages: &["yarn@1.22.22"],
    },
];

/// Makes sure that the clients of the client tests are there. Returns whether all are. Missing
/// clients are named with the command that gets them; their tests name them again.
pub(crate) fn ensure() -> bool {
    // The second half needs programs of the first.
    let installed = install();
    let fetched = fetch_all();
    installed && fetched
}

/// `cargo xtask clients`.
pub(crate) fn clients() -> Outcome {
    let mut outcome = Outcome::default();
    outcome.note(match ensure() {
        true => Ok(()),
        false => Err("some clients are missing; see above".to_owned()),
    });
    outcome
}

fn install() -> bool {
    let missing = missing();
    if missing.is_empty() {
        return true;
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    println!("   installing {}", packages.join(", "));
    let installed = apt(&["update", "-q"])
        && apt(&[
            &["install", "-y", "-q", "--no-install-recommends"],
            &packages[..],
        ]
        .concat());
    let missing = if installed { self::missing() } else { missing };
    for (program, package) in &missing {
        println!(
            "   {program} is missing and cannot be installed from here; its tests are not run."
        );
        println!("   Get it with: apt-get install {package}");
    }
    missing.is_empty()
}

fn fetch_all() -> bool {
    let Ok(target) = target_folder() else {
        return false;
    };
    let below = target.join("clients");
    // Each is tried: one that is missing says so for itself.
    let fetched = FETCHED.map(|tool| tool.fetch(&below));
    fetched.iter().all(|fetched| *fetched)
}

impl Fetched {
    /// Fetches it if this version is not there. Returns whether it is there now.
    fn fetch(&self, below: &Path) -> bool {
        let (folder, packages) = match self {
            Self::Pypi { folder, package } => (folder, *package),
            Self::Npm { folder, packages } => (folder, &*packages.join(" ")),
        };
        let folder = below.join(folder);
        // Written when everything else is.
        let mark = folder.join("fetched");
        if std::fs::read_to_string(&mark).is_ok_and(|text| text == packages) {
            return true;
        }
        println!("   fetching {packages}");
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = match self {
            Self::Pypi { .. } => {
                let mut pip = Command::new("pip");
                // It writes to a folder of its own: advice for root does not apply.
                pip.env("PIP_ROOT_USER_ACTION", "ignore");
                pip.args(["install", "-q", "--no-deps", "--target"]);
                pip
            }
            Self::Npm { .. } => {
                let mut npm = Command::new("npm");
                npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
                npm
            }
        };
        command.arg(&folder).args(packages.split(' '));
        let done = command.stdin(Stdio::null()).status();
        let done = done.is_ok_and(|status| status.success());
        if !done || std::fs::write(&mark, packages).is_err() {
            println!("   {packages} cannot be fetched; its tests are not run.");
            println!("   Get it with: cargo xtask clients");
            return false;
        }
        true
    }
}

fn missing() -> Vec<(&'static str, &'static str)> {
    let present = |program: &str| {
        let mut command = Command::new(program);
        // Programs that know no option for it.
        command
            .arg(match program {
                "go" | "openssl" => "version",
                _ => "--version",
            })
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    TOOLS
        .into_iter()
        .filter(|(program, _)| !present(program))
        .collect()
}

/// Needs root, and a Debian; anything else is a `false`.
fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    // Services stay off: the tests want programs alone.
    command.env("RUNLEVEL", "1");
    command.stdout(Stdio::null()).stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
