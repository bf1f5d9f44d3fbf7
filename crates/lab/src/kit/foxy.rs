//! Foxy as a child process, with its defaults.

use std::path::{Path, PathBuf};

use super::{Child, Launch, free_port};

/// Mode of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The client names the destination.
    Forward,
    /// The proxy is in front of one origin.
    Reverse,
}

impl Mode {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }

    /// Scheme of the URLs in requests; `None`: requests contain only paths.
    #[must_use]
    pub const fn scheme(self) -> Option<&'static str> {
        match self {
            Self::Forward => Some("http"),
            Self::Reverse => None,
        }
    }
}

/// Returns the `foxy` in the folder of the running program. If there is none, returns the name `foxy`, which
/// is found by PATH.
#[must_use]
pub fn beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let found = own.with_file_name("foxy");
    match found.is_file() {
        true => found,
        false => PathBuf::from("foxy"),
    }
}

/// Starts Foxy in front of the origin on port `origin`, with a store in `folder`.
///
/// # Errors
/// The same errors as those of [`Child::start`].
pub fn foxy(program: &Path, mode: Mode, origin: u16, folder: &Path) -> Result<Child, String> {
    let port = free_port()?;
    let mut args = vec!["serve".to_owned()];
    args.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
    args.extend(settings(folder));
    if mode == Mode::Reverse {
        args.extend(["--origin".to_owned(), format!("http://127.0.0.1:{origin}")]);
    }
    Child::start(&Launch::new(program.to_path_buf(), args), folder, port)
}

/// Arguments of every Foxy under test.
pub(super) fn settings(folder: &Path) -> Vec<String> {
    let store = folder.join("store").to_string_lossy().into_owned();
    let off = ["--admin", "off", "--access-log", "off"];
    let sizes = [
        "--memory",
        "256MiB",
        "--store-size",
        "256MiB",
        "--store",
        &store,
    ];
    off.into_iter().chain(sizes).map(str::to_owned).collect()
}
