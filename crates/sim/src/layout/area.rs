//! The space in which a layout with slots stores its data: one large file, or a raw partition.

use super::{Calls, LayoutError};
use crate::model::{FileId, Files, FsCounters, Raw, SimTime};

/// A linear space of bytes, and the clock of the process that reads and writes it.
pub trait Area {
    /// The present time of the simulated process. The drive may still have queued requests.
    fn now(&self) -> SimTime;

    /// Reads a range and waits for the data.
    ///
    /// # Errors
    /// Returns [`LayoutError::Fs`].
    fn read(&mut self, at: u64, len: u64) -> Result<(), LayoutError>;

    /// Writes a range. As with write() on a file, the data may reach the drive after the call.
    ///
    /// # Errors
    /// Returns [`LayoutError::Full`] or [`LayoutError::Fs`].
    fn write(&mut self, at: u64, len: u64) -> Result<(), LayoutError>;

    /// Reads ranges that the caller has sorted. The ranges are read one after the other, unless the space can
    /// send them to the drive together.
    ///
    /// # Errors
    /// Returns [`LayoutError::Fs`].
    fn read_all(&mut self, ranges: &[(u64, u64)]) -> Result<(), LayoutError> {
        ranges.iter().try_for_each(|(at, len)| self.read(*at, *len))
    }

    /// Waits until everything is on the drive.
    fn sync(&mut self);

    /// The file; `FileId(0)` for a raw partition.
    fn file(&self) -> FileId;

    /// The costs on the drive so far (requests, bytes and times).
    fn counters(&self) -> FsCounters;
}

/// Writes `bytes` bytes into an empty file, from front to back.
pub(super) fn fill<F: Files>(files: &mut F, file: FileId, bytes: u64) -> Result<(), LayoutError> {
    const PIECE: u64 = 1 << 20;
    for at in (0..bytes).step_by(PIECE as usize) {
        files.write(file, at, PIECE.min(bytes - at))?;
    }
    Ok(())
}

/// One file of a file system. The file either grows as it is written, or has its full size from the start.
#[derive(Clone, Debug)]
pub struct FileArea<F> {
    files: F,
    file: FileId,
    calls: Calls,
}

impl<F: Files> FileArea<F> {
    /// Creates the file in the root directory.
    ///
    /// # Errors
    /// Returns [`LayoutError::Full`] or [`LayoutError::Fs`].
    pub fn new(mut files: F) -> Result<Self, LayoutError> {
        let file = files.create(files.root(), 1)?;
        Ok(Self {
            files,
            file,
            calls: Calls::Write,
        })
    }

    /// Creates the file as [`new`](Self::new) does, and writes `bytes` bytes into it, from front to back. If
    /// a later write covers only a part of a page that is not in memory, the page is read first.
    ///
    /// # Errors
    /// Returns [`LayoutError::Full`] or [`LayoutError::Fs`].
    pub fn existing(files: F, bytes: u64) -> Result<Self, LayoutError> {
        let mut area = Self::new(files)?;
        fill(&mut area.files, area.file, bytes)?;
        area.files.sync();
        Ok(area)
    }

    /// Returns this area with `calls` as the calls that write.
    #[must_use]
    pub fn by(self, calls: Calls) -> Self {
        Self { calls, ..self }
    }

    /// The file system.
    pub const fn files(&self) -> &F {
        &self.files
    }
}

impl<F: Files> Area for FileArea<F> {
    fn now(&self) -> SimTime {
        self.files.now()
    }

    fn read(&mut self, at: u64, len: u64) -> Result<(), LayoutError> {
        self.files.read(self.file, at, len)?;
        Ok(())
    }

    fn write(&mut self, at: u64, len: u64) -> Result<(), LayoutError> {
        Ok(self.calls.write(&mut self.files, self.file, at, len)?)
    }

    fn sync(&mut self) {
        self.files.sync();
    }

    fn file(&self) -> FileId {
        self.file
    }

    fn counters(&self) -> FsCounters {
        self.files.counters()
    }
}

impl Area for Raw {
    fn now(&self) -> SimTime {
        Self::now(self)
    }

    fn read(&mut self, at: u64, len: u64) -> Result<(), LayoutError> {
        Self::read(self, at, len)?;
        Ok(())
    }

    fn write(&mut self, at: u64, len: u64) -> Result<(), LayoutError> {
        Self::write(self, at, len)?;
        Ok(())
    }

    fn read_all(&mut self, ranges: &[(u64, u64)]) -> Result<(), LayoutError> {
        self.read_batch(ranges)?;
        Ok(())
    }

    fn sync(&mut self) {
        self.flush();
    }

    fn file(&self) -> FileId {
        FileId(0)
    }

    fn counters(&self) -> FsCounters {
        Self::counters(self)
    }
}
