//! One file for each object, in 256 folders.

use std::fs;
use std::path::PathBuf;

use crate::Failure;
use crate::engines::{Engine, Kept};

pub(crate) struct Files {
    folder: PathBuf,
    kept: Kept,
}

impl Files {
    pub(crate) fn open(folder: &str, disk: u64) -> Result<Self, Failure> {
        let folder = PathBuf::from(folder);
        for n in 0..256 {
            fs::create_dir_all(folder.join(format!("{n:02x}")))?;
        }
        let kept = Kept::within(disk / 10 * 7);
        Ok(Self { folder, kept })
    }

    fn path(&self, name: u64) -> PathBuf {
        let place = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        self.folder.join(format!("{place:02x}/{name:016x}"))
    }
}

impl Engine for Files {
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        if !self.kept.has(name) {
            return Ok(false);
        }
        look(&fs::read(self.path(name))?);
        Ok(true)
    }

    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure> {
        for gone in self.kept.add(name, contents.len().next_multiple_of(4096)) {
            fs::remove_file(self.path(gone))?;
        }
        Ok(fs::write(self.path(name), contents)?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        sync(&self.folder)
    }
}

/// Writes all data of the file system that contains `folder` to its device.
pub(crate) fn sync(folder: &std::path::Path) -> Result<(), Failure> {
    let done = std::process::Command::new("sync")
        .arg("-f")
        .arg(folder)
        .status()?;
    done.success()
        .then_some(())
        .ok_or_else(|| "sync failed".into())
}
