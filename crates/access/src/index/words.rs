//! Conditions on words: methods, and names of sites.

use super::bits::{Block, Class, Classes, put};

/// Classes of words. There are few words, so they are compared one after another.
#[derive(Debug)]
pub(super) struct Words {
    words: Vec<(Box<[u8]>, Class)>,
    /// The class of all other words.
    other: Class,
}

impl Words {
    pub(super) fn new(free: &[Block], of: &[(usize, &[String])], classes: &mut Classes) -> Self {
        let each = of.iter().flat_map(|(_, words)| words.iter());
        let mut words: Vec<&[u8]> = each.map(String::as_bytes).collect();
        words.sort_unstable();
        words.dedup();
        let class = |word: &[u8], classes: &mut Classes| {
            let mut set = free.to_vec();
            for (rule, words) in of {
                if words.iter().any(|own| own.as_bytes() == word) {
                    put(&mut set, *rule);
                }
            }
            classes.add(&set)
        };
        Self {
            other: classes.add(free),
            words: words
                .into_iter()
                .map(|word| (word.into(), class(word, classes)))
                .collect(),
        }
    }

    #[inline]
    pub(super) fn class(&self, word: &[u8]) -> Class {
        let mut words = self.words.iter();
        let found = words.find(|(own, _)| **own == *word);
        found.map_or(self.other, |(_, class)| *class)
    }
}
