//! Memory that a device may read and write directly. It is aligned and always initialised, and has one owner.

mod memory;
mod pool;
#[cfg(test)]
mod tests;

pub use pool::BufPool;

use bytes::Bytes;
use memory::Memory;
pub(crate) use memory::map_aligned;
use pool::Home;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Alignment of every ordinary buffer, in bytes. Its capacity is a multiple of this number.
const PAGE: usize = 4096;
/// Alignment of a huge buffer, in bytes. Its capacity is a multiple of this number.
const HUGE: usize = 2 << 20;

/// An owned buffer, aligned to 4096 bytes. [`huge`](Self::huge) aligns buffers of 128 KiB or more to 2 MiB if
/// the system has memory for this.
///
/// It behaves as a byte slice of its length. All of its capacity is initialised memory, so the length may be
/// set freely. A byte that the owner did not write or fill by a read is zero, or has an old value. A buffer
/// that came from a [`BufPool`] goes back to it when it is dropped.
pub struct AlignedBuf {
    memory: Option<Memory>,
    len: usize,
    home: Option<Home>,
}

impl AlignedBuf {
    /// Zeroed memory for `len` bytes. The capacity is rounded up to a multiple of 4096.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::from_memory(Memory::ordinary(len), len, None)
    }

    /// Zeroed memory for `len` bytes, in pages of 2 MiB where the system has them. With such pages, one long
    /// write from the buffer is one request to the device. Use this for the few buffers that live long. A
    /// buffer below 128 KiB is ordinary memory.
    #[must_use]
    pub fn huge(len: usize) -> Self {
        Self::from_memory(Memory::huge(len), len, None)
    }

    /// A buffer that holds a copy of `data`.
    #[must_use]
    pub fn copy_of(data: &[u8]) -> Self {
        let mut buf = Self::new(data.len());
        buf.copy_from_slice(data);
        buf
    }

    fn from_memory(memory: Memory, len: usize, home: Option<Home>) -> Self {
        Self {
            memory: Some(memory),
            len,
            home,
        }
    }

    fn memory(&self) -> &Memory {
        // The option is empty only while `drop` runs, which takes the memory out.
        self.memory.as_ref().unwrap_or(&memory::EMPTY)
    }

    /// Number of bytes to which the slice may grow.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory().capacity()
    }

    /// Sets the length of the slice.
    ///
    /// # Panics
    /// If `len` exceeds the capacity: a mistake of the caller.
    pub fn set_len(&mut self, len: usize) {
        assert!(
            len <= self.capacity(),
            "{len} bytes in a buffer of {}",
            self.capacity()
        );
        self.len = len;
    }

    /// Turns the buffer into shared bytes without a copy. Slices of these bytes keep the whole buffer; it
    /// goes back to its pool when the last slice is dropped.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    /// Start of the memory, for the kernel. The pointer is valid for `capacity()` bytes while `self` lives,
    /// even if `self` is moved.
    pub(crate) fn as_raw(&self) -> *mut u8 {
        self.memory().as_ptr()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let (Some(home), Some(memory)) = (self.home.take(), self.memory.take()) {
            home.take_back(memory);
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.memory().slice(self.len)
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        self.memory.as_mut().map_or(&mut [], |m| m.slice_mut(len))
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<AlignedBuf> for Bytes {
    fn from(buf: AlignedBuf) -> Self {
        buf.into_bytes()
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} of {})", self.len, self.capacity())
    }
}
