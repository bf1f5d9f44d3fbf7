//! The list of the stores that were open in the last run of this configuration. It is kept in the state
//! folder.
//!
//! A store that was missing in a run does not know which of its objects were replaced or purged in that run.
//! The stores that were present note on their disks that this store was missing. This note does not help if
//! no store was present, or if the stores with the note are absent at the next start. Each start therefore
//! writes a list of the present stores before it serves any request. Adding or taking out a store later
//! changes the list. A store that is not on the list of the last run begins empty.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use foxy_base::hash64;

use crate::config::StoreConfig;

/// The first line of the file.
const HEAD: &str =
    "stores of the last run, by identity; removing this file makes Foxy believe them all";
/// Largest size of the file in bytes. Foxy does not write a longer file.
const FILE_MAX: u64 = 64 << 10;

/// The list of one configuration.
#[derive(Debug)]
pub(super) struct Roster {
    file: PathBuf,
    /// The stores in the list that was read or written last. `None` if no list could be read.
    known: Option<Vec<[u8; 16]>>,
}

impl Roster {
    /// Reads the list for these stores. The paths of the stores determine the name of its file. A list that
    /// cannot be read counts as missing.
    pub(super) fn read(folder: &Path, stores: &[StoreConfig]) -> Self {
        let mut paths: Vec<_> = stores.iter().map(|store| absolute(&store.path)).collect();
        paths.sort();
        let named = paths.join(&b'\n');
        let file = folder.join(format!("stores-{:016x}", hash64(0, &named)));
        let known = match read(&file) {
            Ok(known) => Some(known),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(file = %file.display(), %error, "which stores the last run had is not known");
                }
                None
            }
        };
        Self { file, known }
    }

    /// Returns the stores in `found` that are not on the list of the last run.
    pub(super) fn strangers(&self, found: &[[u8; 16]]) -> Vec<[u8; 16]> {
        let Some(known) = &self.known else {
            return Vec::new();
        };
        let new = found.iter().filter(|uuid| !known.contains(uuid));
        new.copied().collect()
    }

    /// Returns the number of stores of the last run that are not in `here`.
    pub(super) fn missing(&self, here: &[[u8; 16]]) -> usize {
        let known = self.known.iter().flatten();
        known.filter(|uuid| !here.contains(uuid)).count()
    }

    /// Writes a list of the stores `here` durably, if it differs from the last list.
    pub(super) fn write(&mut self, here: &[[u8; 16]]) -> io::Result<()> {
        let mut here = here.to_vec();
        here.sort_unstable();
        if self.known.as_ref() == Some(&here) {
            return Ok(());
        }
        let mut text = format!("{HEAD}\n");
        for uuid in &here {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:032x}", u128::from_be_bytes(*uuid));
        }
        let folder = self.file.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let new = self.file.with_extension("new");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &self.file)?;
        std::fs::File::open(folder)?.sync_all()?;
        self.known = Some(here);
        Ok(())
    }
}

fn absolute(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.as_os_str().as_bytes().to_vec()
}

fn read(file: &Path) -> io::Result<Vec<[u8; 16]>> {
    if std::fs::metadata(file)?.len() > FILE_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let text = std::fs::read_to_string(file)?;
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let uuid = |line: &str| {
        let number = u128::from_str_radix(line, 16)
            .ok()
            .filter(|_| line.len() == 32);
        number
            .map(u128::to_be_bytes)
            .ok_or(io::ErrorKind::InvalidData.into())
    };
    let mut known = lines.map(uuid).collect::<io::Result<Vec<_>>>()?;
    known.sort_unstable();
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(path: &str) -> StoreConfig {
        StoreConfig {
            path: PathBuf::from(path),
            named: true,
            size: 1 << 30,
            size_given: true,
            reads: foxy_store::ReadMode::Auto,
        }
    }

    #[test]
    fn a_list_is_of_one_configuration_and_survives() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let two = [store("/b"), store("/a")];
        let mut roster = Roster::read(&state, &two);
        assert!(roster.strangers(&[[1; 16]]).is_empty(), "nothing is known");
        assert_eq!(roster.missing(&[]), 0);
        roster.write(&[[2; 16], [1; 16]]).unwrap();
        let mut again = Roster::read(&state, &[store("/a"), store("/b")]);
        assert_eq!(again.strangers(&[[1; 16], [3; 16]]), [[3; 16]]);
        assert_eq!(again.missing(&[[1; 16]]), 1);
        let other = Roster::read(&state, &[store("/a")]);
        assert!(
            other.strangers(&[[3; 16]]).is_empty(),
            "another configuration"
        );
        again.write(&[]).unwrap();
        let last = Roster::read(&state, &two);
        assert_eq!(last.strangers(&[[1; 16]]), [[1; 16]], "nobody was there");
    }

    #[test]
    fn a_damaged_list_is_none_and_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let stores = [store("/a")];
        let mut roster = Roster::read(folder.path(), &stores);
        roster.write(&[[1; 16]]).unwrap();
        for text in [
            "",
            "other\n",
            &format!("{HEAD}\n01\n"),
            &format!("{HEAD}\nzz\n"),
        ] {
            std::fs::write(&roster.file, text).unwrap();
            let mut read = Roster::read(folder.path(), &stores);
            assert!(read.known.is_none(), "{text}");
            read.write(&[[1; 16]]).unwrap();
            assert!(Roster::read(folder.path(), &stores).known.is_some());
        }
        let mut nowhere = Roster::read(Path::new("/proc/nowhere"), &stores);
        assert!(nowhere.write(&[]).is_err());
    }
}
