//! Calls to the operating system about this process, and helpers for files and devices.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Resident memory of this process in bytes; 0 if the system does not report it.
pub(super) fn resident() -> u64 {
    status_line("/proc/self/status", "VmRSS:") * 1024
}

/// Number of context switches of this thread so far.
pub(super) fn context_switches() -> u64 {
    let at = "/proc/thread-self/status";
    status_line(at, "voluntary_ctxt_switches:") + status_line(at, "nonvoluntary_ctxt_switches:")
}

/// CPU time of all threads of this process so far, in seconds.
pub(super) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Number of bytes that this process has written to devices so far; 0 if the system does not report it.
pub(super) fn written_bytes() -> u64 {
    status_line("/proc/self/io", "write_bytes:")
}

fn status_line(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|v| v.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// True if this process may mount file systems and drop the page cache.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Drops the page cache, if permitted. Returns true if it was dropped.
pub(super) fn drop_caches() -> bool {
    let _ = run("sync", &[]);
    std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Runs a program to its end and returns its output.
///
/// # Errors
/// Returned if the program failed. The error contains its standard error.
pub(super) fn run(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", said.trim())))
}

/// A file that is deleted when this value is dropped.
#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// Describes the file `name` in `folder`. Deletes an existing file of this name.
    pub(super) fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A loop device over a file.
#[derive(Debug)]
pub struct Loop {
    pub(super) device: PathBuf,
    _file: Scratch,
}

impl Loop {
    /// Creates a device with blocks of `block` bytes over a new file of `bytes` bytes.
    ///
    /// # Errors
    /// Returned if the process is not root, or if the system has no free loop device.
    pub fn new(folder: &Path, name: &str, bytes: u64, block: u32) -> io::Result<Self> {
        if !is_root() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a loop device needs root; run it as root to have this result",
            ));
        }
        let file = Scratch::new(folder, name);
        let path = file.0.display().to_string();
        run("fallocate", &["-l", &bytes.to_string(), &path])?;
        let block = block.to_string();
        let device = run(
            "losetup",
            &["--find", "--show", "--direct-io=on", "-b", &block, &path],
        )?;
        Ok(Self {
            device: device.into(),
            _file: file,
        })
    }

    /// Path of the device.
    #[must_use]
    pub fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &["-d", &self.device.display().to_string()]);
    }
}

/// A file system on a loop device.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) at: PathBuf,
    device: Loop,
}

impl Mounted {
    /// Creates a file system of `kind` (`ext4`, `xfs`) with `bytes` bytes.
    ///
    /// # Errors
    /// Returned if the process is not root, or if the tools of the file system are not installed.
    pub(super) fn new(folder: &Path, kind: &str, bytes: u64) -> io::Result<Self> {
        let device = Loop::new(folder, &format!("bench-{kind}.img"), bytes, 512)?;
        let name = device.device.display().to_string();
        run(
            &format!("mkfs.{kind}"),
            &[if kind == "ext4" { "-Fq" } else { "-fq" }, &name],
        )?;
        let at = folder.join(format!("bench-{kind}"));
        std::fs::create_dir_all(&at)?;
        run(
            "mount",
            &["-o", "noatime", &name, &at.display().to_string()],
        )?;
        Ok(Self { at, device })
    }

    /// The device that contains the file system.
    pub(super) fn device(&self) -> &Path {
        &self.device.device
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.at.display().to_string()]);
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// Keeps this process, including its page cache, within a memory limit (cgroup v1, root only).
#[derive(Debug)]
pub(super) struct MemoryLimit {
    folder: PathBuf,
    before: PathBuf,
}

impl MemoryLimit {
    /// Limits the memory of this process to `bytes` until the returned value is dropped; `None` if the system
    /// does not support such a limit.
    pub(super) fn new(bytes: u64) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/memory");
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = groups.lines().find_map(|l| l.split_once(":memory:/"))?.1;
        let folder = root.join(format!("foxy-bench-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let limit = Self {
            folder,
            before: root.join(own).join("cgroup.procs"),
        };
        let file = limit.folder.join("memory.limit_in_bytes");
        std::fs::write(file, bytes.to_string()).ok()?;
        let joined = std::fs::write(limit.folder.join("cgroup.procs"), "0");
        joined.ok().map(|()| limit)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.before, "0");
        let _ = std::fs::remove_dir(&self.folder);
    }
}
