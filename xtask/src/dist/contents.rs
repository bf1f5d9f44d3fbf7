//! The files of the Debian package, and the path of each file.

use super::archive::{Tree, gzip};
use super::program::Program;
use super::{manuals, source, text, third_party};

/// Files of the workspace that are packed unchanged, and their paths in the package.
const FILES: &[(&str, &str)] = &[
    ("dist/foxy.toml", "etc/foxy/foxy.toml"),
    ("dist/logrotate/foxy", "etc/logrotate.d/foxy"),
    (
        "dist/systemd/foxy.service",
        "usr/lib/systemd/system/foxy.service",
    ),
    (
        "dist/systemd/foxy.socket",
        "usr/lib/systemd/system/foxy.socket",
    ),
    ("dist/systemd/sysusers.conf", "usr/lib/sysusers.d/foxy.conf"),
    ("dist/systemd/tmpfiles.conf", "usr/lib/tmpfiles.d/foxy.conf"),
    (
        "dist/prometheus/alerts.yaml",
        "usr/share/foxy/prometheus/alerts.yaml",
    ),
    ("dist/grafana/foxy.json", "usr/share/foxy/grafana/foxy.json"),
];

/// Files of the workspace that are packed in compressed form, and their paths in the package.
const DOCUMENTS: &[(&str, &str)] = &[
    ("docs/config.md", "config.md.gz"),
    ("README.md", "README.md.gz"),
    ("CHANGELOG.md", "CHANGELOG.md.gz"),
];

/// Returns the files that the package installs, without Debian's list of changes.
pub(super) fn of(program: &Program) -> Result<Tree, String> {
    let mut tree = Tree::default();
    tree.file("usr/bin/foxy", 0o755, program.bytes.clone());
    for (from, to) in FILES {
        tree.file(to, 0o644, source(from)?);
    }
    let mut document = |name: &str, bytes: &[u8]| {
        let packed = gzip(bytes).map_err(|error| format!("{name}: {error}"))?;
        tree.file(&format!("usr/share/doc/foxy/{name}"), 0o644, packed);
        Ok::<_, String>(())
    };
    for (from, name) in DOCUMENTS {
        document(name, &source(from)?)?;
    }
    document("third-party.txt.gz", third_party::notices()?.as_bytes())?;
    tree.file("usr/share/doc/foxy/copyright", 0o644, copyright()?);
    manuals::add(&mut tree)?;
    Ok(tree)
}

/// The licences of Foxy itself, in Debian's form.
fn copyright() -> Result<String, String> {
    let indented = |line: &str| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    };
    let mit: String = text("LICENSE-MIT")?.lines().map(indented).collect();
    Ok(text("dist/debian/copyright")?.replace("@MIT@", mit.trim_end()))
}
