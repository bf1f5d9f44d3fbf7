//! The sets of rules, as blocks of bits.

/// Number of rules in a block.
pub(crate) const BITS: usize = 512;
const WORDS: usize = BITS / 64;

/// A subset of the rules of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block([u64; WORDS]);

impl Block {
    pub(crate) const NONE: Self = Self([0; WORDS]);
    const ALL: Self = Self([u64::MAX; WORDS]);

    pub(crate) const fn set(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    pub(crate) const fn clear(&mut self, rule: usize) {
        self.0[rule / 64] &= !(1 << (rule % 64));
    }

    pub(crate) const fn has(&self, rule: usize) -> bool {
        self.0[rule / 64] >> (rule % 64) & 1 == 1
    }

    /// Keeps only the rules that both blocks have.
    #[inline]
    pub(crate) fn keep(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own &= other;
        }
    }

    /// Returns the rules that both blocks have.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut both = *self;
        both.keep(other);
        both
    }

    /// Returns the first rule of the block.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        self.first_with(&Self::ALL)
    }

    /// Returns the first rule that both blocks have.
    #[inline]
    pub(crate) fn first_with(&self, other: &Self) -> Option<usize> {
        let words = self.0.iter().zip(&other.0).enumerate();
        for (at, (own, other)) in words {
            let both = own & other;
            if both != 0 {
                return Some(at * 64 + both.trailing_zeros() as usize);
            }
        }
        None
    }
}

/// The classes of the values of all conditions. Two values of a condition (such as two hosts) are in the same
/// class if the same rules may fit both values. For each class, this table has the set of these rules. If two
/// conditions have classes with equal sets, they share one class.
#[derive(Debug)]
pub(crate) struct Classes {
    blocks: Vec<Block>,
    /// Number of blocks of one set.
    per: usize,
}

/// The number of a class.
pub(crate) type Class = u32;

/// The class whose set contains all rules.
pub(crate) const EVERY: Class = 0;

impl Classes {
    /// Makes a table with one class, whose set contains all rules. `per` is the number of blocks of one set.
    pub(crate) fn new(per: usize) -> Self {
        Self {
            blocks: vec![Block::ALL; per],
            per,
        }
    }

    /// Adds a class with this set, unless a class with an equal set exists. Returns the number of the class.
    pub(crate) fn add(&mut self, set: &[Block]) -> Class {
        let mut all = self.blocks.chunks_exact(self.per);
        let found = all.position(|class| class == set);
        let at = found.unwrap_or_else(|| {
            self.blocks.extend_from_slice(set);
            self.blocks.len() / self.per - 1
        });
        at as Class
    }

    /// Returns block number `at` of the set of a class.
    #[inline]
    pub(crate) fn block(&self, class: Class, at: usize) -> &Block {
        &self.blocks[class as usize * self.per + at]
    }

    /// Returns the set of a class.
    pub(crate) fn rules(&self, class: Class) -> &[Block] {
        let from = class as usize * self.per;
        &self.blocks[from..from + self.per]
    }
}

/// Adds a rule to a set.
pub(crate) fn put(set: &mut [Block], rule: usize) {
    set[rule / BITS].set(rule % BITS);
}
