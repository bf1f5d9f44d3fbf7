//! The layout MULTIPLE-DIRS.
//!
//! Rule (USITS'99 section 3): there is one directory for each origin server, all on one level. Each object
//! has one file, in the directory of its server.

use hashbrown::HashMap;

use super::{
    LayoutError,
    one_file_each::{Directories, OneFileEach},
};
use crate::model::{DirId, Files};

/// The directories made so far.
#[derive(Clone, Debug, Default)]
pub struct ByServer(HashMap<u32, DirId>);

/// The layout MULTIPLE-DIRS.
pub type MultipleDirs<F> = OneFileEach<F, ByServer>;

impl<F: Files> MultipleDirs<F> {
    /// Creates an empty layout. The directory of a server is created when the server first occurs.
    pub fn new(files: F) -> Self {
        Self::with_directories(files, ByServer::default())
    }
}

impl<F: Files> Directories<F> for ByServer {
    fn place(
        &mut self,
        files: &mut F,
        object: u64,
        server: u32,
    ) -> Result<(DirId, u64), LayoutError> {
        if let Some(dir) = self.0.get(&server) {
            return Ok((*dir, object));
        }
        let dir = files.mkdir(files.root(), u64::from(server))?;
        self.0.insert(server, dir);
        Ok((dir, object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Place, fake::FakeFiles};

    #[test]
    fn a_directory_for_each_server() {
        let mut layout = MultipleDirs::new(FakeFiles::new());
        let servers = [5, 9, 5];
        for (object, server) in servers.into_iter().enumerate() {
            layout.write(object as u64, 10, server).unwrap();
        }
        for (object, server) in servers.into_iter().enumerate() {
            let Some(Place::Own { dir, name }) = layout.place(object as u64) else {
                panic!()
            };
            assert_eq!(layout.files().path(dir), [u64::from(server)]);
            assert_eq!(name, object as u64);
        }
    }
}
