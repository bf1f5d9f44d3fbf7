//! Tests the Debian package in a new Debian system, from the installation to the complete removal (purge).
//! Also tests the container image in a folder with only the image's files. The test takes one or two minutes
//! and needs root, so it is not part of `check`.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use super::program::Program;
use super::{DistArgs, at, deb, image, read};
use crate::report::{Outcome, Report};
use crate::workspace::root;

/// Script with the steps of a new user.
const NEWCOMER: &str = include_str!("newcomer.sh");
/// Script in which the first connection starts Foxy.
const ACTIVATED: &str = include_str!("activated.sh");
/// Checks of the image's program on a system that refuses io_uring.
const IN_IMAGE: &str = include_str!("in_image.sh");
/// Packages that the new system gets in addition to the smallest set.
const PACKAGES: &str = "adduser,ca-certificates,curl,init-system-helpers,iproute2,logrotate,procps";
/// Programs that this machine must have for the test, and the Debian packages that contain them.
const TOOLS: &[(&str, &str)] = &[
    ("mmdebstrap", "mmdebstrap"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("systemd-analyze", "systemd"),
    ("systemd-socket-activate", "systemd"),
    ("perl", "perl-base"),
    ("curl", "curl"),
];

/// Makes package and image, and tests both.
pub(super) fn run(report: &mut Report, args: &DistArgs) {
    let mut go_on = true;
    let mut step = |name: &'static str, work: &dyn Fn() -> Result<(), String>| {
        if go_on {
            report.step(name, || {
                let result = work();
                go_on = result.is_ok();
                Outcome::single(result)
            });
        }
    };
    step("tools", &tools);
    let Ok(folder) = tempfile::tempdir() else {
        return step("temporary folder", &|| Err("none can be made".to_owned()));
    };
    let root = folder.path().join("debian");
    step("a new Debian system", &|| system(args, &root));
    step("two revisions", &|| revisions(args, &root));
    step("unit files", &|| units(&root));
    step("alert rules", &alerts);
    step("installation to purge", &|| newcomer(&root));
    let place = folder.path().join("activated");
    step("socket activation", &|| activated(args, &place));
    let image = folder.path().join("image");
    step("container image", &|| container(args, &image));
}

fn tools() -> Result<(), String> {
    let own = std::fs::metadata("/proc/self").map(|own| own.uid());
    if own.map_err(|error| format!("/proc: {error}"))? != 0 {
        return Err("this needs root: it makes a new system and enters it".to_owned());
    }
    let is_missing = |(tool, _): &&(&str, &str)| {
        let mut which = Command::new("sh");
        which.args(["-c", "command -v \"$0\" >/dev/null", tool]);
        !which.status().is_ok_and(|status| status.success())
    };
    let missing: Vec<_> = TOOLS.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(tool, _)| *tool).collect();
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    Err(format!(
        "missing: {}; on Debian: apt-get install {}",
        names.join(", "),
        packages.join(" ")
    ))
}

/// Creates a new Debian system of the same release as this machine. The system is kept as an archive for the
/// next run.
fn system(args: &DistArgs, root: &Path) -> Result<(), String> {
    let archive = args.folder()?.join("debian.tar");
    if !archive.is_file() {
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let name = release
            .lines()
            .find_map(|l| l.strip_prefix("VERSION_CODENAME="));
        let mut make = Command::new("mmdebstrap");
        make.args(["--variant=minbase", "--include", PACKAGES]);
        make.arg(name.unwrap_or("stable")).arg(&archive);
        done(&mut make, "Debian's packages must be reachable")?;
    }
    make_folder(root)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-C").arg(root).arg("-xf").arg(&archive);
    done(&mut unpack, "remove the archive to have it made again")
}

/// Writes two revisions of the package to the root of the new system. The first revision is made twice, and
/// both files must be equal.
fn revisions(args: &DistArgs, root: &Path) -> Result<(), String> {
    for revision in [1, 2] {
        let args = DistArgs {
            revision,
            ..args.clone()
        };
        let file = deb::write(&args)?;
        let bytes = read(&file)?;
        if revision == 1 && bytes != read(&deb::write(&args)?)? {
            return Err("two runs made packages of different bytes".to_owned());
        }
        let inside = root.join(format!("foxy-{revision}.deb"));
        std::fs::write(&inside, bytes).map_err(|error| at(&inside, &error))?;
    }
    Ok(())
}

/// Checks the units with `systemd-analyze`. The programs that the units start need not exist.
fn units(root: &Path) -> Result<(), String> {
    let folder = root.join("tmp/units");
    make_folder(&folder)?;
    let mut files = Vec::new();
    for name in ["foxy.service", "foxy.socket"] {
        let text = super::text(&format!("dist/systemd/{name}"))?;
        let file = folder.join(name);
        let text = text.replace("/usr/bin/foxy ", "/bin/true ");
        std::fs::write(&file, text).map_err(|error| at(&file, &error))?;
        files.push(file);
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).args(&files);
    let output = verify
        .output()
        .map_err(|error| format!("systemd-analyze: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let about: Vec<_> = said.lines().filter(|line| line.contains("foxy")).collect();
    if !about.is_empty() {
        return Err(about.join("\n"));
    }
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold=25"]);
    let output = security.arg(&files[0]).output();
    let output = output.map_err(|error| format!("systemd-analyze: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let exposure = text.lines().rfind(|line| line.contains("exposure level"));
    println!(
        "   {}",
        exposure
            .unwrap_or("no exposure level")
            .trim_start_matches(['→', ' '])
    );
    match output.status.success() {
        true => Ok(()),
        false => Err("the service is more exposed than 2.5 of 10".to_owned()),
    }
}

/// Checks that exactly the expected alerts fire in the incidents of `alerts_test.yaml`.
fn alerts() -> Result<(), String> {
    let mut promtool = Command::new("promtool");
    promtool.args(["test", "rules"]);
    promtool.arg(root().join("dist/prometheus/alerts_test.yaml"));
    match promtool.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("promtool: {status}")),
        Err(error) => {
            println!("   not run: promtool: {error}; on Debian: apt-get install prometheus");
            Ok(())
        }
    }
}

/// Runs the script of a new user inside the new system, with its own network and its own processes.
fn newcomer(root: &Path) -> Result<(), String> {
    let script = root.join("try");
    write_script(&script, NEWCOMER)?;
    let mut inside = apart();
    inside.arg("mount -t proc proc \"$0/proc\"; mount --rbind /dev \"$0/dev\"; exec chroot \"$0\" /try /foxy-1.deb /foxy-2.deb");
    done(inside.arg(root), "the lines above say where it failed")
}

/// Tests Foxy with a socket that `systemd-socket-activate` opens, in a separate network.
fn activated(args: &DistArgs, folder: &Path) -> Result<(), String> {
    make_folder(folder)?;
    let script = folder.join("try");
    write_script(&script, ACTIVATED)?;
    let mut inside = apart();
    inside.arg("exec \"$0\" \"$1\" \"$2\"");
    inside.arg(&script).arg(Program::of(args)?.path).arg(folder);
    done(&mut inside, "the lines above say where it failed")
}

/// Unpacks the image's files into a folder, and runs its program as the image's user, in its own network
/// and without io_uring.
fn container(args: &DistArgs, folder: &Path) -> Result<(), String> {
    let file = image::write(args)?;
    super::said(&file)?;
    make_folder(folder)?;
    let script = folder.join("try");
    write_script(&script, IN_IMAGE)?;
    let mut inside = apart();
    inside.arg("exec \"$0\" \"$1\" \"$2\"");
    inside.arg(&script).arg(&file).arg(folder.join("root"));
    done(&mut inside, "the lines above say where it failed")
}

/// A command that starts a shell in its own namespaces (mounts, network, processes). The caller adds the
/// commands of the shell.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["sh", "-ec"]);
    command
}

fn write_script(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|error| at(path, &error))
}

fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| at(path, &error))
}

/// Runs a command and shows its output.
fn done(command: &mut Command, advice: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}; {advice}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
