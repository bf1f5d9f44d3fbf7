//! The calls by which a layout writes into a file that many objects share.
//!
//! Source: in the journal version of the paper, the figure on the evaluation method has an arrow from the
//! file-space simulator to the disk. The label of this arrow is "file access calls: mmap/write, lseek, read".
//! The paper does not state which layout used which call; decision 130 states the interpretation used here.
//! Reads always use read().

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::model::{FileId, Files, FsError};

/// The call that writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Calls {
    /// `write`: if only a part of a page is written and the page is not in memory, the page is read first.
    #[default]
    Write,
    /// `mmap`: a store into a mapping. If the page is not in memory, the page fault reads the page, even if
    /// the complete page is written afterwards.
    Mmap,
}

impl Calls {
    /// Writes `len` bytes at `at`. A mapping cannot grow a file, so a range that ends beyond the end of the
    /// file is always written by write().
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub(super) fn write<F: Files>(
        self,
        files: &mut F,
        file: FileId,
        at: u64,
        len: u64,
    ) -> Result<(), FsError> {
        if self == Self::Mmap && at.saturating_add(len) <= files.size(file) {
            files.map_write(file, at, len)
        } else {
            files.write(file, at, len)
        }
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Mmap => "mmap",
        })
    }
}

impl FromStr for Calls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "write" => Ok(Self::Write),
            "mmap" => Ok(Self::Mmap),
            _ => Err(format!("call `{text}` is not known; choose mmap or write")),
        }
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Drive, FsConfig, Ufs};

    #[test]
    fn a_mapped_write_reads_the_page_that_it_covers() {
        let reads = |calls: Calls| {
            let drive = Drive::named("st15150wc").unwrap();
            let mut files = Ufs::new(drive, FsConfig::ufs(1 << 20));
            let file = files.create(files.root(), 1).unwrap();
            // The written range is four times the size of the page cache, so most of its pages have left
            // memory.
            files.write(file, 0, 4 << 20).unwrap();
            files.sync();
            let before = files.counters().drive.read_bytes;
            calls.write(&mut files, file, 1 << 20, 8 << 10).unwrap();
            (files.counters().drive.read_bytes - before, files.size(file))
        };
        assert_eq!(reads(Calls::Write), (0, 4 << 20));
        assert_eq!(reads(Calls::Mmap), (8 << 10, 4 << 20));
    }

    #[test]
    fn a_mapped_write_past_the_end_lengthens_the_file() {
        let drive = Drive::named("st15150wc").unwrap();
        let mut files = Ufs::new(drive, FsConfig::ufs(1 << 20));
        let file = files.create(files.root(), 1).unwrap();
        Calls::Mmap.write(&mut files, file, 0, 3_000).unwrap();
        assert_eq!(files.size(file), 3_000);
    }

    #[test]
    fn names_read_back() {
        for calls in [Calls::Write, Calls::Mmap] {
            assert_eq!(calls.to_string().parse(), Ok(calls));
        }
        assert!(
            "msync"
                .parse::<Calls>()
                .unwrap_err()
                .contains("mmap or write")
        );
    }
}
