//! apt, go and Maven: an archive with one package for each client.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::packages::{hex, tar, zip};
use super::settings::{set_up, undo};
use super::{alone, file, three_times};
use crate::clients::process::{Foxy, run, tool};

/// A text that each package contains.
const MARK: &str = "out of an archive";

const CONTROL: &str = "Package: foxydemo\nVersion: 1.0\nArchitecture: all\n\
    Maintainer: Foxy <foxy@example.com>\nDescription: a package for a test\n";

/// Returns a Debian package: an `ar` archive with three members.
fn deb() -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar(&[("./control", CONTROL)])),
        ("data.tar.gz", tar(&[("./usr/share/foxydemo", MARK)])),
    ];
    for (name, bytes) in members {
        let size = bytes.len();
        let head = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 0, 100_644
        );
        out.extend(head.into_bytes());
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

fn package_list() -> String {
    let deb = deb();
    let (size, digest) = (deb.len(), hex(&deb));
    format!(
        "{CONTROL}Filename: pool/main/f/foxydemo_1.0_all.deb\nSize: {size}\nSHA256: {digest}\n\n"
    )
}

/// Returns apt's release document, which names the package lists.
fn release() -> String {
    let list = package_list();
    format!(
        "Origin: Foxy\nSuite: stable\nCodename: stable\nDate: Wed, 01 Jan 2020 12:00:00 UTC\n\
         Architectures: amd64\nComponents: main\nAcquire-By-Hash: yes\nSHA256:\n {} {} main/binary-amd64/Packages\n",
        hex(list.as_bytes()),
        list.len()
    )
}

/// The release document with its signature, and the key.
struct Signed {
    release: Vec<u8>,
    key: Vec<u8>,
}

/// Returns the release document with its signature, which is made once; `None` without gpg.
fn signed() -> Option<&'static Signed> {
    static SIGNED: OnceLock<Option<Signed>> = OnceLock::new();
    let made = SIGNED.get_or_init(|| {
        tool("gpg", "gpg")?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Release"), release()).unwrap();
        let gpg = |args: &[&str]| {
            let mut gpg = alone(Command::new("gpg"), folder.path());
            gpg.env("GNUPGHOME", folder.path()).arg("--batch");
            run(gpg.args(args)).stdout
        };
        let nothing = ["--passphrase", ""];
        let make = ["--quick-generate-key", "Foxy <foxy@example.com>", "ed25519"];
        gpg(&[&nothing[..], &make].concat());
        let signed = Signed {
            release: gpg(&["--clearsign", "--output", "-", "Release"]),
            key: gpg(&["--armor", "--export"]),
        };
        let mut end = alone(Command::new("gpgconf"), folder.path());
        run(end.env("GNUPGHOME", folder.path()).args(["--kill", "all"]));
        Some(signed)
    });
    made.as_ref()
}

const MODULE: &str = "module foxy.test/demo\n\ngo 1.19\n";

fn module() -> Vec<u8> {
    let source = format!("package demo\n\nconst Mark = \"{MARK}\"\n");
    zip(&[
        ("foxy.test/demo@v1.0.0/go.mod", MODULE),
        ("foxy.test/demo@v1.0.0/demo.go", &source),
    ])
}

fn jar() -> Vec<u8> {
    zip(&[
        ("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n"),
        ("mark", MARK),
    ])
}

fn pom(group: &str, name: &str, version: &str, packaging: &str) -> String {
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{name}</artifactId>\
         <version>{version}</version><packaging>{packaging}</packaging></project>"
    )
}

/// Returns media type and body for a path.
pub(super) fn answer(path: &str) -> Option<(&'static str, Vec<u8>)> {
    let plain = "text/plain";
    let list = format!(
        "/archive/debian/dists/stable/main/binary-amd64/by-hash/SHA256/{}",
        hex(package_list().as_bytes())
    );
    Some(match path {
        "/archive/debian/dists/stable/InRelease" => (plain, signed()?.release.clone()),
        "/archive/debian/dists/stable/main/binary-amd64/Packages" => {
            (plain, package_list().into_bytes())
        }
        path if path == list => (plain, package_list().into_bytes()),
        "/archive/debian/pool/main/f/foxydemo_1.0_all.deb" => ("application/octet-stream", deb()),
        "/modules/foxy.test/demo/@v/list" => (plain, b"v1.0.0\n".to_vec()),
        "/modules/foxy.test/demo/@v/v1.0.0.info" => (
            "application/json",
            b"{\"Version\":\"v1.0.0\",\"Time\":\"2020-01-01T00:00:00Z\"}".to_vec(),
        ),
        "/modules/foxy.test/demo/@v/v1.0.0.mod" => (plain, MODULE.into()),
        "/modules/foxy.test/demo/@v/v1.0.0.zip" => ("application/zip", module()),
        "/maven2/foxy/test/parent/maven-metadata.xml" => (
            "text/xml",
            b"<metadata><groupId>foxy.test</groupId><artifactId>parent</artifactId><versioning>\
              <versions><version>1.0</version></versions></versioning></metadata>"
                .to_vec(),
        ),
        "/maven2/foxy/test/parent/1.0/parent-1.0.pom" => {
            ("text/xml", pom("foxy.test", "parent", "1.0", "pom").into())
        }
        "/maven2/foxy/test/demo/1.0/demo-1.0.pom" => {
            ("text/xml", pom("foxy.test", "demo", "1.0", "jar").into())
        }
        "/maven2/foxy/test/demo/1.0/demo-1.0.jar" => ("application/java-archive", jar()),
        // Maven adds plexus-utils to the dependencies of every extension.
        "/maven2/org/codehaus/plexus/plexus-utils/1.1/plexus-utils-1.1.jar" => {
            ("application/java-archive", jar())
        }
        "/maven2/org/codehaus/plexus/plexus-utils/1.1/plexus-utils-1.1.pom" => (
            "text/xml",
            pom("org.codehaus.plexus", "plexus-utils", "1.1", "jar").into(),
        ),
        _ => return None,
    })
}

#[test]
fn apt() {
    installs_by_apt("yes");
}

/// In this test, apt does not request package lists by their hash. So all versions of a list have the same
/// URL.
#[test]
fn apt_without_names_by_hash() {
    installs_by_apt("no");
}

fn installs_by_apt(by_hash: &str) {
    let (Some(_), Some(signed)) = (tool("apt-get", "apt"), signed()) else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        for name in [
            "etc/parts",
            "etc/preferences.d",
            "state/lists/partial",
            "cache/archives/partial",
        ] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("state/status"), "").unwrap();
        std::fs::write(folder.join("key.asc"), &signed.key).unwrap();
        let key = folder.join("key.asc");
        let sources = format!(
            "deb [signed-by={}] {}/apt/debian stable main\n",
            key.display(),
            foxy.url()
        );
        std::fs::write(folder.join("etc/sources.list"), sources).unwrap();
        // apt reads this file first. The file sets the folders of all other settings, so apt reads none of
        // the system's own settings.
        let settings = format!(
            "Dir \"{root}\";\nDir::Etc \"etc\";\nDir::Etc::parts \"parts\";\nDir::State \"state\";\n\
             Dir::State::status \"{root}/state/status\";\nDir::Cache \"cache\";\n\
             Dir::Bin::methods \"/usr/lib/apt/methods\";\nAPT::Architecture \"amd64\";\n\
             APT::Architectures \"amd64\";\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n\
             Acquire::Retries \"0\";\nAcquire::By-Hash \"{by_hash}\";\n",
            root = folder.display()
        );
        std::fs::write(folder.join("apt.conf"), settings).unwrap();
        for args in [&["update"][..], &["download", "foxydemo"]] {
            let mut apt = alone(Command::new("apt-get"), folder);
            run(apt.env("APT_CONFIG", folder.join("apt.conf")).args(args));
        }
        file(folder, ".deb")
    };
    three_times(install, |_| deb());
}

#[test]
fn go() {
    let Some(_) = tool("go", "golang-go") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        std::fs::write(folder.join("go.mod"), "module x\n\ngo 1.19\n").unwrap();
        let mut go = alone(Command::new("go"), folder);
        set_up(foxy, "go", folder, &[]);
        for (name, value) in [
            // No checksum database contains the test's module, so go must not look for it there.
            ("GOSUMDB", "off".to_owned()),
            ("GOFLAGS", "-modcacherw".to_owned()),
            ("GOPATH", folder.join("path").display().to_string()),
            ("GOCACHE", folder.join("cache").display().to_string()),
        ] {
            go.env(name, value);
        }
        for name in ["GOENV", "GOPROXY", "GONOPROXY", "GOPRIVATE", "GOMODCACHE"] {
            go.env_remove(name);
        }
        run(go.args(["get", "foxy.test/demo@latest"]));
        undo(foxy, "go", folder, &[]);
        file(&folder.join("path"), ".zip")
    };
    three_times(install, |_| module());
}

/// The Maven project in this test names its parent project by a version range, and has one extension. Maven
/// resolves both itself, without a plugin.
#[test]
fn maven() {
    let Some(_) = tool("mvn", "maven") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        let project = "<project><modelVersion>4.0.0</modelVersion><parent><groupId>foxy.test</groupId>\
            <artifactId>parent</artifactId><version>[1.0,2.0)</version><relativePath/></parent><groupId>x</groupId>\
            <artifactId>x</artifactId><version>1</version><packaging>pom</packaging><build><extensions><extension>\
            <groupId>foxy.test</groupId><artifactId>demo</artifactId><version>1.0</version></extension></extensions></build></project>";
        std::fs::write(folder.join("pom.xml"), project).unwrap();
        set_up(foxy, "maven", folder, &[]);
        let repository = folder.join("repository");
        let mut mvn = alone(Command::new("mvn"), folder);
        mvn.env("MAVEN_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .env("MAVEN_SKIP_RC", "1")
            .arg(format!("-Dmaven.repo.local={}", repository.display()));
        // Java does not take the home folder from the environment, so the path of the settings file is an
        // argument.
        let settings = ".m2/settings.xml";
        run(mvn.args(["-B", "-q", "-s", settings, "-gs", settings, "validate"]));
        undo(foxy, "maven", folder, &[]);
        file(&repository, "demo-1.0.jar")
    };
    three_times(install, |_| jar());
}
