//! Reads the release file of a Debian archive, `InRelease` or `Release`, while it streams, and finds the
//! digests of the index files below its folder. The file is forwarded byte for byte.

use memchr::memchr;

use crate::Found;
use crate::digest::of_hex;

/// Longest line that is examined, in bytes. Names of index files have fewer than 200 bytes.
const LINE_MAX: usize = 4 << 10;

/// The state of reading one release file.
#[derive(Debug)]
pub(crate) struct Release {
    /// Path of the file's folder on the mirror, with the slash at the end.
    folder: Vec<u8>,
    /// The bytes of the current line. Bytes beyond [`LINE_MAX`] are left out.
    line: Vec<u8>,
    /// True while the lines are entries of the field `SHA256`.
    in_digests: bool,
    /// Index files whose digests were found in the release file and not yet returned by `found`.
    found: Vec<Found>,
}

impl Release {
    /// Begins to read the file at this path of the mirror. The path may have a query.
    pub(crate) fn at(path: &[u8]) -> Self {
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let slash = path[..end].iter().rposition(|b| *b == b'/');
        Self {
            folder: slash.map_or(Vec::new(), |at| path[..=at].to_vec()),
            line: Vec::new(),
            in_digests: false,
            found: Vec::new(),
        }
    }

    /// Takes the index files that were found since the last call.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// Takes a piece of the file and appends it to `out`. A line is read when its end has arrived.
    pub(crate) fn push(&mut self, mut piece: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(piece);
        while let Some(end) = memchr(b'\n', piece) {
            self.take(&piece[..end]);
            self.end_line();
            piece = &piece[end + 1..];
        }
        self.take(piece);
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = (LINE_MAX + 1).saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        // All lines of a field except the first line begin with a space or tab.
        if !line.first().is_some_and(|b| matches!(b, b' ' | b'\t')) {
            self.in_digests = line.trim_ascii_end().eq_ignore_ascii_case(b"SHA256:");
        } else if self.in_digests && line.len() <= LINE_MAX {
            let found = entry(&self.folder, &line);
            self.found.extend(found);
        }
        line.clear();
        self.line = line;
    }
}

/// Reads a line with digest, length and name. A name that leads outside of the folder is refused.
fn entry(folder: &[u8], line: &[u8]) -> Option<Found> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let digest = of_hex(words.next()?)?;
    let (_, name, end) = (words.next()?, words.next()?, words.next());
    let mut parts = name.split(|b| *b == b'/');
    let stays = parts.all(|part| !matches!(part, b"" | b"." | b".."));
    let is_plain = !name.iter().any(|b| matches!(b, b'?' | b'#' | b'%'));
    (stays && is_plain && end.is_none()).then(|| Found {
        path: [folder, name].concat(),
        digest,
    })
}
