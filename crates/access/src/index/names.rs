//! Conditions on names with levels: hosts from their end, paths from their beginning. The levels of the host
//! `a.example.com` are `com`, `example.com` and `a.example.com`.
//!
//! The hash of a level is computed from the hash of the level above it. If the table contains a level, it
//! also contains all levels above that level. So the search ends at the first missing level. At the end, the
//! name of the last level that was found is compared with the searched name. This distinguishes levels that
//! have the same hash.

use hashbrown::HashMap;

use super::bits::{Block, Class, Classes, put};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
/// The bit that is set to convert letters to lower case. With this bit set, other bytes that hosts may
/// contain are still different from each other.
const FOLD: u8 = 0x20;

/// Classes of hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    table: Table,
}

/// Classes of paths.
#[derive(Debug)]
pub(super) struct Paths {
    table: Table,
}

/// A level, with the class of the rules that may fit the level, and the class of the rules that may fit the
/// levels below it.
#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    at: Class,
    below: Class,
}

/// A hash table with open addressing by the upper bits of the hash. At most half of the slots are used.
#[derive(Debug)]
struct Table {
    entries: Vec<Entry>,
    slots: Box<[Slot]>,
    shift: u32,
}

/// A slot of the table. The hash is stored beside the number of the entry. So a search reads both from one
/// place in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u64,
    /// Number of the entry. [`ROOT`] means that the slot is free.
    entry: u32,
}

/// The entry for values without a level in the table. It is the level above all levels and has no name.
const ROOT: u32 = 0;

/// A rule at a level: the number of the rule, the level, and two flags. The first flag is true if the rule
/// may fit that level. The second flag is true if the rule may fit the levels below.
pub(super) type Named<'a> = (usize, &'a [u8], bool, bool);

impl Hosts {
    pub(super) fn new(free: &[Block], named: &[Named<'_>], classes: &mut Classes) -> Self {
        let starts = |name: &[u8]| -> Vec<usize> {
            let dots = name.iter().enumerate().filter(|(_, b)| **b == b'.');
            let mut starts: Vec<usize> = dots.map(|(at, _)| at + 1).collect();
            starts.push(0);
            starts
        };
        let parts = |name: &[u8]| -> Vec<Box<[u8]>> {
            starts(name)
                .into_iter()
                .map(|at| name[at..].into())
                .collect()
        };
        let sorted = sets(free, named, parts, |level, other| {
            other.len() > level.len()
                && other.ends_with(level)
                && other[other.len() - level.len() - 1] == b'.'
        });
        let (all, named) = sorted;
        let hash = |name: &[u8]| {
            let mut last = SEED;
            levels(name, |hash, _| {
                last = hash;
                true
            });
            last
        };
        Self {
            table: Table::new(&all, &named, hash, classes),
        }
    }

    /// Returns the class of a host, which must have no dot at its end.
    #[inline]
    pub(super) fn class(&self, host: &[u8]) -> Class {
        let mut found = ROOT;
        levels(host, |hash, _| {
            let entry = self.table.find(hash);
            found = entry.unwrap_or(found);
            entry.is_some()
        });
        if found == ROOT {
            return self.table.other();
        }
        let entry = &self.table.entries[found as usize];
        match host.len().checked_sub(entry.name.len()) {
            Some(0) if alike(&entry.name, host) => entry.at,
            Some(at) if at > 0 && host[at - 1] == b'.' && alike(&entry.name, &host[at..]) => {
                entry.below
            }
            _ => self.slowly(host),
        }
    }

    /// Searches by comparing names. This is needed if another name has the same hash as a level of this host.
    #[cold]
    #[inline(never)]
    fn slowly(&self, host: &[u8]) -> Class {
        let under = |entry: &&Entry| {
            let (name, all) = (&entry.name, host.len());
            let at = all.checked_sub(name.len());
            at.is_some_and(|at| alike(name, &host[at..]) && (at == 0 || host[at - 1] == b'.'))
        };
        let found = self.table.entries.iter().filter(under);
        let longest = found.max_by_key(|entry| entry.name.len());
        longest.map_or(self.table.other(), |entry| {
            match entry.name.len() == host.len() {
                true => entry.at,
                false => entry.below,
            }
        })
    }
}

impl Paths {
    /// Builds the classes of paths. The levels are folders, each with the `/` at its end.
    pub(super) fn new(free: &[Block], named: &[Named<'_>], classes: &mut Classes) -> Self {
        let parts = |name: &[u8]| -> Vec<Box<[u8]>> {
            let slashes = name.iter().enumerate().filter(|(_, b)| **b == b'/');
            slashes.map(|(at, _)| name[..=at].into()).collect()
        };
        let (all, levels) = sets(free, named, parts, |level, other| {
            other.len() > level.len() && other.starts_with(level)
        });
        let hash = |name: &[u8]| name.iter().fold(SEED, |h, b| step(h, *b));
        Self {
            table: Table::new(&all, &levels, hash, classes),
        }
    }

    /// Returns the class of a path. The set of this class contains the rules that may fit the path.
    #[inline]
    pub(super) fn class(&self, path: &[u8]) -> Class {
        let (mut hash, mut found) = (SEED, (ROOT, 0));
        for (at, byte) in path.iter().enumerate() {
            hash = step(hash, *byte);
            if *byte == b'/' {
                match self.table.find(hash) {
                    Some(entry) => found = (entry, at + 1),
                    None => break,
                }
            }
        }
        let (entry, end) = found;
        match &self.table.entries[entry as usize] {
            entry if *entry.name == path[..end] => entry.below,
            _ => self.slowly(path),
        }
    }

    #[cold]
    #[inline(never)]
    fn slowly(&self, path: &[u8]) -> Class {
        let entries = self.table.entries.iter();
        let found = entries.filter(|entry| path.starts_with(&entry.name));
        let longest = found.max_by_key(|entry| entry.name.len());
        longest.map_or(self.table.other(), |entry| entry.below)
    }
}

#[inline]
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(FACTOR)
}

/// Calls `each` with the levels of a host from its end, until it returns false. The first argument is the
/// hash of the level, which does not depend on upper and lower case. The second argument is the position at
/// which the level begins (after a dot, or at 0).
#[inline]
fn levels(host: &[u8], mut each: impl FnMut(u64, usize) -> bool) {
    let (mut hash, mut end) = (SEED, host.len());
    while let Some((_, word)) = host[..end].split_last_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let Some(dot) = last_dot(word) else {
            // The label is longer than this word.
            hash = mix(hash, word, 8);
            end -= 8;
            continue;
        };
        let length = (63 - dot as usize) / 8;
        hash = mix(hash, word & (u64::MAX << dot << 1), length);
        if !each(hash, end - length) {
            return;
        }
        end -= length + 1;
    }
    let mut word = first_word(host, end);
    while let Some(dot) = last_dot(word) {
        let length = (63 - dot as usize) / 8;
        hash = mix(hash, word & (u64::MAX << dot << 1), length);
        if !each(hash, end - length) {
            return;
        }
        end -= length + 1;
        word = word << (length * 8) << 8;
    }
    each(mix(hash, word, end), 0);
}

/// Returns the index of the highest bit of the last byte that is a dot. Returns `None` if no byte is a dot.
#[inline]
fn last_dot(word: u64) -> Option<u32> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // Bytes that are dots become 0, and then the highest bit of these bytes is set. The borrow of the
    // subtraction could also mark a `/` after a dot, but a host contains no `/`.
    let other = word ^ (ONES * u64::from(b'.'));
    let dots = other.wrapping_sub(ONES) & !other & (ONES << 7);
    dots.checked_ilog2()
}

#[inline]
fn mix(hash: u64, label: u64, length: usize) -> u64 {
    const FOLDS: u64 = u64::from_ne_bytes([FOLD; 8]);
    (hash ^ (label | FOLDS))
        .rotate_left(29)
        .wrapping_mul(FACTOR)
        ^ length as u64
}

/// Returns the first `end` bytes of a host as a word. `end` is less than eight. The last of these bytes is
/// the highest byte of the word, and the remaining low bytes are zero.
#[inline]
fn first_word(host: &[u8], end: usize) -> u64 {
    match host.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word) << 8 << ((7 - end) * 8),
        None => {
            let bytes = host[..end].iter();
            bytes.fold(0, |word, byte| word >> 8 | u64::from(*byte) << 56)
        }
    }
}

/// Returns true if two hosts differ only in case. Compares eight bytes at a time.
#[inline]
fn alike(a: &[u8], b: &[u8]) -> bool {
    const FOLDS: u64 = u64::from_ne_bytes([FOLD; 8]);
    let Some(last_a) = a.last_chunk::<8>() else {
        return a.len() == b.len() && a.eq_ignore_ascii_case(b);
    };
    let Some(last_b) = b.last_chunk::<8>().filter(|_| a.len() == b.len()) else {
        return false;
    };
    let differ =
        |a: &[u8; 8], b: &[u8; 8]| (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)) & !FOLDS;
    let mut all = differ(last_a, last_b);
    let (whole_a, whole_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    if let ([first_a], [first_b]) = (whole_a, whole_b) {
        return all | differ(first_a, first_b) == 0;
    }
    for (a, b) in whole_a.iter().zip(whole_b) {
        all |= differ(a, b);
    }
    all == 0
}

type Set = Vec<Block>;

/// Name of a level, the rules for this level, and the rules for the levels below.
type Level = (Box<[u8]>, Set, Set);

/// Returns the rules for values without a level in the table. Also returns each level with its name, the
/// rules for this level and the rules for the levels below. `parts` takes a name, and returns the level with
/// this name and all levels above it. `below` returns true if its second argument is a level below its first
/// argument.
fn sets(
    free: &[Block],
    named: &[Named<'_>],
    parts: impl Fn(&[u8]) -> Vec<Box<[u8]>>,
    below: impl Fn(&[u8], &[u8]) -> bool,
) -> (Set, Vec<Level>) {
    let mut all = free.to_vec();
    let mut levels: HashMap<Box<[u8]>, (Set, Set)> = HashMap::new();
    for (rule, name, _, _) in named {
        if name.is_empty() {
            put(&mut all, *rule);
        }
        for part in parts(name).into_iter().filter(|part| !part.is_empty()) {
            levels
                .entry(part)
                .or_insert_with(|| (free.to_vec(), free.to_vec()));
        }
    }
    let mut levels: Vec<_> = levels.into_iter().map(|(n, (a, b))| (n, a, b)).collect();
    levels.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
    for (level, at, under) in &mut levels {
        for (rule, name, is, has) in named {
            let same = **level == **name;
            let above = name.is_empty() || below(name, level);
            if same && *is || above && *has {
                put(at, *rule);
            }
            if (same || above) && *has {
                put(under, *rule);
            }
        }
    }
    (all, levels)
}

impl Table {
    /// Builds the table. `all` contains the rules for a host or a path of which no level is in the table.
    fn new(
        all: &[Block],
        levels: &[Level],
        hash: impl Fn(&[u8]) -> u64,
        classes: &mut Classes,
    ) -> Self {
        let size = (levels.len() * 2).next_power_of_two().max(2);
        let other = classes.add(all);
        let root = Entry {
            name: Box::default(),
            at: other,
            below: other,
        };
        let mut table = Self {
            entries: vec![root],
            slots: vec![Slot::default(); size].into(),
            shift: 64 - size.trailing_zeros(),
        };
        for (name, at, below) in levels {
            let hash = hash(name);
            let entry = Entry {
                name: name.clone(),
                at: classes.add(at),
                below: classes.add(below),
            };
            let mut slot = (hash >> table.shift) as usize;
            while table.slots[slot].entry != ROOT {
                slot = (slot + 1) % size;
            }
            table.slots[slot] = Slot {
                hash,
                entry: table.entries.len() as u32,
            };
            table.entries.push(entry);
        }
        table
    }

    fn other(&self) -> Class {
        self.entries[ROOT as usize].below
    }

    /// Returns the number of the entry with this hash.
    #[inline]
    fn find(&self, hash: u64) -> Option<u32> {
        let at = (hash >> self.shift) as usize;
        let slot = self.slots.get(at)?;
        match slot.entry {
            ROOT => None,
            entry if slot.hash == hash => Some(entry),
            _ => self.find_behind(at, hash),
        }
    }

    /// Continues a search after a slot with another hash.
    #[inline(never)]
    fn find_behind(&self, mut at: usize, hash: u64) -> Option<u32> {
        loop {
            at = (at + 1) % self.slots.len();
            let slot = &self.slots[at];
            match slot.entry {
                ROOT => return None,
                entry if slot.hash == hash => return Some(entry),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in a table that have the same hash are distinguished.
    #[test]
    fn levels_with_the_hash_of_another_name_are_compared() {
        let free = [Block::NONE];
        let mut classes = Classes::new(1);
        let named: [Named<'_>; 2] = [(0, b"a.test", true, true), (1, b"b.test", true, true)];
        let mut hosts = Hosts::new(&free, &named, &mut classes);
        let right = hosts.class(b"b.test");
        // The entry of `a.test` gets the hash of `b.test`, as in an attack.
        let at = |hosts: &Hosts, name: &[u8]| {
            let mut all = hosts.table.entries.iter();
            all.position(|entry| *entry.name == *name).unwrap()
        };
        let (a, b) = (at(&hosts, b"a.test"), at(&hosts, b"b.test"));
        let numbered = |entry: usize| move |slot: &&mut Slot| slot.entry as usize == entry;
        let mut slots = hosts.table.slots.iter_mut();
        slots.find(numbered(b)).unwrap().entry = a as u32;
        assert_eq!(hosts.class(b"b.test"), right);
        assert!(classes.rules(right)[0].has(1) && !classes.rules(right)[0].has(0));
    }
}
