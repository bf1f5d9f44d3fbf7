//! The calls by which a layout writes into a file that many objects share.
//!
//! Source: the journal version labels the arrow from the file-space simulator to the disk "file
//! access calls: mmap/write, lseek, read" (its figure on the evaluation method). It does not say
//! which layout used which call; decision 130 has the reading taken here. Reads are always read().

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::model::{FileId, Files, FsError};

/// Call that writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Calls {
    /// `write`: a page of which only a part is written is read first, if it is not in memory.
    #[default]
    Write,
    /// `mmap`: a store into a mapping. The fault reads any page that is not in memory, also one
    /// that is then written whole.
    Mmap,
}

impl Calls {
    /// Writes `len` bytes at `at`. A mapping cannot grow a file: what lies beyond the end is
    /// written by write() in both cases.
    ///
    /// # Errors
    /// Those of the file system.
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
            // Four times what the page cache holds: most pages have left memory.
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
