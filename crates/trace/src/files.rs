//! Location of the published traces. They are not part of the repository. A test or run that needs a trace
//! asks this module for the path of the trace, and reports a missing trace.

use std::path::{Path, PathBuf};

/// The environment variable that names the folder of the traces.
pub const VARIABLE: &str = "FOXY_TRACES";

/// The trace files that a test or run can request by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Boston University Computer Science 1998 client proxies, reduced to id and size.
    Bu98,
    /// First 9,999 requests of 1 July 1995 to NASA Kennedy Space Center's server.
    NasaJuly,
    /// First 9,999 requests of 1 August 1995 to NASA Kennedy Space Center's server.
    NasaAugust,
}

impl Known {
    /// All known traces.
    pub const ALL: [Self; 3] = [Self::Bu98, Self::NasaJuly, Self::NasaAugust];

    /// File name of the trace.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Bu98 => "1999-011-usertrace-98.tr.xz",
            Self::NasaJuly => "nasa_19950701.tsv.xz",
            Self::NasaAugust => "nasa_19950801.tsv.xz",
        }
    }

    /// Path of the trace in the folder of the traces.
    ///
    /// # Errors
    /// If the file is missing, returns a sentence that names the folder that was searched.
    pub fn path(self) -> Result<PathBuf, String> {
        find(self.file_name())
    }
}

/// Path of a file in the folder that [`VARIABLE`] names. If the variable is not set, the folder is
/// `../shared/traces` beside the workspace.
///
/// # Errors
/// If the file is missing, returns a sentence that names the folder that was searched.
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

/// The folder `../shared/traces`. The path is relative to the source tree if cargo runs the program,
/// otherwise to the working directory.
fn beside_workspace() -> PathBuf {
    let relative = Path::new("../shared/traces");
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(crate_dir) => Path::new(&crate_dir).join("../..").join(relative),
        None => relative.to_owned(),
    }
}
