//! Entity tags (RFC 9110 section 8.8.3) and their two comparisons.

use foxy_base::{Fields, values};

/// An entity tag as it came; perhaps malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

impl<'a> ETag<'a> {
    /// Reads one tag. Bytes that are not a valid tag become a weak tag that equals only itself. So
    /// responses of origins that forget the quotes can still be validated.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Self {
        let (weak, opaque) = match text.strip_prefix(b"W/") {
            Some(rest) if is_quoted(rest) => (true, rest),
            _ => (!is_quoted(text), text),
        };
        Self { weak, opaque }
    }

    /// True if it is strong (and well-formed).
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        !self.weak
    }

    /// Weak comparison: same opaque tag.
    #[must_use]
    pub fn eq_weak(&self, other: &ETag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Strong comparison: same opaque tag and both strong.
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

/// The tag of a response; `None` if it has none, an empty one, or several different ones.
pub fn of<F: Fields + ?Sized>(fields: &F) -> Option<&[u8]> {
    let mut lines = values(fields, "ETag");
    let first = lines.next().filter(|tag| !tag.is_empty())?;
    lines.all(|tag| tag == first).then_some(first)
}

/// The tags of a list field line, which may contain commas inside quotes. Backslashes do not
/// escape here (RFC 9110 section 8.8.3).
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

/// End of the tag at the start of `text`: the first comma outside quotes.
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
