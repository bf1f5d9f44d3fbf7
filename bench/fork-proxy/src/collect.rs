//! The garbage collector. It checks the sizes of all files every few seconds. If their sum exceeds
//! the limit, it removes the least recently written files until the other files fit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PAUSE: Duration = Duration::from_secs(5);

/// Runs until the process is killed or its parent process has ended.
pub(crate) fn run(cache: &Path, size: u64) -> io::Result<()> {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        sweep(cache, size)?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Checks all files once. Files that disappear during the check are skipped.
fn sweep(cache: &Path, size: u64) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for folder in fs::read_dir(cache)?.flatten() {
        let Ok(entries) = fs::read_dir(folder.path()) else {
            continue;
        };
        for entry in entries.flatten() {
            if let Ok(data) = entry.metadata() {
                files.push((data.modified()?, data.len(), entry.path()));
            }
        }
    }
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if bytes <= size {
            break;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= length;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        let cache = std::env::temp_dir().join(format!("fork-collect-{}", std::process::id()));
        let folder = cache.join("a:80");
        fs::create_dir_all(&folder).unwrap();
        for (name, age) in [("old", 300), ("middle", 200), ("new", 100)] {
            let file = fs::File::create(folder.join(name)).unwrap();
            file.set_len(10).unwrap();
            let when = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000 - age);
            file.set_modified(when).unwrap();
        }
        sweep(&cache, 20).unwrap();
        let left = |name: &str| folder.join(name).exists();
        assert!(!left("old") && left("middle") && left("new"));
        fs::remove_dir_all(cache).unwrap();
    }
}
