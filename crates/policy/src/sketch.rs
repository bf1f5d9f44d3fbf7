//! Estimates how often a key was requested lately, with four bits per counter.
//!
//! Source: the count-min sketch with ageing of TinyLFU (Einziger, Friedman, Manes, ACM ToS 2017). It has four
//! rows. The estimate is the minimum of a key's four counters. All counters are halved whenever the number of
//! uses has reached ten times the number of counters of one row.

use std::hash::{Hash, Hasher};

const ROWS: u32 = 4;
const COUNT_MAX: u64 = 15;

/// Approximate counts that age. Results are the same on every machine, because the hash has no random seed.
#[derive(Debug)]
pub struct Sketch {
    /// Each word contains sixteen counters.
    words: Vec<u64>,
    mask: u64,
    added: u64,
    sample: u64,
}

impl Sketch {
    /// Creates a sketch for about `objects` different keys (half a byte of memory per row and key).
    #[must_use]
    pub fn new(objects: usize) -> Self {
        let counters = objects.clamp(64, 1 << 32).next_power_of_two() * ROWS as usize;
        Self {
            words: vec![0; counters / 16],
            mask: counters as u64 - 1,
            added: 0,
            sample: 10 * (counters / ROWS as usize) as u64,
        }
    }

    /// Counts a use of `key`.
    pub fn add(&mut self, key: &impl Hash) {
        let hash = mix(key);
        for row in 0..ROWS {
            let (word, shift) = self.place(hash, row);
            if self.words[word] >> shift & 15 < COUNT_MAX {
                self.words[word] += 1 << shift;
            }
        }
        self.added += 1;
        if self.added >= self.sample {
            self.halve();
        }
    }

    /// Estimated uses of `key`, 0 to 15. Collisions make the estimate too high, never too low.
    #[must_use]
    pub fn estimate(&self, key: &impl Hash) -> u64 {
        let hash = mix(key);
        let counts = (0..ROWS).map(|row| {
            let (word, shift) = self.place(hash, row);
            self.words[word] >> shift & 15
        });
        counts.min().unwrap_or(0)
    }

    fn place(&self, hash: u64, row: u32) -> (usize, u32) {
        // For the four rows, two halves of one hash are as good as four hashes (Kirsch and Mitzenmacher).
        let step = hash.rotate_left(32) | 1;
        let counter = hash.wrapping_add(step.wrapping_mul(u64::from(row))) & self.mask;
        ((counter / 16) as usize, (counter % 16 * 4) as u32)
    }

    fn halve(&mut self) {
        for word in &mut self.words {
            *word = *word >> 1 & 0x7777_7777_7777_7777;
        }
        self.added /= 2;
    }
}

fn mix(key: &impl Hash) -> u64 {
    let mut hasher = Mixer(0);
    key.hash(&mut hasher);
    hasher.finish()
}

/// A hasher that multiplies and folds. Keys are hashes already, so a weak hash is enough.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ word ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        let z = (self.0 ^ self.0 >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 29
    }
}
