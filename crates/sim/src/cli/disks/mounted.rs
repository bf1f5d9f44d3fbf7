//! File systems in image files: created, attached to a loop device, mounted, and removed again.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::RunError;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FsName {
    Ext4,
    Xfs,
}

impl FsName {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// A file system in an image file; unmounted and removed when dropped.
pub(super) struct Mounted {
    image: PathBuf,
    /// The loop device; empty if there is no loop device yet.
    device: String,
    pub(super) point: PathBuf,
}

impl Mounted {
    pub(super) fn new(fs: FsName, dir: &Path, bytes: u64) -> Result<Self, RunError> {
        let name = format!("foxy-disks-{}-{}", fs.name(), std::process::id());
        let mut mounted = Self {
            device: String::new(),
            image: dir.join(format!("{name}.img")),
            point: dir.join(&name),
        };
        let output = |path: &Path, source| RunError::Output {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir(&mounted.point).map_err(|e| output(&mounted.point, e))?;
        let file = std::fs::File::create(&mounted.image).map_err(|e| output(&mounted.image, e))?;
        // `mkfs.xfs` refuses devices smaller than 300 MB.
        let bytes = bytes.max(512 << 20);
        file.set_len(bytes).map_err(|e| output(&mounted.image, e))?;
        let make = format!("mkfs.{}", fs.name());
        call(Command::new(make).arg("-q").arg(&mounted.image))?;
        // With direct I/O, the loop device bypasses the page cache of the file system that contains the
        // image. Otherwise the runs would measure that page cache instead of the disk.
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show", "--direct-io=on"]);
        mounted.device = call(attach.arg(&mounted.image))?.trim().to_owned();
        let mut mount = Command::new("mount");
        call(mount.arg(&mounted.device).arg(&mounted.point))?;
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // If creation failed, nothing is mounted, and the error of `umount` does not matter.
        let _ = Command::new("umount").arg(&self.point).output();
        if !self.device.is_empty() {
            let _ = Command::new("losetup").args(["-d", &self.device]).output();
        }
        let _ = std::fs::remove_dir(&self.point);
        let _ = std::fs::remove_file(&self.image);
    }
}

/// Runs a command of the system and returns its output.
fn call(command: &mut Command) -> Result<String, RunError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| {
        RunError::Config(format!(
            "`{program}` failed: {why}; making and mounting file systems takes root and the tools \
             of that file system (e2fsprogs, xfsprogs). Without them make and mount one yourself \
             and give its folder to `foxy sim sweep --dir`"
        ))
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(
        text.lines().next().unwrap_or("no message").to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_made_is_said_with_the_way_round_it() {
        let error = call(&mut Command::new("mkfs.none-such"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mkfs.none-such") && error.contains("--dir"),
            "{error}"
        );
        let error = call(&mut Command::new("false")).unwrap_err().to_string();
        assert!(error.contains("root"), "{error}");
    }
}
