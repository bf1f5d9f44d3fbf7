//! Finds the programs that tests need, and installs missing programs where possible. Programs that are still
//! missing are reported.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::workspace::target_folder;

/// Each program, and the Debian package that contains it.
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

/// A program that is not in Debian, and the package registry from which it is fetched.
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

/// The programs that are fetched from package registries. Each has its own folder below `clients` in the
/// target folder. The tests look for the programs in these folders.
const FETCHED: [Fetched; 3] = [
    Fetched::Pypi {
        folder: "uv",
        package: "uv==0.13.9",
    },
    Fetched::Npm {
        folder: "npm",
        packages: &["pnpm@12.21.0", "@yarnpkg/cli-dist@4.18.1"],
    },
    // Both generations of yarn have a program with the same name, so they need separate folders.
    Fetched::Npm {
        folder: "yarn-1",
        packages: &["yarn@1.22.22"],
    },
];

/// Ensures that the client programs of the client tests exist. Returns true if all of them exist. Missing
/// programs are printed with the command that installs them. The tests that need these programs report them
/// too.
pub(crate) fn ensure() -> bool {
    // The second call needs programs that the first call installs.
    let installed = install();
    let fetched = fetch_all();
    installed && fetched
}

/// The command `cargo xtask clients`.
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
    // Every program is tried. Each missing program prints its own message.
    let fetched = FETCHED.map(|tool| tool.fetch(&below));
    fetched.iter().all(|fetched| *fetched)
}

impl Fetched {
    /// Fetches the program if this version does not exist yet. Returns true if it exists now.
    fn fetch(&self, below: &Path) -> bool {
        let (folder, packages) = match self {
            Self::Pypi { folder, package } => (folder, *package),
            Self::Npm { folder, packages } => (folder, &*packages.join(" ")),
        };
        let folder = below.join(folder);
        // This file is written last. So if it exists, the program is complete.
        let mark = folder.join("fetched");
        if std::fs::read_to_string(&mark).is_ok_and(|text| text == packages) {
            return true;
        }
        println!("   fetching {packages}");
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = match self {
            Self::Pypi { .. } => {
                let mut pip = Command::new("pip");
                // pip writes only to its own folder, so its advice for root does not apply.
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
        // `go` and `openssl` have a subcommand for their version, and no option.
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

/// Runs apt. Returns false if this is not possible: it needs root and a Debian system.
fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    // With this variable, services of the packages are not started. The tests need only the programs.
    command.env("RUNLEVEL", "1");
    command.stdout(Stdio::null()).stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
