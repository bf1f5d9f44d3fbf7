//! The open file, and blocking transfers to and from it.

use crate::{AlignedBuf, check};
use rustix::fs::{Advice, FlockOperation};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Length of the largest piece of a blocking transfer through a bounce buffer, in bytes.
const BOUNCE: usize = 1 << 20;

/// State shared by queues and blocking calls.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) file: File,
    /// A second descriptor of the same file or device, whose transfers use the page cache. `None` if the
    /// transfers of `file` use the page cache too.
    cached: Option<File>,
    pub(crate) path: PathBuf,
    /// Logical block in bytes.
    pub(crate) block: u32,
    /// True if transfers bypass the page cache; then memory must be aligned.
    pub(crate) direct: bool,
    len: AtomicU64,
}

impl Target {
    /// Makes a target. `cached` must be given if, and only if, `file` bypasses the page cache.
    pub(crate) fn new(
        file: File,
        cached: Option<File>,
        path: PathBuf,
        block: u32,
        len: u64,
    ) -> Self {
        Self {
            file,
            direct: cached.is_some(),
            cached,
            path,
            block,
            len: AtomicU64::new(len),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// Makes all data written so far durable, including the file's length and allocation.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // Both descriptors belong to one file, so this also writes back the file's cached pages.
        retry(|| rustix_sync(&self.file))
    }

    /// Fills all of `into`. Its position, length and memory must be aligned if the file is direct.
    pub(crate) fn read_all(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            let place = at + done as u64;
            let got = retry(|| rustix::io::pread(&self.file, &mut into[done..], place))?;
            done += self.whole(got, into.len() - done, ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }

    /// Writes all of `data`. Its position, length and memory must be aligned if the file is direct.
    pub(crate) fn write_all(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            let place = at + done as u64;
            let put = retry(|| rustix::io::pwrite(&self.file, &data[done..], place))?;
            done += self.whole(put, data.len() - done, ErrorKind::WriteZero)?;
        }
        Ok(())
    }

    /// Number of bytes by which a transfer has progressed after a call that moved `moved` of the `left`
    /// bytes. A direct transfer continues at a block boundary, so only whole blocks count. If this number
    /// would be 0, the file ends here, and the error `short` is returned.
    fn whole(&self, moved: usize, left: usize, short: ErrorKind) -> io::Result<usize> {
        let step = if self.direct { self.block as usize } else { 1 };
        let counted = if moved >= left {
            left
        } else {
            moved / step * step
        };
        if counted == 0 {
            Err(short.into())
        } else {
            Ok(counted)
        }
    }

    fn cached(&self) -> &File {
        self.cached.as_ref().unwrap_or(&self.file)
    }

    /// Writes any number of bytes at any position through the page cache.
    pub(crate) fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        check::range(true, at, data.len() as u64, self.len())?;
        let mut done = 0;
        while done < data.len() {
            let place = at + done as u64;
            match retry(|| rustix::io::pwrite(self.cached(), &data[done..], place))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                put => done += put,
            }
        }
        Ok(())
    }

    /// Reads any number of bytes at any position through the page cache. If the bytes have reached the
    /// device, each call reads them from the device again, not from the cache.
    pub(crate) fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        check::range(false, at, into.len() as u64, self.len())?;
        // This advice asks the kernel to drop the pages from the cache, except dirty pages. If the kernel
        // ignores the advice, the bytes may come from the cache.
        let len = NonZeroU64::new(into.len() as u64);
        let _ = rustix::fs::fadvise(self.cached(), at, len, Advice::DontNeed);
        let mut done = 0;
        while done < into.len() {
            let place = at + done as u64;
            match retry(|| rustix::io::pread(self.cached(), &mut into[done..], place))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                got => done += got,
            }
        }
        Ok(())
    }

    /// Reads any number of bytes at any position. If the file is direct, the bytes go through a bounce
    /// buffer.
    pub(crate) fn read_any(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        check::range(false, at, into.len() as u64, self.len())?;
        if !self.direct {
            return self.read_all(at, into);
        }
        let block = u64::from(self.block);
        let mut bounce = AlignedBuf::new(into.len().min(BOUNCE) + 2 * self.block as usize);
        let mut done = 0;
        while done < into.len() {
            let from = at + done as u64;
            let start = from / block * block;
            let skip = (from - start) as usize;
            let piece = (into.len() - done).min(BOUNCE);
            let span = (skip + piece).next_multiple_of(self.block as usize);
            self.read_all(start, &mut bounce[..span])?;
            into[done..done + piece].copy_from_slice(&bounce[skip..skip + piece]);
            done += piece;
        }
        Ok(())
    }

    /// Writes whole blocks from memory of any alignment.
    pub(crate) fn write_any(&self, at: u64, data: &[u8]) -> io::Result<()> {
        check::aligned(at, data.len() as u64, self.block)?;
        check::range(true, at, data.len() as u64, self.len())?;
        if !self.direct || data.as_ptr().align_offset(4096) == 0 {
            return self.write_all(at, data);
        }
        let mut bounce = AlignedBuf::new(data.len().min(BOUNCE));
        let mut place = at;
        for piece in data.chunks(BOUNCE) {
            bounce[..piece.len()].copy_from_slice(piece);
            self.write_all(place, &bounce[..piece.len()])?;
            place += piece.len() as u64;
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Closing the file would release the lock too. But an `io_uring` releases its files some time after
        // it is closed, and until then another opening would find the lock. This call fails only if there is
        // no lock.
        let _ = rustix::fs::flock(&self.file, FlockOperation::NonBlockingUnlock);
    }
}

#[cfg(not(target_vendor = "apple"))]
fn rustix_sync(file: &File) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

#[cfg(target_vendor = "apple")]
fn rustix_sync(file: &File) -> Result<(), Errno> {
    rustix::fs::fcntl_fullfsync(file)
}

/// Repeats the call while signals interrupt it.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other.map_err(Into::into),
        }
    }
}
