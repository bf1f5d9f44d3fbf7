//! A control group (cgroup version 1 or 2) with a memory limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use foxy_base::ByteSize;

const MOUNT: &str = "/sys/fs/cgroup";

/// A control group for one process. It is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// True for version 2.
    unified: bool,
}

impl Group {
    /// Creates a group with this memory limit.
    pub(super) fn new(name: &str, limit: ByteSize) -> Result<Self, String> {
        let version_1 = Path::new(MOUNT).join("memory");
        let unified = !version_1.join("memory.limit_in_bytes").exists();
        let parent = if unified { MOUNT.into() } else { version_1 };
        let folder = parent.join(format!("foxy-lab-{}-{name}", std::process::id()));
        let problem = |error: std::io::Error| {
            format!(
                "no control group {} ({error}): --groups needs root and the memory controller",
                folder.display()
            )
        };
        if unified {
            // An error is ignored here. If the group gets no memory controller, the code below cannot set the
            // limit and returns an error.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
        }
        fs::create_dir(&folder).map_err(problem)?;
        let group = Self {
            folder: folder.clone(),
            unified,
        };
        let file = match unified {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        fs::write(folder.join(file), limit.bytes().to_string()).map_err(problem)?;
        if unified {
            let _ = fs::write(folder.join("memory.swap.max"), "0");
        }
        Ok(group)
    }

    /// The file to which a process writes its PID to enter the group.
    pub(super) fn entry(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Number of processes of this group that the kernel killed because memory was short.
    pub(super) fn kills(&self) -> u64 {
        let file = match self.unified {
            true => "memory.events",
            false => "memory.oom_control",
        };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// The peak memory of the group, in bytes. It includes kernel memory of the group and the page cache.
    /// The kernel reclaims the page cache when the limit is reached.
    pub(super) fn peak(&self) -> u64 {
        let file = match self.unified {
            true => "memory.peak",
            false => "memory.max_usage_in_bytes",
        };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A killed process leaves its group only after a short time. Until then, the group cannot be removed.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}
