//! A slow drive: a loop device with its own file system. The kernel limits the commands and bytes per second
//! of this device to the rates of a disk from the year 2000.
//!
//! The limit is set for the root control group. So it applies to the reads and writes of a proxy, and also to
//! pages that the kernel writes back for the proxy. When the [`Drive`] is dropped, the limit is removed and
//! the drive is unmounted. The watcher (see `host.rs`) does the same at the end of the run, for the case that
//! the run was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle";
/// Name of the mount point in the run's scratch folder. The watcher's script in `host.rs` contains the same
/// name.
pub(super) const MOUNT: &str = "drive";
/// Name of the file that contains the device's number for the watcher.
pub(super) const NUMBER: &str = "drive.number";
/// Commands per second of the Seagate ST318203, the disk of the Foxy paper. A command takes 8.2 ms: a seek
/// takes 5.2 ms, and half a rotation takes 3 ms.
const COMMANDS: u64 = 120;
/// Bytes per second of the disk's middle tracks.
const BYTES: u64 = 20_000_000;

/// The mounted drive. At first it is not slow.
pub(super) struct Drive {
    /// Root folder of the drive.
    pub(super) folder: PathBuf,
    number: String,
}

impl Drive {
    /// Creates a drive of `gib` GiB in the scratch folder. The drive's file is sparse: it takes only the
    /// space that is written.
    pub(super) fn new(scratch: &Path, gib: u64) -> Result<Self, String> {
        let (folder, image) = (scratch.join(MOUNT), scratch.join("drive.image"));
        let problem = |e: std::io::Error| format!("{}: {e}", image.display());
        fs::create_dir_all(&folder).map_err(problem)?;
        let file = fs::File::create(&image).map_err(problem)?;
        file.set_len(gib << 30).map_err(problem)?;
        tell(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        tell(
            Command::new("mount")
                .args(["-o", "loop,noatime"])
                .args([&image, &folder]),
        )?;
        let number = tell(
            Command::new("findmnt")
                .args(["-n", "-o", "MAJ:MIN"])
                .arg(&folder),
        )?;
        let drive = Self {
            folder,
            number: number.trim().to_owned(),
        };
        fs::write(scratch.join(NUMBER), &drive.number).map_err(problem)?;
        Ok(drive)
    }

    /// From now on, the drive is as slow as the disk of the paper.
    pub(super) fn slow_down(&self) -> Result<(), String> {
        self.limit(COMMANDS, BYTES)
    }

    fn limit(&self, commands: u64, bytes: u64) -> Result<(), String> {
        for (what, limit) in [("iops", commands), ("bps", bytes)] {
            for side in ["read", "write"] {
                let path = format!("{THROTTLE}.{side}_{what}_device");
                let rule = format!("{} {limit}", self.number);
                fs::write(&path, rule)
                    .map_err(|e| format!("{path}: {e}; needed: the blkio group of version 1"))?;
            }
        }
        Ok(())
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        // Zero removes the limit.
        let _ = self.limit(0, 0);
        let _ = tell(Command::new("umount").arg("-l").arg(&self.folder));
        if let Some(scratch) = self.folder.parent() {
            let _ = fs::remove_file(scratch.join("drive.image"));
        }
    }
}

fn tell(command: &mut Command) -> Result<String, String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{shown}: {text}; needed: root and loop devices"))
}
