//! Where the admin token is.

use std::path::PathBuf;

use super::machine::Machine;

/// Where the admin token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    /// The file.
    pub path: PathBuf,
    /// Whether the user named it.
    pub given: bool,
}

impl TokenFile {
    /// What was named, or else the file beside the default store.
    #[must_use]
    pub fn new(named: Option<&str>, machine: &dyn Machine) -> Self {
        let default = || machine.cache_folder().join("foxy").join("admin-token");
        Self {
            path: named.map_or_else(default, PathBuf::from),
            given: named.is_some(),
        }
    }
}
