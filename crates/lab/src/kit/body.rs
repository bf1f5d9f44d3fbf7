//! The bodies that test origins send. The path of the object and the position in the body determine every
//! byte. So a client detects bytes of another object, missing bytes and bytes in the wrong order.

use std::sync::LazyLock;

use foxy_base::{Rng, hash64};

/// The number of bytes after which the bytes of a body repeat (the period). It is a prime. The lengths of
/// disk blocks and buffers are powers of two, and no power of two is a multiple of this prime. So a client
/// detects a block at a wrong position.
const PERIOD: usize = 65_521;

/// The bytes of one period, twice in a row. So a slice that begins anywhere in the first copy, and is at most
/// one period long, is contiguous.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut rng = Rng::new(9);
    let once: Vec<u8> = (0..PERIOD).map(|_| rng.next_u64() as u8).collect();
    [once.as_slice(), once.as_slice()].concat()
});

/// The rest of a body, from a position on.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    at: usize,
}

impl Body {
    /// Returns the body of `path`, from its first byte on.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let hash = hash64(1, path.as_bytes()) % PERIOD as u64;
        Self {
            at: usize::try_from(hash).unwrap_or(0),
        }
    }

    /// Returns the next bytes: at most `most`, and at most one period.
    pub fn next(&mut self, most: usize) -> &'static [u8] {
        let length = most.min(PERIOD);
        let bytes = &BYTES[self.at..self.at + length];
        self.at = (self.at + length) % PERIOD;
        bytes
    }

    /// True if `bytes` are the next bytes of the body.
    pub fn continues(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let wanted = self.next(bytes.len());
            let (now, later) = bytes.split_at(wanted.len());
            if now != wanted {
                return false;
            }
            bytes = later;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_recognised_in_parts_of_any_size() {
        let mut whole = Vec::new();
        let mut body = Body::of("/o/200000/a");
        while whole.len() < 200_000 {
            whole.extend_from_slice(body.next((200_000 - whole.len()).min(70_001)));
        }
        let mut check = Body::of("/o/200000/a");
        assert!(whole.chunks(12_345).all(|part| check.continues(part)));
        assert!(!Body::of("/o/200000/b").continues(&whole[..100]));
        assert!(!Body::of("/o/200000/a").continues(&whole[4096..8192]));
    }
}
