//! The control group that limits the memory of this process. A container or a service has such a group.

use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

/// Version of the kernel's control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Version 1, with a tree for each controller. The tree for memory is `memory/`.
    One,
    /// Version 2, with one tree for all controllers.
    Two,
}

/// The group with the smallest memory limit on the path from this process's group to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGroup {
    folder: PathBuf,
    version: Version,
    limit: u64,
}

/// The current memory use of a group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUse {
    /// Memory in use, without the file contents that the kernel reclaims first.
    pub used: u64,
    /// Buffers of sockets. They are a part of `used` in version 2, but not in version 1.
    pub sockets: u64,
}

impl MemoryGroup {
    /// Returns the group that limits this process; `None` if no group limits its memory.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::find(Path::new(MOUNT), &read(Path::new("/proc/self/cgroup")))
    }

    /// Returns the limit of the group in bytes.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the current memory use of the group; `None` if the kernel does not report it.
    #[must_use]
    pub fn usage(&self) -> Option<GroupUse> {
        let (current, cache) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file "),
            Version::Two => ("memory.current", "inactive_file "),
        };
        let current = number(&self.folder.join(current))?;
        let stat = read(&self.folder.join("memory.stat"));
        let field = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|number| number.trim().parse().ok())
                .unwrap_or(0)
        };
        let sockets = match self.version {
            Version::One => number(&self.folder.join("memory.kmem.tcp.usage_in_bytes")),
            Version::Two => Some(field("sock ")),
        };
        Some(GroupUse {
            used: current.saturating_sub(field(cache)),
            sockets: sockets.unwrap_or(0),
        })
    }

    fn find(mount: &Path, membership: &str) -> Option<Self> {
        let mut groups = Vec::new();
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
                continue;
            };
            let (tree, version, file) = if controllers.is_empty() {
                (mount.to_owned(), Version::Two, "memory.max")
            } else if controllers.split(',').any(|name| name == "memory") {
                (mount.join("memory"), Version::One, "memory.limit_in_bytes")
            } else {
                continue;
            };
            // Inside a container, the group's path can be missing below the mount. Then the group is the root
            // of the mount.
            let group = tree.join(group.trim_start_matches('/'));
            groups.extend(
                group
                    .ancestors()
                    .take_while(|folder| folder.starts_with(&tree))
                    .filter_map(|folder| {
                        Some(Self {
                            folder: folder.to_owned(),
                            version,
                            limit: number(&folder.join(file))?,
                        })
                    }),
            );
        }
        groups.into_iter().min_by_key(|group| group.limit)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Reads a limit or a size. Without a limit, version 2 writes `max`, which is not a number. Version 1 writes
/// a very large number, which has no effect, because the caller searches for the smallest limit.
fn number(file: &Path) -> Option<u64> {
    read(file).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn limit(mount: &tempfile::TempDir, membership: &str) -> Option<u64> {
        MemoryGroup::find(mount.path(), membership).map(|group| group.limit())
    }

    #[test]
    fn control_groups_of_version_2_count_up_to_the_root() {
        let mount = tree(&[
            ("a/memory.max", "max\n"),
            ("a/b/memory.max", "1000\n"),
            ("a/b/memory.current", "900\n"),
            ("a/b/memory.stat", "anon 500\nsock 70\ninactive_file 300\n"),
            ("a/b/c/memory.max", "5000\n"),
        ]);
        let group = MemoryGroup::find(mount.path(), "0::/a/b/c\n").unwrap();
        assert_eq!(group.limit(), 1000);
        let (used, sockets) = (600, 70);
        assert_eq!(group.usage(), Some(GroupUse { used, sockets }));
        assert_eq!(limit(&mount, "0::/a\n"), None);
        assert_eq!(limit(&mount, "0::/elsewhere\n"), None);
    }

    #[test]
    fn control_groups_of_version_1() {
        let mount = tree(&[
            ("memory/x/memory.limit_in_bytes", "7000\n"),
            ("memory/x/memory.usage_in_bytes", "6000\n"),
            ("memory/x/memory.kmem.tcp.usage_in_bytes", "10\n"),
            (
                "memory/x/memory.stat",
                "inactive_file 1\ntotal_inactive_file 1000\n",
            ),
            ("memory.max", "1\n"),
        ]);
        let group = MemoryGroup::find(mount.path(), "5:cpu:/y\n4:memory:/x\n").unwrap();
        assert_eq!(group.limit(), 7000);
        let (used, sockets) = (5000, 10);
        assert_eq!(group.usage(), Some(GroupUse { used, sockets }));
    }
}
