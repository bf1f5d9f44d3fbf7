//! The handle of an open file system for C code. It contains the library, and the reads that C code has not
//! ended.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use foxy_hummingbird::{Error, File, Hummingbird};
use parking_lot::Mutex;

use crate::outcome::{Failure, NO_READ, READS_OPEN};

/// The C type `hummingbird`.
#[derive(Debug)]
pub struct Handle {
    pub(crate) fs: Hummingbird,
    lent: Mutex<Lent>,
    names: RandomState,
}

/// The reads that were not ended, by hash of the name and address of the contents (section 4.1 of the
/// Hummingbird paper: "uniquely identified by the filename and address").
type Lent = HashMap<(u64, usize), Vec<File>>;

impl Handle {
    pub(crate) fn new(fs: Hummingbird) -> Self {
        Self {
            fs,
            lent: Mutex::default(),
            names: RandomState::new(),
        }
    }

    /// Keeps a read until the caller ends it. Returns address and size of the contents. The contents do not
    /// move before the read ends.
    pub(crate) fn lend(&self, name: &[u8], file: File) -> (*const u8, i64) {
        let (at, size) = (file.as_ptr(), file.len() as i64);
        let key = (self.names.hash_one(name), at.addr());
        self.lent.lock().entry(key).or_default().push(file);
        (at, size)
    }

    /// Ends one read.
    pub(crate) fn done(&self, name: &[u8], at: *const u8) -> Result<i64, Failure> {
        let key = (self.names.hash_one(name), at.addr());
        let mut lent = self.lent.lock();
        let Some(files) = lent.get_mut(&key) else {
            return Err(NO_READ);
        };
        let file = files.pop();
        if files.is_empty() {
            lent.remove(&key);
        }
        drop(lent);
        // `file` is dropped outside of the lock, because it may be the last owner of a large piece
        // of memory.
        drop(file);
        Ok(0)
    }

    pub(crate) fn check_idle(&self) -> Result<(), Failure> {
        if self.lent.lock().is_empty() {
            Ok(())
        } else {
            Err(READS_OPEN)
        }
    }

    pub(crate) fn close(self) -> Result<i64, Failure> {
        if self.fs.close() {
            Ok(0)
        } else {
            Err(Error::NotDurable.into())
        }
    }
}
