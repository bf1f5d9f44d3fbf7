//! Resources of the machine: memory, cores, free space. They are behind a trait, so that tests can replace
//! the machine.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::MemoryGroup;

/// Properties of the machine. Defaults, and sizes that are given as a share, depend on them.
pub trait Machine: Debug {
    /// Returns the bytes of memory that this process may use: the machine's memory, or the limit of the
    /// process's control group if that is less.
    fn memory(&self) -> u64;
    /// True if a control group limits the memory to less than the machine's memory.
    fn is_container(&self) -> bool {
        false
    }
    /// Returns the number of cores that this process may use.
    fn cores(&self) -> usize;
    /// Returns the bytes that are free for this user on the file system of `path`. The path need not exist.
    fn free_space(&self, path: &Path) -> Option<u64>;
    /// Returns the length of the file or device at `path`; `None` if there is neither a file nor a device.
    fn existing(&self, path: &Path) -> Option<u64>;
    /// Returns the folder for Foxy's files if the configuration names no place. It need not exist yet.
    fn state_folder(&self) -> PathBuf;
}

/// The machine that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn memory(&self) -> u64 {
        own_limit().map_or_else(whole_machine, |limit| limit.min(whole_machine()))
    }

    fn is_container(&self) -> bool {
        own_limit().is_some_and(|limit| limit < whole_machine())
    }

    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    fn free_space(&self, path: &Path) -> Option<u64> {
        let existing = path.ancestors().find(|folder| folder.exists())?;
        let stat = rustix::fs::statvfs(existing).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn existing(&self, path: &Path) -> Option<u64> {
        use std::io::{Seek, SeekFrom};
        let metadata = std::fs::metadata(path).ok()?;
        if metadata.is_file() {
            return Some(metadata.len());
        }
        // The length of a device is the position of its end.
        std::fs::File::open(path).ok()?.seek(SeekFrom::End(0)).ok()
    }

    fn state_folder(&self) -> PathBuf {
        let home = std::env::home_dir().filter(|home| home.is_dir());
        state_folder(std::env::var_os, home)
    }
}

/// Returns the service manager's folder, else a folder in the user's cache directory, else the default folder
/// of a service. A folder for temporary files is never used: other users could put a store or a token there
/// first, and the contents of the folder would be lost when the machine restarts.
fn state_folder(
    variable: impl Fn(&'static str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> PathBuf {
    let folder = |name| {
        let value = variable(name)?;
        let first = std::env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    let cache = || {
        let home = home.filter(|home| home.is_absolute());
        folder("XDG_CACHE_HOME").or_else(|| home.map(|home| home.join(".cache")))
    };
    folder("STATE_DIRECTORY")
        .or_else(|| cache().map(|cache| cache.join("foxy")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/foxy"))
}

fn whole_machine() -> u64 {
    meminfo_total(&read("/proc/meminfo")).unwrap_or(1 << 30)
}

fn own_limit() -> Option<u64> {
    MemoryGroup::own().map(|group| group.limit())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn meminfo_total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine() {
        assert_eq!(
            meminfo_total("MemFree: 1 kB\nMemTotal:       16384 kB\n"),
            Some(16384 << 10)
        );
        assert_eq!(meminfo_total(""), None);
    }

    #[test]
    fn the_state_folder_is_never_temporary() {
        let folder = |set: &[(&str, &str)], home: Option<&str>| {
            let variable = |name: &str| {
                let found = set.iter().find(|(of, _)| *of == name);
                found.map(|(_, value)| OsString::from(value))
            };
            state_folder(variable, home.map(PathBuf::from))
        };
        let service = ("STATE_DIRECTORY", "/var/lib/foxy-2:/var/lib/other");
        let cache = ("XDG_CACHE_HOME", "/cache");
        let home = Some("/h");
        let wanted = |path: &str| PathBuf::from(path);
        assert_eq!(folder(&[service, cache], home), wanted("/var/lib/foxy-2"));
        assert_eq!(folder(&[cache], home), wanted("/cache/foxy"));
        assert_eq!(folder(&[], home), wanted("/h/.cache/foxy"));
        let useless = [("STATE_DIRECTORY", ""), ("XDG_CACHE_HOME", "relative")];
        for home in [None, Some(""), Some("relative")] {
            assert_eq!(folder(&useless, home), wanted("/var/lib/foxy"));
        }
    }

    #[test]
    fn this_machine_has_something_of_everything() {
        let machine = ThisMachine;
        assert!(machine.memory() > 1 << 20 && machine.cores() > 0);
        assert!(machine.free_space(Path::new("/no/such/folder")).is_some());
        assert_eq!(machine.existing(Path::new("/no/such/file")), None);
    }
}
