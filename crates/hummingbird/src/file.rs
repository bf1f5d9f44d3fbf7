//! A file that is being read, and the count of readers of each name.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::KeyHash;
use parking_lot::{Mutex, MutexGuard};

/// Locks that the names are divided by.
const STRIPES: usize = 64;

/// Contents lent by a read (section 4.1). They stay as they are until this is dropped, whatever
/// happens to the file's name meanwhile; dropping it is the paper's `done_read_file`.
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

    /// Returns whether memory had it.
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

/// Readers of each name. A name's lock is also held while its contents are exchanged, so that a
/// deletion sees all readers, and a hint does not replace newer contents by older ones.
#[derive(Debug)]
pub(crate) struct Names(Box<[Mutex<HashMap<KeyHash, u32>>]>);

/// The lock of a name.
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

    /// Names that have readers.
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
