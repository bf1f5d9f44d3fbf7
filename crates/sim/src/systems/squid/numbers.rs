//! File numbers of Squid 2.2, and the directory of each number.
//!
//! Rule: a new file gets the first free number after the last assigned number. File n is in second-level
//! directory (n / 256) mod 256 of the top-level directory (n / 256 / 256) mod (number of top-level
//! directories). So 256 files with adjacent numbers share a directory.

use std::collections::BTreeSet;

/// Number of directories in each top-level directory. It is also the number of files with adjacent numbers
/// that share a directory.
pub const SECOND: u64 = 256;

/// Top-level and second-level directory of file `number` among `top` top-level directories.
#[must_use]
pub const fn directories(number: u64, top: u64) -> (u64, u64) {
    let second = number / SECOND;
    let top = if top == 0 { 1 } else { top };
    ((second / SECOND) % top, second % SECOND)
}

/// The file numbers of a cache directory: 24 bits, as in Squid's file map.
#[derive(Clone, Debug)]
pub struct Numbers {
    next: u64,
    /// Numbers below `fresh` that were freed.
    free: BTreeSet<u64>,
    /// This number and all larger numbers were never assigned.
    fresh: u64,
    most: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: 0,
            free: BTreeSet::new(),
            fresh: 0,
            most: 1 << 24,
        }
    }
}

impl Numbers {
    /// Assigns the first free number after the last assigned number. After the largest number the search
    /// continues at 0.
    pub fn take(&mut self) -> u64 {
        if self.next >= self.most {
            self.next = 0;
        }
        let used_before = self.free.range(self.next..).next().copied();
        let number = match used_before {
            Some(number) => number,
            None if self.fresh < self.most => self.fresh,
            None => self.free.first().copied().unwrap_or(self.fresh),
        };
        if !self.free.remove(&number) {
            self.fresh = number + 1;
        }
        self.next = number + 1;
        number
    }

    /// Frees a number.
    pub fn give(&mut self, number: u64) {
        self.free.insert(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_directory() {
        assert_eq!(directories(0, 8), (0, 0));
        assert_eq!(directories(255, 8), (0, 0));
        assert_eq!(directories(256, 8), (0, 1));
        assert_eq!(directories(65_536, 8), (1, 0));
        assert_eq!(directories(65_536 * 8 + 300, 8), (0, 1));
    }

    #[test]
    fn the_search_goes_on_after_the_last_number() {
        let mut numbers = Numbers {
            most: 6,
            ..Numbers::default()
        };
        let taken: Vec<_> = (0..4).map(|_| numbers.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3]);
        numbers.give(1);
        // Number 1 is behind the search position, so it is not assigned before the search has wrapped.
        assert_eq!([numbers.take(), numbers.take()], [4, 5]);
        assert_eq!(numbers.take(), 1);
        numbers.give(3);
        numbers.give(0);
        assert_eq!([numbers.take(), numbers.take()], [3, 0]);
    }
}
