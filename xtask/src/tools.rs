//! The programs that tests drive: found, or installed where that is possible, or named.

use std::process::{Command, Stdio};

/// Program and Debian package.
const TOOLS: [(&str, &str); 15] = [
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
];

/// Makes sure that the clients of the client tests are there. Returns whether all are; what is
/// missing is named with the command that gets it, and its tests say so again.
pub(crate) fn ensure() -> bool {
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
