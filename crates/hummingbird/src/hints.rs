//! Hints about files that belong together (sections 4.1 and 4.3 of the Hummingbird paper).
//!
//! A set consists of files that hints have put together. It has the name of its first file. The files of a
//! set gather in one locality buffer of the store. The buffer is written in one piece when it is full or old.
//! It is also written when another set needs a buffer and this buffer is the least recently used buffer. All
//! files without a hint gather in one buffer, in the order of writing.

use foxy_base::hash64;

use crate::library::{Inner, Name};
use crate::stats::count;
use crate::{Error, Hummingbird};

/// The set of files without a hint.
pub(crate) const NO_HINT_SET: u64 = 0;

/// The result of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The second file joins the set of the first file.
    Taken,
    /// The second file stays where it is, for one of these reasons:
    ///
    /// - it is packed already, and either it is not in memory, or [`crate::Config::replicas`] is off;
    /// - it is longer than half a cluster of the store;
    /// - the disks do not keep up with the writes.
    TooLate,
}

/// The set whose first file has this name.
pub(crate) fn set_of(name: Name<'_>) -> u64 {
    hash64(0x7365_7473, name.bytes).max(NO_HINT_SET + 1)
}

impl Hummingbird {
    /// Gives a hint: `second` should lie beside `first` (section 4.1). Both must have been written before. As
    /// the paper states, a hint may have no effect; a caller may ignore the result. If `second` is already
    /// packed and is in memory, it is written once more, and later reads use the new copy
    /// ([`crate::Config::replicas`]).
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if one of the files is not known, and [`Error::Name`] if a name is empty
    /// or too long.
    pub fn collocate_files(&self, first: &[u8], second: &[u8]) -> Result<Hint, Error> {
        let (first, second) = (Name::new(first)?, Name::new(second)?);
        let set = self.inner.open_set(first)?;
        let hint = self.inner.move_to(second, set)?;
        count(match hint {
            Hint::Taken => &self.inner.counters.hints_taken,
            Hint::TooLate => &self.inner.counters.hints_late,
        });
        Ok(hint)
    }
}

impl Inner {
    /// Returns the set of a file. A file without a set begins its own set. The file is moved to this set only
    /// if it still waits to be packed and is not a long file.
    fn open_set(self: &std::sync::Arc<Self>, name: Name<'_>) -> Result<u64, Error> {
        let set = set_of(name);
        let _held = self.names.hold(name.hash);
        match self.engine.reads().in_memory(name.hash, name.bytes) {
            Some((file, _)) if file.group() != NO_HINT_SET => Ok(file.group()),
            Some((file, waits)) => {
                if waits && !file.is_large() {
                    self.put_again(&file, set);
                }
                Ok(set)
            }
            None if self.engine.is_stored(name.hash) => Ok(set),
            None => Err(Error::NotFound),
        }
    }

    fn move_to(self: &std::sync::Arc<Self>, name: Name<'_>, set: u64) -> Result<Hint, Error> {
        let _held = self.names.hold(name.hash);
        let Some((file, waits)) = self.engine.reads().in_memory(name.hash, name.bytes) else {
            let known = self.engine.is_stored(name.hash);
            return known.then_some(Hint::TooLate).ok_or(Error::NotFound);
        };
        if file.group() == set {
            return Ok(Hint::Taken);
        }
        if file.is_large() || !(waits || self.replicas) || self.engine.is_congested() {
            return Ok(Hint::TooLate);
        }
        if !waits {
            count(&self.counters.replicas);
        }
        self.put_again(&file, set);
        Ok(Hint::Taken)
    }
}
