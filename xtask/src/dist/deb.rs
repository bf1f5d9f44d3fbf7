//! The Debian package (`deb(5)`): an `ar` file that contains the version of the format, the control files and
//! the contents.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ar::{Builder, Header};

use super::archive::{Tree, gzip, source_time, xz};
use super::program::Program;
use super::{DistArgs, VERSION, at, contents, source, text};

/// The contact for questions about the package.
const MAINTAINER: &str = "The Foxy project <authors@foxy.invalid>";
/// Scripts that run at installation and removal.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes the package and returns its path.
///
/// # Errors
/// Returned if the program cannot be built, or if a file cannot be read or written.
pub(super) fn write(args: &DistArgs) -> Result<PathBuf, String> {
    let program = Program::to_pack(args)?;
    let version = format!("{VERSION}-{}", args.revision);
    let mut tree = contents::of(&program)?;
    let changes = gzip(changes(&version).as_bytes()).map_err(|error| error.to_string())?;
    tree.file("usr/share/doc/foxy/changelog.Debian.gz", 0o644, changes);
    let control = control(&tree, &version, &program)?;
    let package = package(&control, &tree).map_err(|error| format!("package: {error}"))?;
    let name = format!("foxy_{version}_{}.deb", architecture()?);
    let file = args.folder()?.join(name);
    std::fs::write(&file, package).map_err(|error| at(&file, &error))?;
    println!(
        "   program {} bytes, installed {} KiB",
        program.bytes.len(),
        tree.installed_kib()
    );
    Ok(file)
}

fn package(control: &Tree, contents: &Tree) -> std::io::Result<Vec<u8>> {
    let time = source_time();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.tar(time)?)?),
        ("data.tar.xz", xz(&contents.tar(time)?)?),
    ];
    let mut archive = Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(time);
        archive.append(&header, &bytes[..])?;
    }
    archive.into_inner()
}

fn control(contents: &Tree, version: &str, program: &Program) -> Result<Tree, String> {
    let mut tree = Tree::default();
    let control = text("dist/debian/control")?
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", architecture()?)
        .replace("@INSTALLED_SIZE@", &contents.installed_kib().to_string())
        .replace("@MAINTAINER@", MAINTAINER)
        .replace("@GLIBC@", &program.glibc());
    tree.file("control", 0o644, control);
    let configured = contents
        .files()
        .filter(|(path, _)| path.starts_with("etc/"));
    let conffiles: String = configured.map(|(path, _)| format!("/{path}\n")).collect();
    tree.file("conffiles", 0o644, conffiles);
    for script in SCRIPTS {
        tree.file(script, 0o755, source(&format!("dist/debian/{script}"))?);
    }
    Ok(tree)
}

/// Returns the list of changes in Debian's form. It refers to the project's own list, which has more
/// details.
fn changes(version: &str) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(source_time());
    let date = httpdate::fmt_http_date(at).replace("GMT", "+0000");
    format!(
        "foxy ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {date}\n"
    )
}

/// Debian's name of the architecture for which this program was built.
fn architecture() -> Result<&'static str, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        "riscv64" => Ok("riscv64"),
        other => Err(format!("Debian's name of {other} is not known here")),
    }
}
