//! A disk that a test can fill, break, pull out or slow down: a loop device over a file in a small memory
//! file system.
//!
//! When a `Device` is dropped, all its changes to the system are undone. A `Device` needs root and loop
//! devices.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the control groups that limit the disk access of processes (cgroup v1).
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// A disk that a test can fill, break, pull out or slow down.
#[derive(Debug)]
pub(super) struct Device {
    folder: PathBuf,
    path: String,
    group: Option<PathBuf>,
}

impl Device {
    /// Creates a disk of `mib` MiB in its own memory file system in `folder`, which must exist.
    pub(super) fn new(folder: &Path, mib: u64) -> Result<Self, String> {
        let size = format!("size={}m", mib + 1);
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(folder))?;
        let mut device = Self {
            folder: folder.to_path_buf(),
            path: String::new(),
            group: None,
        };
        device.resize(mib << 20)?;
        let attach = run(Command::new("losetup")
            .args(["-f", "--show"])
            .arg(device.backing()))?;
        attach.trim().clone_into(&mut device.path);
        Ok(device)
    }

    /// Path of the device.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Major and minor number of the device.
    fn numbers(&self) -> Result<String, String> {
        let name = self.path.trim_start_matches("/dev/");
        let file = format!("/sys/block/{name}/dev");
        let numbers = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
        Ok(numbers.trim().to_owned())
    }

    fn backing(&self) -> PathBuf {
        self.folder.join("backing")
    }

    fn resize(&self, len: u64) -> Result<(), String> {
        let path = self.backing();
        let mut open = OpenOptions::new();
        let file = open.create(true).truncate(false).write(true).open(&path);
        file.and_then(|file| file.set_len(len))
            .map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Uses up all free space of the file system that contains the disk's file. The disk then behaves like a
    /// full thinly provisioned disk: writes to new blocks return ENOSPC.
    pub(super) fn fill(&self) -> Result<(), String> {
        let path = self.folder.join("ballast");
        let mut file = std::fs::File::create(&path).map_err(|e| e.to_string())?;
        let block = vec![1; 64 << 10];
        while file.write_all(&block).is_ok() {}
        Ok(())
    }

    /// Removes the disk's contents after the first `mib` MiB. From then on, reads of this part return EIO,
    /// and writes to this part return EIO or ENOSPC.
    pub(super) fn break_behind(&self, mib: u64) -> Result<(), String> {
        self.resize(mib << 20)?;
        self.fill()
    }

    /// Removes the disk: it has no contents and is detached, as if it was pulled out.
    pub(super) fn pull(&self) -> Result<(), String> {
        self.resize(0)?;
        run(Command::new("losetup").args(["-c", &self.path]))?;
        run(Command::new("losetup").args(["-d", &self.path])).map(drop)
    }

    /// From now on, the process reads and writes at most this many bytes per second on the disk.
    pub(super) fn slow_down(&mut self, process: u32, bytes: u64) -> Result<(), String> {
        let group = Path::new(BLKIO).join(format!("foxy-accept-{process}"));
        let say = |file: &str, text: &str| {
            let path = group.join(file);
            std::fs::write(&path, text).map_err(|e| {
                format!(
                    "{}: {e}; needs cgroup v1 with the blkio controller",
                    path.display()
                )
            })
        };
        std::fs::create_dir_all(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        self.group = Some(group.clone());
        let rule = format!("{} {bytes}", self.numbers()?);
        say("blkio.throttle.read_bps_device", &rule)?;
        say("blkio.throttle.write_bps_device", &rule)?;
        say("cgroup.procs", &process.to_string())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            let _ = std::fs::remove_dir(group);
        }
        if !self.path.is_empty() {
            let _ = run(Command::new("losetup").args(["-d", &self.path]));
        }
        // The unmount is lazy (`-l`), because the loop device may still use the file for a moment.
        let _ = run(Command::new("umount").arg("-l").arg(&self.folder));
    }
}

/// Reason why devices cannot be created on this machine; `None` if devices can be created.
pub(super) fn missing() -> Option<String> {
    let id = run(Command::new("id").arg("-u")).unwrap_or_default();
    if id.trim() != "0" {
        return Some("needs root, for loop devices: run it with sudo".to_owned());
    }
    run(Command::new("losetup").arg("-f"))
        .err()
        .map(|why| format!("needs loop devices: {why}"))
}

fn run(command: &mut Command) -> Result<String, String> {
    let done = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{command:?}: {}", said.trim()))
}
