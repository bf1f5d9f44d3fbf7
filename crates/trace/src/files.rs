//! Location of the published traces. They are not part of the repository: a test or a run that
//! wants one asks here and reports when it is absent.

use std::path::{Path, PathBuf};

/// The environment variable that names their folder.
pub const VARIABLE: &str = "FOXY_TRACES";

/// The trace files that are known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Boston University Computer Science 1998 client proxies, reduced to id and size.
    Bu98,
    /// First 9,999 requests of 1 July 1995 to NASA Kennedy Space Center's server.
    NasaJuly,
    /// First 9,999 requests of 1 August 1995 to the same.
    NasaAugust,
}

impl Known {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bu98, Self::NasaJuly, Self::NasaAugust];

    /// Its file name.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Bu98 => "1999-011-usertrace-98.tr.xz",
            Self::NasaJuly => "nasa_19950701.tsv.xz",
            Self::NasaAugust => "nasa_19950801.tsv.xz",
        }
    }

    /// Its path in the traces' folder.
    ///
    /// # Errors
    /// A sentence that says where it was looked for.
    pub fn path(self) -> Result<PathBuf, String> {
        find(self.file_name())
    }
}

/// The path of a file in the folder named by [`VARIABLE`], else in `../shared/traces` beside the
/// workspace.
///
/// # Errors
/// A sentence that says where it was looked for.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var_os(VARIABLE).map_or_else(beside_workspace, PathBuf::from);
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!(
            "trace {name} is not in {}; set {VARIABLE} to the folder that has it",
            folder.display()
        ))
    }
}

/// `../shared/traces` seen from the workspace: from the source tree when run by cargo, else from
/// the working directory.
fn beside_workspace() -> PathBuf {
    let relative = Path::new("../shared/traces");
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(crate_dir) => Path::new(&crate_dir).join("../..").join(relative),
        None => relative.to_owned(),
    }
}
