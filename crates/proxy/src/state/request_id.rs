//! The id of a request, by which the request is found in the logs of several servers.

use std::fmt;

use foxy_base::{Fields, first, hash64};

/// The field that contains the id.
const FIELD: &str = "X-Request-Id";
/// Largest number of bytes of an id that is accepted from a proxy.
const LONGEST: usize = 128;

/// An id of letters, digits and `-_.:/+=~@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestId<'a> {
    /// An id that a trusted proxy has sent.
    Given(&'a str),
    /// An id that Foxy has made. It differs for each request of each process.
    Made(u128),
}

impl fmt::Display for RequestId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(text) => f.write_str(text),
            Self::Made(number) => write!(f, "{number:032x}"),
        }
    }
}

impl<'a> RequestId<'a> {
    /// Returns the id in the field [`FIELD`] of a request. Clients can write any text into this field. So the
    /// caller passes only requests of trusted proxies.
    fn given<F: Fields + ?Sized>(head: &'a F) -> Option<Self> {
        let text = std::str::from_utf8(first(head, FIELD)?).ok()?;
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/+=~@".contains(&b);
        let usable = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(fits);
        usable.then_some(Self::Given(text))
    }

    /// Returns the id of a request: the id in the field [`FIELD`] of `head`. If there is no such id, makes an
    /// id from `numbers`.
    pub(crate) fn of<F: Fields + ?Sized>(
        head: Option<&'a F>,
        seed: u64,
        numbers: [u64; 3],
    ) -> Self {
        let given = head.and_then(Self::given);
        given.unwrap_or_else(|| Self::made(seed, numbers))
    }

    /// Makes the id of a request from three numbers: its worker, its connection and its number on the
    /// connection. `seed` differs between processes.
    fn made(seed: u64, numbers: [u64; 3]) -> Self {
        let mut bytes = [0; 24];
        for (into, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            into.copy_from_slice(&number.to_le_bytes());
        }
        let (high, low) = (hash64(seed, &bytes), hash64(!seed, &bytes));
        Self::Made(u128::from(high) << 64 | u128::from(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_ids_are_taken() {
        let long = "a".repeat(129);
        let id = |text: &str| {
            let fields: &[(&str, &str)] = &[("x-request-id", text)];
            RequestId::given(fields).map(|id| id.to_string())
        };
        assert_eq!(id("b7ad6b71-69203331").unwrap(), "b7ad6b71-69203331");
        assert_eq!(id(&long[1..]).unwrap().len(), 128);
        for bad in ["", "a b", "a\"b", "\u{e9}", &long] {
            assert_eq!(id(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_request_has_its_own() {
        let several = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
        let mut all: Vec<_> = [1, 2]
            .into_iter()
            .flat_map(|seed| several.map(|numbers| RequestId::made(seed, numbers).to_string()))
            .collect();
        assert!(all.iter().all(|id| id.len() == 32));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
