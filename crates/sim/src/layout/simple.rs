//! The layout SIMPLE (also called SINGLE-DIRECTORY).
//!
//! Rule (USITS'99 section 3): every object is a separate file, and all files are in one directory.

use super::{
    LayoutError,
    one_file_each::{Directories, OneFileEach},
};
use crate::model::{DirId, Files};

/// The single directory.
#[derive(Clone, Copy, Debug)]
pub struct OneDirectory(DirId);

/// The layout SIMPLE.
pub type Simple<F> = OneFileEach<F, OneDirectory>;

impl<F: Files> Simple<F> {
    /// Creates an empty layout and its directory.
    ///
    /// # Errors
    /// Returns the first error of the file system.
    pub fn new(mut files: F) -> Result<Self, LayoutError> {
        let dir = files.mkdir(files.root(), 0)?;
        Ok(Self::with_directories(files, OneDirectory(dir)))
    }
}

impl<F: Files> Directories<F> for OneDirectory {
    fn place(&mut self, _: &mut F, object: u64, _: u32) -> Result<(DirId, u64), LayoutError> {
        Ok((self.0, object))
    }
}
