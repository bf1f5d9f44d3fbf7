//! Limits for devices. The kernel enforces the limits, so that a device behaves like a slower device.

use std::io;
use std::path::{Path, PathBuf};

use super::system::Loop;

/// Limit of a device, per second.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Number of reads.
    Reads(u64),
    /// Bytes read.
    BytesRead(u64),
    /// Bytes written.
    BytesWritten(u64),
}

impl Limit {
    /// Name of the file in the control group that sets this limit, and the value of the limit.
    const fn rule(self) -> (&'static str, u64) {
        match self {
            Self::Reads(number) => ("blkio.throttle.read_iops_device", number),
            Self::BytesRead(number) => ("blkio.throttle.read_bps_device", number),
            Self::BytesWritten(number) => ("blkio.throttle.write_bps_device", number),
        }
    }
}

/// A control group (version 1). As long as this value exists, this process and its child processes are in
/// the group.
#[derive(Debug)]
pub struct Throttle(PathBuf);

const ROOT: &str = "/sys/fs/cgroup/blkio";

impl Throttle {
    /// Applies the given limits to each device.
    ///
    /// # Errors
    /// Returned if the process is not root, or if the system has no such control group.
    pub fn new(devices: &[Loop], limits: &[Limit]) -> io::Result<Self> {
        let group = Path::new(ROOT).join(format!("foxy-bench-{}", std::process::id()));
        std::fs::create_dir(&group).map_err(|error| {
            io::Error::other(format!(
                "{}: {error}; needs root and the blkio control group of version 1",
                group.display()
            ))
        })?;
        let throttle = Self(group);
        for device in devices {
            for limit in limits {
                throttle.hold(device, *limit)?;
            }
        }
        let me = std::process::id().to_string();
        std::fs::write(throttle.0.join("cgroup.procs"), me)?;
        Ok(throttle)
    }

    /// Applies one limit to one device.
    ///
    /// # Errors
    /// Returned if the system does not accept the limit.
    pub fn hold(&self, device: &Loop, limit: Limit) -> io::Result<()> {
        let name = device.device.file_name().unwrap_or_default();
        let number = Path::new("/sys/block").join(name).join("dev");
        let number = std::fs::read_to_string(number)?;
        let (file, most) = limit.rule();
        std::fs::write(self.0.join(file), format!("{} {most}", number.trim()))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let me = std::process::id().to_string();
        let _ = std::fs::write(Path::new(ROOT).join("cgroup.procs"), me);
        let _ = std::fs::remove_dir(&self.0);
    }
}
