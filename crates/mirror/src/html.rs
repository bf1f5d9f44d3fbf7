//! Rewrites the links (`href` of `<a>`) of an HTML document while the document streams. All other bytes are
//! forwarded unchanged.

use memchr::memchr;

use crate::Found;
use crate::digest::of_fragment;
use crate::json::Map;

/// Longest tag that is examined, in bytes. Longer tags are forwarded unchanged.
const TAG_MAX: usize = 16 << 10;

/// The rewriting of one HTML document.
#[derive(Debug, Default)]
pub(crate) struct Html {
    /// The bytes of the current tag, from its `<` on. Empty outside of tags.
    tag: Vec<u8>,
    /// The quote that is open in the current tag.
    quote: Option<u8>,
    /// Artefacts (files of packages) whose digests were found in the document and not yet returned by
    /// `found`.
    found: Vec<Found>,
}

impl Html {
    /// Takes the artefacts that were found since the last call.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// Takes a piece of the document and appends its rewritten form.
    pub(crate) fn push(&mut self, mut piece: &[u8], map: Map<'_>, out: &mut Vec<u8>) {
        while let Some(first) = piece.first() {
            if self.tag.is_empty() {
                let start = memchr(b'<', piece).unwrap_or(piece.len());
                out.extend_from_slice(&piece[..start]);
                if start < piece.len() {
                    self.tag.push(b'<');
                }
                piece = &piece[(start + 1).min(piece.len())..];
                continue;
            }
            if *first == b'<' && self.quote.is_none() {
                // The text that began at the previous `<` was not a tag.
                out.append(&mut self.tag);
                continue;
            }
            self.tag.push(*first);
            piece = &piece[1..];
            if !may_be_link(&self.tag) || self.tag.len() > TAG_MAX {
                self.quote = None;
                out.append(&mut self.tag);
                continue;
            }
            match (self.quote, *first) {
                (Some(quote), byte) if byte == quote => self.quote = None,
                (None, b'"' | b'\'') => self.quote = Some(*first),
                (None, b'>') => {
                    self.found.extend(link(&self.tag, map, out));
                    self.tag.clear();
                }
                _ => {}
            }
        }
    }

    /// Ends the document. The bytes of an incomplete tag are written unchanged.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.tag);
        self.quote = None;
    }
}

/// Returns true if a tag that begins with these bytes may be a link.
fn may_be_link(tag: &[u8]) -> bool {
    match tag {
        [_] => true,
        [_, b'a' | b'A'] => true,
        [_, b'a' | b'A', space, ..] => space.is_ascii_whitespace(),
        _ => false,
    }
}

/// Writes a link. If `map` returns a path for its URL, the URL is replaced. Returns the artefact if the link
/// contains its digest.
fn link(tag: &[u8], (base, map): Map<'_>, out: &mut Vec<u8>) -> Option<Found> {
    let changed = href(tag).and_then(|(start, end)| Some((start, end, map(&tag[start..end])?)));
    let Some((start, end, path)) = changed else {
        out.extend_from_slice(tag);
        return None;
    };
    out.extend_from_slice(&tag[..start]);
    out.extend_from_slice(base);
    out.extend_from_slice(&path);
    out.extend_from_slice(&tag[end..]);
    Some(Found::new(&path, of_fragment(&tag[start..end])?))
}

/// Returns the start and the end of the value of the first `href` of a tag.
pub(crate) fn href(tag: &[u8]) -> Option<(usize, usize)> {
    let find = |from: usize, is: &dyn Fn(u8) -> bool| {
        let found = tag.get(from..)?.iter().position(|byte| is(*byte));
        found.map(|at| from + at)
    };
    let is_end = |byte: u8| byte.is_ascii_whitespace() || byte == b'>';
    let mut at = 2;
    loop {
        at = find(at, &|byte| !byte.is_ascii_whitespace() && byte != b'/')?;
        let name_end = find(at, &|byte| is_end(byte) || matches!(byte, b'=' | b'/'))?;
        let is_href = tag[at..name_end].eq_ignore_ascii_case(b"href");
        // In HTML, a name may begin with `=`. No tag of an index has such a name, so the tag is not examined
        // further.
        if name_end == at {
            return None;
        }
        at = find(name_end, &|byte| !byte.is_ascii_whitespace())?;
        if tag[at] != b'=' {
            if is_href {
                return None;
            }
            continue;
        }
        at = find(at + 1, &|byte| !byte.is_ascii_whitespace())?;
        let (start, end, next) = match tag[at] {
            quote @ (b'"' | b'\'') => {
                let end = find(at + 1, &|byte| byte == quote)?;
                (at + 1, end, end + 1)
            }
            _ => {
                let end = find(at, &is_end)?;
                (at, end, end)
            }
        };
        if is_href {
            return Some((start, end));
        }
        at = next;
    }
}
