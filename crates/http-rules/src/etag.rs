//! Entity tags (RFC 9110 section 8.8.3) and the two ways to compare them.

use foxy_base::{Fields, values};

/// An entity tag as it was received. It may be malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

impl<'a> ETag<'a> {
    /// Reads one tag. Bytes that are not a valid tag become a weak tag that equals only itself. So
    /// the responses of origins that omit the quotes can still be validated.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Self {
        let (weak, opaque) = match text.strip_prefix(b"W/") {
            Some(rest) if is_quoted(rest) => (true, rest),
            _ => (!is_quoted(text), text),
        };
        Self { weak, opaque }
    }

    /// True if the tag is strong. A malformed tag is never strong.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        !self.weak
    }

    /// Weak comparison: true if the opaque tags are equal.
    #[must_use]
    pub fn eq_weak(&self, other: &ETag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Strong comparison: true if the opaque tags are equal and both tags are strong.
    #[must_use]
    pub fn eq_strong(&self, other: &ETag<'_>) -> bool {
        self.is_strong() && other.is_strong() && self.opaque == other.opaque
    }
}

fn is_quoted(text: &[u8]) -> bool {
    let [b'"', inner @ .., b'"'] = text else {
        return false;
    };
    inner
        .iter()
        .all(|b| *b == 0x21 || (0x23..=0x7e).contains(b) || *b >= 0x80)
}

/// The tag of a response; `None` if there is no tag, an empty tag, or several different tags.
pub fn of<F: Fields + ?Sized>(fields: &F) -> Option<&[u8]> {
    let mut lines = values(fields, "ETag");
    let first = lines.next().filter(|tag| !tag.is_empty())?;
    lines.all(|tag| tag == first).then_some(first)
}

/// The tags in one line of a list field. Tags may contain commas inside quotes. Backslashes are not
/// escapes here (RFC 9110 section 8.8.3).
pub fn list(line: &[u8]) -> impl Iterator<Item = ETag<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            return None;
        }
        let end = tag_end(rest);
        let (tag, tail) = rest.split_at(end);
        rest = tail;
        Some(ETag::parse(tag.trim_ascii()))
    })
}

/// The end of the tag at the start of `text`: the first comma outside of quotes.
fn tag_end(text: &[u8]) -> usize {
    let mut quoted = false;
    let end = text.iter().position(|b| {
        quoted ^= *b == b'"';
        *b == b',' && !quoted
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
