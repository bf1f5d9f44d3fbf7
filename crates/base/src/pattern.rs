//! Patterns in which `*` stands for any number of characters, including none. All other characters
//! stand for themselves.

/// A pattern over bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<[u8]>);

impl Pattern {
    /// Reads a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.as_bytes().into())
    }

    /// Reads a pattern as [`new`](Self::new) does, for texts that are compared in lower case.
    #[must_use]
    pub fn lower(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into_bytes().into())
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// True if the complete `text` matches. The number of steps is at most the product of both lengths. After
    /// a mismatch, the search goes back only to the last star, so it needs little memory.
    #[must_use]
    pub fn fits(&self, text: &[u8]) -> bool {
        let pattern = &*self.0;
        let (mut p, mut t) = (0, 0);
        // Position of the last star, and the end of the text that this star matches so far.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            if pattern.get(p) == Some(&b'*') {
                star = Some((p, t));
                p += 1;
            } else if pattern.get(p) == Some(&text[t]) {
                p += 1;
                t += 1;
            } else if let Some((at, taken)) = star {
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|b| *b == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_takes_anything() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything/at all", true),
            ("/img/*", "/img/a/b.png", true),
            ("/img/*", "/img", false),
            ("*.jpg", "/a.jpg", true),
            ("*.jpg", "/a.jpg/b", false),
            ("/*/x*.y", "/1/2/xx.y.y", true),
            ("*.example.com", "example.com", false),
            ("a*b*c", "abcabc", true),
            ("a*b*c", "abcab", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).fits(text.as_bytes()),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(Pattern::lower("EX.com").fits(b"ex.com"));
    }

    /// The definition of a match, without regard to cost.
    fn fits_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((b'*', more)), Some((_, rest))) => {
                fits_slowly(more, text) || fits_slowly(pattern, rest)
            }
            (Some((b'*', more)), None) => fits_slowly(more, text),
            (Some((p, more)), Some((t, rest))) => p == t && fits_slowly(more, rest),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn fitting_is_what_the_definition_says(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let expected = fits_slowly(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(Pattern::new(&pattern).fits(text.as_bytes()), expected);
        }
    }
}
