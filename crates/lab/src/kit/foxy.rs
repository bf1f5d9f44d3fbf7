//! Foxy as a child process, with its defaults.

use std::path::{Path, PathBuf};

use super::{Child, Launch, free_port};

/// Mode of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The client names the destination.
    Forward,
    /// The proxy stands in front of one origin.
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
}

/// The `foxy` beside the running program, or else the one on the search path.
#[must_use]
pub fn beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let found = own.with_file_name("foxy");
    match found.is_file() {
        true => found,
        false => PathBuf::from("foxy"),
    }
}

/// Starts Foxy before the origin on `origin`, with a store in `folder`.
///
/// # Errors
/// As [`Child::start`].
pub fn foxy(program: &Path, mode: Mode, origin: u16, folder: &Path) -> Result<Child, String> {
    let port = free_port()?;
    let mut args: Vec<String> = ["serve", "--admin", "off", "--access-log", "off"]
        .map(str::to_owned)
        .to_vec();
    args.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
    args.extend(["--memory".to_owned(), "256MiB".to_owned()]);
    let store = folder.join("store").to_string_lossy().into_owned();
    args.extend(["--store".to_owned(), store]);
    args.extend(["--store-size".to_owned(), "256MiB".to_owned()]);
    if mode == Mode::Reverse {
        args.extend(["--origin".to_owned(), format!("http://127.0.0.1:{origin}")]);
    }
    Child::start(&Launch::new(program.to_path_buf(), args), folder, port)
}
