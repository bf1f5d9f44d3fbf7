//! Location of the admin token.

use std::path::PathBuf;

use super::machine::Machine;

/// Location of the admin token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    /// The file.
    pub path: PathBuf,
    /// True if the user named the file.
    pub given: bool,
}

impl TokenFile {
    /// Returns the named file, or else the default file in the state folder.
    #[must_use]
    pub fn new(named: Option<&str>, machine: &dyn Machine) -> Self {
        let default = || machine.state_folder().join("admin-token");
        Self {
            path: named.map_or_else(default, PathBuf::from),
            given: named.is_some(),
        }
    }
}
