//! Files that are being read, and the number of readers of each name.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::KeyHash;
use parking_lot::{Mutex, MutexGuard};

/// Number of locks among which the names are divided.
const STRIPES: usize = 64;

/// The contents that a read lends (section 4.1 of the Hummingbird paper). They stay unchanged until this
/// value is dropped, even if the file is replaced or deleted meanwhile. Dropping it is the paper's
/// `done_read_file`.
#[derive(Debug)]
pub struct File {
    contents: Bytes,
    from_memory: bool,
    _reader: Reader,
}

impl File {
    pub(crate) const fn new(contents: Bytes, from_memory: bool, reader: Reader) -> Self {
        Self {
            contents,
            from_memory,
            _reader: reader,
        }
    }

    /// True if the file was in memory.
    #[must_use]
    pub const fn from_memory(&self) -> bool {
        self.from_memory
    }
}

impl Deref for File {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.contents
    }
}

impl AsRef<[u8]> for File {
    fn as_ref(&self) -> &[u8] {
        &self.contents
    }
}

/// The readers of each name. Readers are added under the lock of their name. A call that replaces or deletes
/// the contents of a name holds the same lock. So a deletion sees all readers. A hint, which stores contents
/// once more, does not replace newer contents by older contents.
#[derive(Debug)]
pub(crate) struct Names(Box<[Mutex<HashMap<KeyHash, u32>>]>);

/// The held lock of a name.
pub(crate) struct Held<'a>(MutexGuard<'a, HashMap<KeyHash, u32>>);

/// One reader of a name.
#[derive(Debug)]
pub(crate) struct Reader {
    names: Arc<Names>,
    hash: KeyHash,
}

impl Names {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self((0..STRIPES).map(|_| Mutex::default()).collect()))
    }

    fn stripe(&self, hash: KeyHash) -> &Mutex<HashMap<KeyHash, u32>> {
        &self.0[hash.high() as usize % STRIPES]
    }

    pub(crate) fn hold(&self, hash: KeyHash) -> Held<'_> {
        Held(self.stripe(hash).lock())
    }

    pub(crate) fn read(self: &Arc<Self>, hash: KeyHash) -> Reader {
        *self.stripe(hash).lock().entry(hash).or_insert(0) += 1;
        Reader {
            names: Arc::clone(self),
            hash,
        }
    }

    /// Number of names that have readers now.
    pub(crate) fn read_now(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.lock().len() as u64).sum()
    }
}

impl Held<'_> {
    pub(crate) fn has_readers(&self, hash: KeyHash) -> bool {
        self.0.contains_key(&hash)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut stripe = self.names.stripe(self.hash).lock();
        if let Some(readers) = stripe.get_mut(&self.hash) {
            *readers -= 1;
            if *readers == 0 {
                stripe.remove(&self.hash);
            }
        }
    }
}
