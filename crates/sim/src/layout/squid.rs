//! The layout SQUID.
//!
//! Rule (USITS'99 section 3): there are two levels of directories, 16 on the first level (0 to F), each with
//! 256 on the second level (00 to FF). Each object has one file. The directories are filled round robin: file
//! 0 goes to 0/00, file 1 to 0/01, ... file 255 to 0/FF, file 256 to 1/00, and so on.

use super::{
    LayoutError,
    one_file_each::{Directories, OneFileEach},
};
use crate::model::{DirId, Files};

/// Number of directories of the first level.
pub const FIRST: u64 = 16;
/// Number of directories of the second level in each directory of the first level.
pub const SECOND: u64 = 256;

/// The directories of the second level, in filling order, and the number of the next file.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    dirs: Vec<DirId>,
    next: u64,
}

/// The layout SQUID.
pub type Squid<F> = OneFileEach<F, RoundRobin>;

impl<F: Files> Squid<F> {
    /// Creates an empty layout and its directories.
    ///
    /// # Errors
    /// Returns the first error of the file system.
    pub fn new(mut files: F) -> Result<Self, LayoutError> {
        let mut dirs = Vec::with_capacity((FIRST * SECOND) as usize);
        for first in 0..FIRST {
            let parent = files.mkdir(files.root(), first)?;
            for second in 0..SECOND {
                dirs.push(files.mkdir(parent, second)?);
            }
        }
        Ok(Self::with_directories(files, RoundRobin { dirs, next: 0 }))
    }
}

impl<F: Files> Directories<F> for RoundRobin {
    fn place(&mut self, _: &mut F, _: u64, _: u32) -> Result<(DirId, u64), LayoutError> {
        let number = self.next;
        self.next += 1;
        Ok((self.dirs[(number % (FIRST * SECOND)) as usize], number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Place, fake::FakeFiles};

    #[test]
    fn the_order_of_the_directories() {
        let mut squid = Squid::new(FakeFiles::new()).unwrap();
        let path = |squid: &Squid<FakeFiles>, object| match squid.place(object) {
            Some(Place::Own { dir, .. }) => squid.files().path(dir),
            other => panic!("{other:?}"),
        };
        for object in 0..4_200 {
            squid.write(object + 1_000_000, 100, 1).unwrap();
        }
        for (number, want) in [
            (0, [0, 0]),
            (1, [0, 1]),
            (255, [0, 255]),
            (256, [1, 0]),
            (4_095, [15, 255]),
            (4_096, [0, 0]),
        ] {
            assert_eq!(path(&squid, number + 1_000_000), want, "file {number}");
        }
    }
}
