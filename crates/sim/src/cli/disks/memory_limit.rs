//! A limit on the memory of this process, including the page cache that this process fills. The limit is a
//! new control group, version 1 or 2. The process leaves the group, and the group is removed, when the limit
//! is dropped.

use std::{
    io::Error,
    path::{Path, PathBuf},
};

use crate::run::RunError;

/// The limit; it ends when this value is dropped.
#[derive(Debug)]
pub(super) struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// Puts this process under a limit of `bytes`.
    ///
    /// # Errors
    /// Returns an error if there are no control groups for memory, or if the process may not create them.
    pub(super) fn new(bytes: u64) -> Result<Self, RunError> {
        Self::under(Path::new("/sys/fs/cgroup"), bytes)
    }

    fn under(root: &Path, bytes: u64) -> Result<Self, RunError> {
        let unified = root.join("cgroup.controllers").exists();
        let (parent, limit) = if unified {
            // An error of this write is ignored. The system refuses the write if the memory controller is
            // already on. If the write was necessary but failed, writing the limit fails later.
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
            (root.to_owned(), "memory.max")
        } else {
            (root.join("memory"), "memory.limit_in_bytes")
        };
        let group = parent.join(format!("foxy-disks-{}", std::process::id()));
        let failed = |path: &Path, error: &Error| {
            RunError::Config(format!(
                "{}: {error}; limiting memory takes root and control groups for memory. With \
                 `--memory 0` nothing is limited, and much of what is measured is the page cache",
                path.display()
            ))
        };
        std::fs::create_dir(&group).map_err(|error| failed(&group, &error))?;
        let limited = Self { group };
        let process = std::process::id().to_string();
        for (name, value) in [(limit, bytes.to_string()), ("cgroup.procs", process)] {
            let path = limited.group.join(name);
            std::fs::write(&path, value).map_err(|error| failed(&path, &error))?;
        }
        Ok(limited)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        if let Some(parent) = self.group.parent() {
            // Errors are ignored. If the process was moved but its group cannot be removed, an empty group
            // remains, without effect.
            let process = std::process::id().to_string();
            let _ = std::fs::write(parent.join("cgroup.procs"), process);
            let _ = std::fs::remove_dir(&self.group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_control_groups_the_way_round_is_told() {
        let error = MemoryLimit::under("no-such-folder".as_ref(), 1 << 28).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no-such-folder/memory") && text.contains("--memory 0"),
            "{text}"
        );
    }

    #[test]
    fn limit_and_process_are_written_and_the_process_leaves_again() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("memory")).unwrap();
        let limited = MemoryLimit::under(root.path(), 12_345).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(limited.group.join("memory.limit_in_bytes")), "12345");
        let process = std::process::id().to_string();
        assert_eq!(read(limited.group.join("cgroup.procs")), process);
        drop(limited);
        assert_eq!(read(root.path().join("memory/cgroup.procs")), process);
    }
}
