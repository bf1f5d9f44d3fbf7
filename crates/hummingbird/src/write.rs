//! Writing and deleting files (sections 4.1 and 4.2 of the Hummingbird paper).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{FieldBlock, WallTime};
use foxy_store::{Admission, DropReason, NewObject, Object, ObjectMeta, Put};

use crate::hints::{NO_HINT_SET, set_of};
use crate::library::{Inner, Name};
use crate::stats::count;
use crate::{Error, Hummingbird};

/// Flag of a file that must not be kept in memory. It is stored with the file on disk.
pub(crate) const NOMEM: u16 = 1;

/// Longest time that a write waits until the store accepts files again. `STEP` is the pause between two
/// checks.
const TIMEOUT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(1);

pub(crate) const fn is_nomem(file: &Object) -> bool {
    file.meta().flags & NOMEM != 0
}

impl Hummingbird {
    /// Stores a file in place of an older file of its name, and returns its size (section 4.1). Reads find
    /// the file as soon as this call has returned. Later, the file is packed with other files and written to
    /// a disk. Readers of an older file keep the older contents.
    ///
    /// If `contents` are `Bytes` or a `Vec`, and are at most half a cluster of the store (254 KiB), they are
    /// not copied. Then their memory should be exactly as long as the contents, because the library keeps all
    /// of this memory. A write waits at most ten seconds if the disks do not keep up.
    ///
    /// # Errors
    /// Returns [`Error::Name`], [`Error::TooLarge`] or [`Error::NoRoom`]. After an error there is no file of
    /// this name.
    pub fn write_file(&self, name: &[u8], contents: impl Into<Bytes>) -> Result<u64, Error> {
        self.write(Name::new(name)?, contents.into(), NO_HINT_SET, 0)
    }

    /// Stores a file as [`Hummingbird::write_file`] does, beside another file. The effect is that of the hint
    /// [`Hummingbird::collocate_files`], but this hint is never too late.
    ///
    /// # Errors
    /// The errors of [`Hummingbird::write_file`].
    pub fn write_file_beside(
        &self,
        name: &[u8],
        contents: impl Into<Bytes>,
        beside: &[u8],
    ) -> Result<u64, Error> {
        let set = set_of(Name::new(beside)?);
        self.write(Name::new(name)?, contents.into(), set, 0)
    }

    /// Stores a file that is not kept in memory (section 4.2; for large files). It waits in memory for its
    /// cluster, but uses no memory afterwards, not even when it is read.
    ///
    /// # Errors
    /// The errors of [`Hummingbird::write_file`].
    pub fn write_nomem_file(&self, name: &[u8], contents: impl Into<Bytes>) -> Result<u64, Error> {
        self.write(Name::new(name)?, contents.into(), NO_HINT_SET, NOMEM)
    }

    /// Deletes a file (section 4.1). A crash of the program does not bring the file back. Once a checkpoint
    /// that began after the deletion has ended, a power cut does not bring it back either.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`], [`Error::Busy`] while the file has readers, or [`Error::Name`]. (A file
    /// that recovery has not loaded yet is reported as not found, but it is deleted.)
    pub fn delete_file(&self, name: &[u8]) -> Result<(), Error> {
        let name = Name::new(name)?;
        let held = self.inner.names.hold(name.hash);
        if held.has_readers(name.hash) {
            return Err(Error::Busy);
        }
        if !self.inner.engine.supersede(name.hash, name.bytes) {
            return Err(Error::NotFound);
        }
        count(&self.inner.counters.deletes);
        Ok(())
    }

    fn write(&self, name: Name<'_>, contents: Bytes, set: u64, flags: u16) -> Result<u64, Error> {
        let inner = &self.inner;
        let size = contents.len() as u64;
        if size > inner.engine.object_bytes_max() {
            let _held = inner.names.hold(name.hash);
            inner.engine.supersede(name.hash, name.bytes);
            return Err(Error::TooLarge);
        }
        let new = inner.new_file(name, contents, set, flags);
        inner.wait_for_room();
        let put = if size > u64::from(inner.engine.fragment_bytes()) {
            inner.put_long(&new)
        } else {
            let _held = inner.names.hold(name.hash);
            inner.put(new)
        };
        inner.admitted(put.admitted)?;
        count(&inner.counters.writes);
        Ok(size)
    }
}

impl Inner {
    fn new_file(&self, name: Name<'_>, body: Bytes, set: u64, flags: u16) -> NewObject {
        let now = self.clock.wall();
        let end = self.life().map(|life| now.millis().saturating_add(life));
        NewObject {
            key: Bytes::copy_from_slice(name.bytes),
            hash: name.hash,
            group: set,
            meta: ObjectMeta {
                flags,
                request_time: now,
                response_time: now,
                expires: WallTime(end.unwrap_or(i64::MAX)),
                ..ObjectMeta::default()
            },
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: FieldBlock::empty(),
            body,
        }
    }

    /// Stores a file that fits into a cluster.
    fn put(self: &Arc<Self>, new: NewObject) -> Put {
        if new.meta.flags & NOMEM != 0 {
            self.engine.put_past_memory(new)
        } else {
            self.engine.put(new)
        }
    }

    /// Stores the contents of `file` once more, in the set `set`. The caller holds the lock of the name.
    pub(crate) fn put_again(self: &Arc<Self>, file: &Object, set: u64) -> bool {
        let put = self.put(NewObject {
            key: file.key().clone(),
            hash: file.hash(),
            group: set,
            meta: *file.meta(),
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: FieldBlock::empty(),
            body: file.body().clone(),
        });
        put.admitted == Admission::Disk
    }

    /// Waits until the store has written enough data to accept files again. Gives up after [`TIMEOUT`].
    pub(crate) fn wait_for_room(&self) {
        if !self.driven || !self.engine.is_congested() {
            return;
        }
        count(&self.counters.waits);
        let begun = self.clock.mono();
        while self.engine.is_congested() && self.clock.mono().since(begun) < TIMEOUT {
            std::thread::sleep(STEP);
        }
    }

    fn admitted(&self, admitted: Admission) -> Result<(), Error> {
        match admitted {
            Admission::Disk => Ok(()),
            // The library may forget this file before the file reaches a disk. That is permitted for every
            // file (section 3).
            Admission::Memory(_) => {
                count(&self.counters.memory_only);
                Ok(())
            }
            Admission::Refused(DropReason::TooLarge) => Err(Error::TooLarge),
            Admission::Refused(_) => Err(Error::NoRoom),
        }
    }
}
