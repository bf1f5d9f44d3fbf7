//! The operations of a store of files, and a limit for stores that have none of their own.

use foxy_policy::{CachePolicy, Lru};

use crate::Failure;

/// A store of whole files under numbers.
pub(crate) trait Engine {
    /// Contents of a file, shown to `look`; false if it is not there.
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;
    /// Stores a file in place of an older one.
    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure>;
    /// A hint that the second file is wanted with the first.
    fn beside(&mut self, _first: u64, _second: u64) -> Result<(), Failure> {
        Ok(())
    }
    /// Everything is on the device when this returns.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// The files that a store without a limit may keep, in the order of use.
pub(crate) struct Kept(Lru<u64, ()>);

impl Kept {
    /// Up to `bytes` of files: the rest of the device is the store's and the file system's own.
    pub(crate) fn within(bytes: u64) -> Self {
        Self(Lru::new(bytes))
    }

    /// Returns whether the file is there; counts a use.
    pub(crate) fn has(&mut self, name: u64) -> bool {
        self.0.get(&name).is_some()
    }

    /// Files that have to go for a new one.
    pub(crate) fn add(&mut self, name: u64, bytes: usize) -> Vec<u64> {
        let mut gone = Vec::new();
        // A small file takes a block of a file system, or its key and entry elsewhere.
        let _ = self.0.insert(name, (), bytes as u64 + 100, &mut gone);
        gone.into_iter().map(|evicted| evicted.key).collect()
    }
}
