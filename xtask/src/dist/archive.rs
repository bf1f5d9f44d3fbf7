//! Makes archives whose bytes depend only on their contents: entries are sorted, owners are numbers, and all
//! entries have the same time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Command;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::workspace::root;

/// A folder, or a file with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A folder.
    Folder,
    /// A file with these bytes.
    File(Vec<u8>),
}

/// A tree of files, by path without a leading slash. Folders above a file are added automatically.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

#[derive(Debug, Clone)]
struct Entry {
    node: Node,
    mode: u32,
    owner: u32,
}

impl Tree {
    /// Adds a file that belongs to root.
    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.add(path, Node::File(bytes.into()), (mode, 0));
    }

    /// Adds a folder that belongs to the user with the number `owner`.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: u32) {
        self.add(path, Node::Folder, (mode, owner));
    }

    fn add(&mut self, path: &str, node: Node, (mode, owner): (u32, u32)) {
        for (end, _) in path.match_indices('/') {
            let above = path[..end].to_owned();
            self.0.entry(above).or_insert(Entry {
                node: Node::Folder,
                mode: 0o755,
                owner: 0,
            });
        }
        self.0.insert(path.to_owned(), Entry { node, mode, owner });
    }

    /// Paths and contents of all files, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, entry)| match &entry.node {
            Node::File(bytes) => Some((path.as_str(), &bytes[..])),
            Node::Folder => None,
        })
    }

    /// Returns the space that the tree takes on a disk, in KiB, as Debian counts it.
    pub(super) fn installed_kib(&self) -> u64 {
        let size = |entry: &Entry| match &entry.node {
            Node::File(bytes) => (bytes.len() as u64).div_ceil(1024),
            Node::Folder => 1,
        };
        self.0.values().map(size).sum()
    }

    /// The tree as a tar file.
    pub(super) fn tar(&self, time: u64) -> io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner.into());
            header.set_gid(entry.owner.into());
            header.set_mtime(time);
            match &entry.node {
                Node::Folder => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Node::File(bytes) => {
                    header.set_size(bytes.len() as u64);
                    tar.append_data(&mut header, path, &bytes[..])?;
                }
            }
        }
        tar.into_inner()
    }
}

/// Compresses with gzip. The gzip header contains neither a name nor a time.
pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = GzBuilder::new().write(Vec::new(), Compression::best());
    out.write_all(bytes)?;
    out.finish()
}

/// Compresses with xz at its default level.
pub(super) fn xz(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = xz2::write::XzEncoder::new(Vec::new(), 6);
    out.write_all(bytes)?;
    out.finish()
}

/// SHA-256 in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The time of all entries in an archive, in seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the
/// last commit, or 0.
pub(super) fn source_time() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let committed = || {
        let mut git = Command::new("git");
        git.current_dir(root()).args(["log", "-1", "--format=%ct"]);
        let output = git.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let text = given.or_else(committed).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(turned: bool) -> Tree {
        let mut tree = Tree::default();
        let mut names = ["etc/foxy/foxy.toml", "usr/bin/foxy"];
        if turned {
            names.reverse();
        }
        for name in names {
            tree.file(name, 0o644, name.as_bytes());
        }
        tree.folder("var/lib/foxy", 0o750, 7);
        tree
    }

    #[test]
    fn bytes_depend_on_contents_alone() {
        let one = tree(false).tar(99).unwrap();
        assert_eq!(one, tree(true).tar(99).unwrap());
        assert_eq!(gzip(&one).unwrap(), gzip(&one).unwrap());
        let mut archive = tar::Archive::new(&one[..]);
        let paths: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), 99);
                let path = entry.path().unwrap().display().to_string();
                (path, header.uid().unwrap())
            })
            .collect();
        assert_eq!(paths.first().unwrap().0, "etc/");
        assert_eq!(paths.iter().filter(|(_, owner)| *owner == 7).count(), 1);
        assert!(paths.iter().any(|(path, _)| path == "usr/bin/"));
    }

    #[test]
    fn checksums() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }
}
