//! The admin token: read from its file, or created at the first start.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use foxy_proxy::Token;

use super::StartError;
use crate::admin::Keys;
use crate::config::{Config, Right, TokenFile};

/// Number of random bytes in a token.
const BYTES: usize = 32;
/// Largest token file in bytes. A longer file is a wrong file and is not read to its end.
const FILE_MAX: u64 = 4096;

/// The credentials of the admin listener.
pub(super) fn keys(config: &Config) -> Result<Keys, StartError> {
    let rights = &config.admin_rights;
    let further = |path: &Option<PathBuf>, setting| {
        let Some(path) = path else { return Ok(None) };
        let token = read(path).map(Some);
        token.map_err(|source| StartError::FurtherToken {
            path: path.display().to_string(),
            setting,
            source,
        })
    };
    let local = config.admin.is_some_and(|admin| admin.ip().is_loopback());
    Ok(Keys {
        operate: of(config)?,
        purge: further(&rights.purge_token, "admin_purge_token_file")?,
        read: further(&rights.read_token, "admin_read_token_file")?,
        network: if local {
            rights.loopback
        } else {
            Right::Nothing
        },
        socket: rights.socket,
    })
}

/// Returns the token that the admin address accepts, and that permits purges on the other listeners. Foxy
/// does not start without this token if other machines can reach the admin address, or if the user named a
/// file.
fn of(config: &Config) -> Result<Option<Token>, StartError> {
    let file = &config.admin_token;
    match config.admin {
        Some(admin) => at_start(file, !admin.ip().is_loopback()),
        None if file.given => at_start(file, true),
        None => Ok(None),
    }
}

/// Reads the token, or creates it. If the file is not configured and the token is not `needed`, no folder is
/// created and errors are only logged.
fn at_start(file: &TokenFile, needed: bool) -> Result<Option<Token>, StartError> {
    let wanted = file.given || needed;
    let folder = file.path.parent().filter(|p| !p.as_os_str().is_empty());
    if !wanted && !folder.is_none_or(Path::exists) {
        return Ok(None);
    }
    match read_or_make(&file.path) {
        Ok(token) => Ok(Some(token)),
        Err(source) if wanted => Err(StartError::Token {
            path: file.path.display().to_string(),
            source,
        }),
        Err(error) => {
            let path = file.path.display();
            tracing::warn!(%path, %error, "there is no admin token; loopback needs none");
            Ok(None)
        }
    }
}

fn read_or_make(path: &Path) -> io::Result<Token> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let text = drawn()?;
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
        }
        // Another Foxy of the same user has created the file first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    read(path)
}

/// Reads the token in a file.
///
/// # Errors
/// An error if the file cannot be read or contains no token.
pub(crate) fn read(path: &Path) -> io::Result<Token> {
    Token::new(&read_text(path)?).ok_or_else(|| {
        let words = format!(
            "it holds no token of {} letters or more without blanks",
            Token::LENGTH_MIN
        );
        io::Error::new(io::ErrorKind::InvalidData, words)
    })
}

/// Reads the text of a token file, without surrounding blanks.
///
/// # Errors
/// An error if the file cannot be read.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(path)?;
    file.take(FILE_MAX).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// Returns random letters and digits from the system's source of randomness.
fn drawn() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    OpenOptions::new()
        .read(true)
        .open("/dev/urandom")?
        .read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, given: bool) -> TokenFile {
        TokenFile {
            path: path.to_owned(),
            given,
        }
    }

    #[test]
    fn the_first_start_makes_it_and_later_ones_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/token");
        let first = at_start(&file(&path, true), false).unwrap().unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = read_text(&path).unwrap();
        assert!(text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()));
        let sent: &[(&str, &str)] = &[("X-Foxy-Token", &text)];
        assert!(first.is_in(sent));
        let again = at_start(&file(&path, false), true).unwrap().unwrap();
        assert!(again.is_in(sent));
        let other = folder.path().join("other");
        at_start(&file(&other, true), false).unwrap();
        assert_ne!(read_text(&other).unwrap(), text);
    }

    #[test]
    fn an_unneeded_token_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foxy/token");
        assert!(at_start(&file(&path, false), false).unwrap().is_none());
        assert!(!folder.path().join("foxy").exists());
        std::fs::create_dir(folder.path().join("foxy")).unwrap();
        assert!(at_start(&file(&path, false), false).unwrap().is_some());
    }

    #[test]
    fn a_file_without_a_token_is_an_error_only_if_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for text in ["", "short\n", "two words of some length"] {
            std::fs::write(&path, text).unwrap();
            assert!(at_start(&file(&path, false), false).unwrap().is_none());
            for (given, needed) in [(true, false), (false, true)] {
                let error = at_start(&file(&path, given), needed)
                    .unwrap_err()
                    .to_string();
                assert!(
                    error.contains("holds no token") && error.contains("token_file"),
                    "{error}"
                );
            }
        }
    }
}
