//! The files of an installation with their digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The path of each file of an installation, and the digest of its contents.
pub(super) type Files = BTreeMap<PathBuf, [u8; 32]>;

/// Returns all files below `folder`, except files whose names are in `but`.
pub(super) fn below(folder: &Path, but: &[&str]) -> Result<Files, String> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let wrong = |error: std::io::Error| format!("{}: {error}", next.display());
        for entry in std::fs::read_dir(&next).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let path = entry.path();
            let kind = entry.file_type().map_err(wrong)?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !but.iter().any(|name| entry.file_name() == *name) {
                let bytes = std::fs::read(&path).map_err(wrong)?;
                let name = path.strip_prefix(folder).unwrap_or(&path).to_path_buf();
                files.insert(name, Sha256::digest(bytes).into());
            }
        }
    }
    Ok(files)
}

/// # Errors
/// Returned if a file is missing, different, or only in `got`. The error contains the name of the file.
pub(super) fn same(expected: &Files, got: &Files) -> Result<(), String> {
    let names = expected.keys().chain(got.keys());
    match names
        .into_iter()
        .find(|name| expected.get(*name) != got.get(*name))
    {
        Some(name) => Err(format!(
            "{} is {}",
            name.display(),
            match (expected.get(name), got.get(name)) {
                (Some(_), None) => "missing",
                (None, _) => "too much",
                _ => "different",
            }
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_difference_is_named() {
        let files = |names: &[(&str, u8)]| -> Files {
            names
                .iter()
                .map(|(name, byte)| (name.into(), [*byte; 32]))
                .collect()
        };
        let expected = files(&[("a", 1), ("b", 2)]);
        assert_eq!(same(&expected, &expected), Ok(()));
        for (got, word) in [
            (&[("a", 1)][..], "b is missing"),
            (&[("a", 1), ("b", 3)], "b is different"),
            (&[("a", 1), ("b", 2), ("c", 3)], "c is too much"),
        ] {
            assert_eq!(same(&expected, &files(got)), Err(word.to_owned()));
        }
    }
}
