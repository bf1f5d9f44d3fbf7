//! The operations that the measurement uses of each engine, and a size limit for engines that do not limit
//! their size themselves.

use foxy_policy::{CachePolicy, Lru};

use crate::Failure;

/// A store of files. The name of a file is a number.
pub(crate) trait Engine {
    /// Passes the contents of a file to `look`. Returns false if the file does not exist.
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;
    /// Stores a file. It replaces an older file of the same name.
    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure>;
    /// Gives the hint that the second file is usually read together with the first file.
    fn beside(&mut self, _first: u64, _second: u64) -> Result<(), Failure> {
        Ok(())
    }
    /// Returns when all files are on the device.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// The names of the files in an engine without its own size limit, in the order of their last use.
pub(crate) struct Kept(Lru<u64, ()>);

impl Kept {
    /// Permits files of `bytes` bytes in total. The rest of the device is for the internal data of
    /// the store and of the file system.
    pub(crate) fn within(bytes: u64) -> Self {
        Self(Lru::new(bytes))
    }

    /// Returns true if the file exists. Counts the call as a use of the file.
    pub(crate) fn has(&mut self, name: u64) -> bool {
        self.0.get(&name).is_some()
    }

    /// Adds a file. Returns the files that must be removed so that the limit is not exceeded.
    pub(crate) fn add(&mut self, name: u64, bytes: usize) -> Vec<u64> {
        let mut gone = Vec::new();
        // The engine needs about 100 further bytes for the key and the entry of the file. For a file system,
        // the caller has already rounded `bytes` up to complete blocks.
        let _ = self.0.insert(name, (), bytes as u64 + 100, &mut gone);
        gone.into_iter().map(|evicted| evicted.key).collect()
    }
}
