//! The admin credential. It never appears in logs. The time of a comparison does not reveal it.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use foxy_base::{Fields, first, rule};

/// Field that may contain the credential instead of `Authorization`.
pub const TOKEN_FIELD: &str = "X-Foxy-Token";

/// The admin credential. Its text is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<[u8]>);

impl Token {
    /// Smallest number of characters of a credential. A shorter credential could be guessed.
    pub const LENGTH_MIN: usize = 16;

    /// Makes a credential with this text. Returns `None` if the text is too short or has characters that a
    /// field may not contain.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = text.len() >= Self::LENGTH_MIN && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.as_bytes().into()))
    }

    /// Returns true if a request contains the credential: `Authorization: Bearer TOKEN`, or `X-Foxy-Token:
    /// TOKEN`.
    #[must_use]
    pub fn is_in<F: Fields + ?Sized>(&self, fields: &F) -> bool {
        let bearer = first(fields, "Authorization").and_then(bearer);
        let given = [bearer, first(fields, TOKEN_FIELD)];
        given.into_iter().flatten().any(|given| self.is(given))
    }

    /// Compares every byte. So the time of the comparison does not depend on the position of the first
    /// difference.
    fn is(&self, given: &[u8]) -> bool {
        if rule!(
            "admin: all of the credential is compared",
            given.len() != self.0.len(),
            false
        ) {
            return false;
        }
        let pairs = self.0.iter().zip(given);
        black_box(pairs.fold(0, |different, (a, b)| black_box(different | (a ^ b)))) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Returns the token of a `Bearer` value. The name of the scheme is case-insensitive (RFC 9110 section 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_fits() {
        let token = Token::new("0123456789abcdef").unwrap();
        for (name, value, fits) in [
            ("Authorization", "Bearer 0123456789abcdef", true),
            ("authorization", "bearer   0123456789abcdef", true),
            ("X-Foxy-Token", "0123456789abcdef", true),
            ("X-Foxy-Token", "0123456789abcdeF", false),
            ("X-Foxy-Token", "0123456789abcde", false),
            ("X-Foxy-Token", "0123456789abcdef0", false),
            ("X-Foxy-Token", "", false),
            ("Authorization", "0123456789abcdef", false),
            ("Authorization", "Basic 0123456789abcdef", false),
            ("Authorization", "Bearer", false),
            ("X-Token", "0123456789abcdef", false),
        ] {
            let fields: &[(&str, &str)] = &[(name, value)];
            assert_eq!(token.is_in(fields), fits, "{name}: {value}");
        }
    }

    #[test]
    fn weak_ones_are_none_and_none_is_printed() {
        for text in ["", "short", "0123456789abcde\n", "0123456789 abcdef"] {
            assert!(Token::new(text).is_none(), "{text}");
        }
        let token = Token::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
