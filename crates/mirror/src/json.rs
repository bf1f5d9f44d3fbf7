//! Rewrites strings of a JSON document while it streams. No tree is built. Memory contains only one word for
//! each open bracket, and the current string if it must be examined. Such a string may be the name of a
//! member, a URL, a digest, or the name or version of a crate.

use memchr::memchr2;

use crate::digest::{of_hex, of_integrity};
use crate::versions::crate_path;
use crate::{Digest, Found, Mirror, Transform};

/// Longest string that is examined, in bytes. Longer strings are forwarded unchanged.
const TEXT_MAX: usize = 8 << 10;
/// Longest name that is compared, in bytes.
const NAME_MAX: usize = 16;
/// Deepest nesting of brackets whose contents are examined.
const DEPTH_MAX: usize = 64;

/// Names of members on which the rewriting depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Other,
    Cksum,
    Dist,
    Dl,
    Files,
    Hashes,
    Integrity,
    Package,
    Sha256,
    Tarball,
    Url,
    Vers,
    Versions,
}

impl Name {
    fn of(text: &[u8]) -> Self {
        match text {
            b"cksum" => Self::Cksum,
            b"dist" => Self::Dist,
            b"dl" => Self::Dl,
            b"files" => Self::Files,
            b"hashes" => Self::Hashes,
            b"integrity" => Self::Integrity,
            b"name" => Self::Package,
            b"sha256" => Self::Sha256,
            b"tarball" => Self::Tarball,
            b"url" => Self::Url,
            b"vers" => Self::Vers,
            b"versions" => Self::Versions,
            _ => Self::Other,
        }
    }
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct Open {
    is_object: bool,
    /// The name of the member whose value begins with this bracket. Elements of a list have the name of the
    /// list.
    name: Name,
}

/// The part of the document to which the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Outside of strings.
    Nothing,
    /// A string that is forwarded unchanged.
    Passing,
    /// The name of a member. It is forwarded, and kept for comparison.
    Name,
    /// A string that is examined. It is kept until its end.
    Kept,
}

/// The rewriting of one JSON document.
#[derive(Debug)]
pub(crate) struct Json {
    transform: Transform,
    open: Vec<Open>,
    /// Number of open brackets beyond [`DEPTH_MAX`].
    deeper: usize,
    within: Within,
    after_backslash: bool,
    text: Vec<u8>,
    /// The name of the current member. If `wants_name` is true, the next string is the name of another
    /// member.
    name: Name,
    wants_name: bool,
    /// Path and digest of the artefact (file of a package) whose JSON object is being read. For a crate,
    /// `path` is the name of the crate, and `version` is its version.
    path: Option<Vec<u8>>,
    version: Option<Vec<u8>>,
    digest: Option<Digest>,
    /// Artefacts whose digests were found in the document and not yet returned by `found`.
    found: Vec<Found>,
}

/// The replacement of URLs: a base (scheme and authority of the mirror), and a function that returns the new
/// path of a URL. The function returns `None` if the URL stays.
pub(crate) type Map<'a> = (&'a [u8], &'a dyn Fn(&[u8]) -> Option<Vec<u8>>);

impl Json {
    pub(crate) fn new(transform: Transform) -> Self {
        Self {
            transform,
            open: Vec::new(),
            deeper: 0,
            within: Within::Nothing,
            after_backslash: false,
            text: Vec::new(),
            name: Name::Other,
            wants_name: false,
            path: None,
            version: None,
            digest: None,
            found: Vec::new(),
        }
    }

    /// Takes the artefacts that were found since the last call.
    pub(crate) fn found(&mut self, mirror: &Mirror) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.found);
        if self.transform == Transform::Crates {
            for found in &mut found {
                found.path.splice(..0, mirror.prefix.bytes());
            }
        }
        found
    }

    /// Takes a piece of the document and appends its rewritten form.
    pub(crate) fn push(&mut self, mut piece: &[u8], map: Map<'_>, out: &mut Vec<u8>) {
        while let Some(first) = piece.first() {
            let taken = match self.within {
                Within::Nothing => {
                    out.push(*first);
                    self.between(*first);
                    1
                }
                _ => self.string(piece, map, out),
            };
            piece = &piece[taken..];
        }
    }

    /// Ends the document. The bytes of an incomplete string are written unchanged.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.within == Within::Kept {
            out.append(&mut self.text);
        }
        self.within = Within::Passing;
    }

    /// Processes a byte that is outside of strings.
    fn between(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.text.clear();
                self.within = if self.wants_name {
                    Within::Name
                } else if self.is_wanted() {
                    Within::Kept
                } else {
                    Within::Passing
                };
            }
            b'{' | b'[' => {
                let name = match self.open.last() {
                    Some(open) if !open.is_object => open.name,
                    _ => self.name,
                };
                let is_object = byte == b'{';
                if self.open.len() < DEPTH_MAX {
                    self.open.push(Open { is_object, name });
                } else {
                    self.deeper += 1;
                }
                self.name = Name::Other;
                self.wants_name = is_object && self.deeper == 0;
                if self.is_artefact() {
                    (self.path, self.version, self.digest) = (None, None, None);
                }
            }
            b'}' | b']' => {
                if self.is_artefact() {
                    self.end_artefact();
                }
                if self.deeper > 0 {
                    self.deeper -= 1;
                } else {
                    self.open.pop();
                }
                (self.name, self.wants_name) = (Name::Other, false);
            }
            b':' => self.wants_name = false,
            b',' => {
                let in_object = self.open.last().is_some_and(|open| open.is_object);
                self.wants_name = in_object && self.deeper == 0;
            }
            // Each line of an index of crates is a new document, even if the line before was
            // incomplete.
            b'\n' if self.transform == Transform::Crates => {
                (self.open, self.deeper) = (Vec::new(), 0);
                (self.name, self.wants_name) = (Name::Other, false);
            }
            _ => {}
        }
    }

    fn end_artefact(&mut self) {
        let (path, version) = (self.path.take(), self.version.take());
        let (Some(path), Some(digest)) = (path, self.digest.take()) else {
            return;
        };
        match (self.transform, version) {
            (Transform::Crates, version) => {
                let path = version.and_then(|version| crate_path(&path, &version));
                self.found.extend(path.map(|path| Found { path, digest }));
            }
            _ => self.found.push(Found::new(&path, digest)),
        }
    }

    /// Returns true if the innermost open bracket is the object of an artefact.
    fn is_artefact(&self) -> bool {
        let open = &self.open[..];
        if self.deeper > 0 || !open.last().is_some_and(|open| open.is_object) {
            return false;
        }
        let is = |at: usize, name| open.get(at).is_some_and(|open| open.name == name);
        match (self.transform, open.len()) {
            (Transform::Cargo | Transform::Crates, depth) => depth == 1,
            // A document is one version (depth 2), or a packument with many versions (depth 4). In a
            // packument, `open[2]` is a version, which may have any name. So this name is not compared.
            (Transform::Npm, 2) => is(1, Name::Dist),
            (Transform::Npm, 4) => is(1, Name::Versions) && is(3, Name::Dist),
            // An element of a list has the name of the list.
            (Transform::Pypi, 3) => is(1, Name::Files) && is(2, Name::Files) && !open[1].is_object,
            _ => false,
        }
    }

    /// Returns true if the innermost open bracket contains the digests of an artefact.
    fn has_digests(&self) -> bool {
        let is = |at: usize, name| self.open.get(at).is_some_and(|open| open.name == name);
        self.transform == Transform::Pypi
            && self.deeper == 0
            && self.open.len() == 4
            && is(1, Name::Files)
            && is(2, Name::Files)
            && is(3, Name::Hashes)
    }

    /// Returns true if the string that begins now must be examined ([`Within::Kept`]): it may be a URL, a
    /// digest, or the name or version of a crate.
    fn is_wanted(&self) -> bool {
        match (self.transform, self.name) {
            (Transform::Cargo, Name::Dl)
            | (Transform::Crates, Name::Package | Name::Vers | Name::Cksum)
            | (Transform::Npm, Name::Tarball | Name::Integrity)
            | (Transform::Pypi, Name::Url) => self.is_artefact(),
            (Transform::Pypi, Name::Sha256) => self.has_digests(),
            _ => false,
        }
    }

    /// Processes bytes of a string, up to the end of the string or of an escape. Returns the number of bytes
    /// processed.
    fn string(&mut self, piece: &[u8], map: Map<'_>, out: &mut Vec<u8>) -> usize {
        if self.after_backslash {
            self.after_backslash = false;
            self.take(&piece[..1], out);
            return 1;
        }
        let Some(end) = memchr2(b'"', b'\\', piece) else {
            self.take(piece, out);
            return piece.len();
        };
        if piece[end] == b'\\' {
            self.after_backslash = true;
            self.take(&piece[..=end], out);
        } else {
            self.take(&piece[..end], out);
            self.end_string(map, out);
        }
        end + 1
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.within {
            Within::Nothing | Within::Passing => out.extend_from_slice(bytes),
            Within::Name => {
                out.extend_from_slice(bytes);
                // A longer name is cut after `NAME_MAX + 1` bytes. All names that are compared are shorter
                // than this, so a cut name equals none of them.
                let room = (NAME_MAX + 1).saturating_sub(self.text.len());
                self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Within::Kept if self.text.len() + bytes.len() > TEXT_MAX => {
                out.append(&mut self.text);
                out.extend_from_slice(bytes);
                self.within = Within::Passing;
            }
            Within::Kept => self.text.extend_from_slice(bytes),
        }
    }

    fn end_string(&mut self, (base, map): Map<'_>, out: &mut Vec<u8>) {
        match self.within {
            Within::Name => self.name = Name::of(&self.text),
            Within::Kept => {
                let path = match self.name {
                    Name::Sha256 | Name::Cksum => {
                        self.digest = of_hex(&self.text);
                        None
                    }
                    Name::Integrity => {
                        self.digest = of_integrity(&self.text);
                        None
                    }
                    Name::Package => {
                        self.path = Some(self.text.clone());
                        None
                    }
                    Name::Vers => {
                        self.version = Some(self.text.clone());
                        None
                    }
                    _ => {
                        self.path = unescaped(&self.text).and_then(|url| map(&url));
                        self.path.as_ref()
                    }
                };
                match path {
                    Some(path) => {
                        out.extend_from_slice(base);
                        out.extend_from_slice(path);
                    }
                    None => out.append(&mut self.text),
                }
            }
            Within::Nothing | Within::Passing => {}
        }
        out.push(b'"');
        self.within = Within::Nothing;
    }
}

/// Returns the text of a string. Returns `None` if the string has an escape other than `\/`.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'/') => out.push(b'/'),
                _ => return None,
            },
            _ => out.push(*byte),
        }
    }
    Some(out)
}
