//! A document in which parts are removed or replaced. It is sent in pieces, so that memory never contains the
//! document twice.

use std::ops::Range;

/// Parts of a text, and the text that replaces each part.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(super) fn replace(&mut self, range: Range<usize>, by: String) {
        self.0.push((range, by));
    }

    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, String::new());
    }

    /// Removes items from a JSON list or object. `start` is the position after its opening bracket. For each
    /// item, `items` has the position of its end, and true if the item stays.
    pub(super) fn keep(
        &mut self,
        text: &str,
        start: usize,
        items: impl Iterator<Item = (usize, bool)>,
    ) {
        let (mut at, mut kept) = (start, false);
        for (end, stays) in items {
            if !stays {
                self.remove(at..end);
            } else if !kept && at > start {
                // All earlier items are removed, so the comma before this item is removed too.
                let comma = text[at..end].find(',').map_or(0, |comma| comma + 1);
                self.remove(at..at + comma);
            }
            kept |= stays;
            at = end;
        }
    }
}

/// A document that is being sent to clients.
#[derive(Debug)]
pub struct Body {
    text: String,
    /// The edits in order of position. They do not overlap.
    edits: std::vec::IntoIter<(Range<usize>, String)>,
    at: usize,
    /// Text that is sent before the text at `at`.
    pending: String,
    left: u64,
}

impl Body {
    pub(super) fn new(text: String, edits: Edits) -> Self {
        let mut edits = edits.0;
        edits.sort_by_key(|(range, _)| range.start);
        let (mut left, mut end) = (text.len() as u64, 0);
        edits.retain(|(range, by)| {
            let fits = range.start >= end && range.end <= text.len();
            debug_assert!(fits, "edits overlap");
            if fits {
                end = range.end;
                left = left - range.len() as u64 + by.len() as u64;
            }
            fits
        });
        Self {
            text,
            edits: edits.into_iter(),
            at: 0,
            pending: String::new(),
            left,
        }
    }

    pub(super) fn whole(text: String) -> Self {
        Self::new(text, Edits::default())
    }

    /// Returns the number of bytes that are still to be sent.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Returns the number of bytes of memory that the document needs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.capacity()
    }

    /// Returns a hash of the complete text before the edits. The `ETag` of the edited document contains this
    /// hash if the upstream sent no usable `ETag`.
    #[must_use]
    pub fn hash(&self) -> u64 {
        foxy_base::hash64(0, self.text.as_bytes())
    }

    /// Appends the next bytes to `out`. Appends about `most` bytes, or none at the end.
    pub fn next(&mut self, most: usize, out: &mut Vec<u8>) {
        let before = out.len();
        while out.len() - before < most {
            if !self.pending.is_empty() {
                out.extend_from_slice(std::mem::take(&mut self.pending).as_bytes());
                continue;
            }
            let next = self.edits.as_slice().first();
            let end = next.map_or(self.text.len(), |(range, _)| range.start);
            if self.at < end {
                let piece = (end - self.at).min(most);
                out.extend_from_slice(&self.text.as_bytes()[self.at..self.at + piece]);
                self.at += piece;
            } else if let Some((range, by)) = self.edits.next() {
                self.at = range.end;
                self.pending = by;
            } else {
                break;
            }
        }
        self.left -= (out.len() - before) as u64;
    }
}

#[cfg(test)]
pub(super) fn text_of(mut body: Body) -> String {
    let (mut out, length) = (Vec::new(), body.left());
    while body.left() > 0 {
        body.next(7, &mut out);
    }
    assert_eq!(out.len() as u64, length);
    String::from_utf8(out).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_cut_with_their_commas() {
        let text = "[ 1 ,2, 3,4 ]";
        let ends = [3, 6, 9, 11];
        for (stays, expected) in [
            ([true, true, true, true], "[ 1 ,2, 3,4 ]"),
            ([false, true, true, true], "[2, 3,4 ]"),
            ([true, false, false, true], "[ 1,4 ]"),
            ([false, false, true, false], "[ 3 ]"),
            ([true, true, true, false], "[ 1 ,2, 3 ]"),
            ([false, false, false, false], "[ ]"),
        ] {
            let mut edits = Edits::default();
            edits.keep(text, 1, ends.into_iter().zip(stays));
            assert_eq!(text_of(Body::new(text.to_owned(), edits)), expected);
        }
    }

    #[test]
    fn replacements_come_in_order() {
        let mut edits = Edits::default();
        edits.replace(8..9, "Z".repeat(20));
        edits.replace(0..0, "<".to_owned());
        edits.remove(2..4);
        let body = Body::new("abcdefghi".to_owned(), edits);
        assert_eq!(text_of(body), format!("<abefgh{}", "Z".repeat(20)));
    }
}
