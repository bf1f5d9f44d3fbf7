//! Conditions on names in levels: hosts from their end, paths from their beginning.
//!
//! Each level has a hash that follows from that of the level above it, and the table has each level
//! above one that it has. So the first level that is missing ends the search. Entries that share a
//! hash are told apart by their names.

use hashbrown::HashMap;

use super::bits::{Block, Class, Classes, put};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
/// Turns letters into lower case, and keeps the other bytes of hosts apart.
const FOLD: u8 = 0x20;

/// Classes of hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    table: Table,
    /// Hosts of which no level is in the table.
    other: Class,
}

/// Classes of paths.
#[derive(Debug)]
pub(super) struct Paths {
    table: Table,
    other: Class,
}

/// A level: the rules that may be for it, and for what is below it.
#[derive(Debug)]
struct Entry {
    hash: u64,
    name: Box<[u8]>,
    at: Class,
    below: Class,
}

/// Open addressing by the upper bits of the hash; at most half of the slots are used.
#[derive(Debug)]
struct Table {
    entries: Vec<Entry>,
    /// Number of the entry, from 1.
    slots: Box<[u32]>,
    shift: u32,
}

/// A rule at a level: its number, the level, and whether it may be for that level and for those
/// below.
pub(super) type Named<'a> = (usize, &'a [u8], bool, bool);

impl Hosts {
    pub(super) fn new(free: &[Block], named: &[Named<'_>], classes: &mut Classes) -> Self {
        let levels = |name: &[u8]| -> Vec<usize> {
            let dots = name.iter().enumerate().filter(|(_, b)| **b == b'.');
            let mut starts: Vec<usize> = dots.map(|(at, _)| at + 1).collect();
            starts.push(0);
            starts
        };
        let parts = |name: &[u8]| -> Vec<Box<[u8]>> {
            levels(name)
                .into_iter()
                .map(|at| name[at..].into())
                .collect()
        };
        let sorted = sets(free, named, parts, |level, other| {
            other.len() > level.len()
                && other.ends_with(level)
                && other[other.len() - level.len() - 1] == b'.'
        });
        let (all, levels) = sorted;
        let hash = |name: &[u8]| {
            let (mut hash, mut end) = (SEED, name.len() + 1);
            while end > 0 {
                (hash, end) = label(hash, name, end - 1);
            }
            hash
        };
        Self {
            other: classes.add(&all),
            table: Table::new(&levels, hash, classes),
        }
    }

    /// The class of a host, which has no dot at its end.
    #[inline]
    pub(super) fn class(&self, host: &[u8]) -> Class {
        let (mut hash, mut found, mut end) = (SEED, None, host.len());
        loop {
            let at;
            (hash, at) = label(hash, host, end);
            match self.table.find(hash) {
                Some(entry) => found = Some((entry, at)),
                None => break,
            }
            if at == 0 {
                break;
            }
            end = at - 1;
        }
        self.checked(host, found)
    }

    #[inline]
    fn checked(&self, host: &[u8], found: Option<(&Entry, usize)>) -> Class {
        match found {
            None => self.other,
            Some((entry, at)) if alike(&entry.name, &host[at..]) => match at {
                0 => entry.at,
                _ => entry.below,
            },
            Some(_) => self.slowly(host),
        }
    }

    /// Another name has the hash of a level: compares the names.
    #[cold]
    fn slowly(&self, host: &[u8]) -> Class {
        let under = |entry: &&Entry| {
            let (name, all) = (&entry.name, host.len());
            let at = all.checked_sub(name.len());
            at.is_some_and(|at| alike(name, &host[at..]) && (at == 0 || host[at - 1] == b'.'))
        };
        let found = self.table.entries.iter().filter(under);
        let longest = found.max_by_key(|entry| entry.name.len());
        longest.map_or(self.other, |entry| match entry.name.len() == host.len() {
            true => entry.at,
            false => entry.below,
        })
    }
}

impl Paths {
    /// Levels are folders, with the `/` at their end.
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
            other: classes.add(&all),
            table: Table::new(&levels, hash, classes),
        }
    }

    /// The class of a path: the rules that may be for it.
    #[inline]
    pub(super) fn class(&self, path: &[u8]) -> Class {
        let (mut hash, mut found) = (SEED, None);
        for (at, byte) in path.iter().enumerate() {
            hash = step(hash, *byte);
            if *byte == b'/' {
                match self.table.find(hash) {
                    Some(entry) => found = Some((entry, at + 1)),
                    None => break,
                }
            }
        }
        match found {
            None => self.other,
            Some((entry, end)) if *entry.name == path[..end] => entry.below,
            Some(_) => self.slowly(path),
        }
    }

    #[cold]
    fn slowly(&self, path: &[u8]) -> Class {
        let entries = self.table.entries.iter();
        let found = entries.filter(|entry| path.starts_with(&entry.name));
        let longest = found.max_by_key(|entry| entry.name.len());
        longest.map_or(self.other, |entry| entry.below)
    }
}

#[inline]
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(FACTOR)
}

/// The hash of the levels so far and the label of `host` that ends at `end`, without regard to case.
/// Returns where the label begins as well: behind a dot, or at 0.
#[inline]
fn label(hash: u64, host: &[u8], end: usize) -> (u64, usize) {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let word = last_word(host, end);
    // Bytes that are dots become 0, and the highest bit of these is set. No host has a byte that the
    // borrow of another would mark.
    let other = word ^ (ONES * u64::from(b'.'));
    let dots = other.wrapping_sub(ONES) & !other & (ONES << 7);
    let length = match dots {
        0 if end > 8 => return long(hash, host, end),
        0 => end,
        _ => dots.leading_zeros() as usize / 8,
    };
    // The label alone; an empty one has no bytes.
    let own = word.checked_shr(64 - length as u32 * 8).unwrap_or(0);
    (mix(hash, own, length), end - length)
}

#[inline]
fn mix(hash: u64, label: u64, length: usize) -> u64 {
    const FOLDS: u64 = u64::from_ne_bytes([FOLD; 8]);
    (hash ^ (label | FOLDS))
        .rotate_left(29)
        .wrapping_mul(FACTOR)
        ^ length as u64
}

/// Labels of more than eight bytes.
#[cold]
fn long(hash: u64, host: &[u8], end: usize) -> (u64, usize) {
    let dot = host[..end].iter().rposition(|b| *b == b'.');
    let at = dot.map_or(0, |dot| dot + 1);
    let label = host[at..end].to_ascii_lowercase();
    let own = foxy_base::hash64(SEED, &label);
    (mix(hash, own, label.len()), at)
}

/// The eight bytes that end at `end`, the last one on top; zeros where the host has begun.
#[inline]
fn last_word(host: &[u8], end: usize) -> u64 {
    if let Some((_, word)) = host[..end].split_last_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    match (host.first_chunk::<8>(), end) {
        (_, 0) => 0,
        (Some(word), _) => u64::from_le_bytes(*word) << (64 - end * 8),
        (None, _) => {
            let bytes = host[..end].iter().rev();
            let (word, left) = bytes.fold((0, 64), |(word, left), byte| {
                (word | u64::from(*byte) << (left - 8), left - 8)
            });
            debug_assert!(left == 64 - end * 8);
            word
        }
    }
}

/// True if two hosts differ in case alone. Eight bytes at a time.
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
    let (whole_a, whole_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut all = differ(last_a, last_b);
    for (a, b) in whole_a.iter().zip(whole_b) {
        all |= differ(a, b);
    }
    all == 0
}

type Set = Vec<Block>;

/// Name of a level, the rules at it, and the rules below it.
type Level = (Box<[u8]>, Set, Set);

/// The rules for values without a level in the table, and name, rules at and rules below of each
/// level. `parts`: a level and those above it. `below`: the second level is below the first.
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
    fn new(
        levels: &[(Box<[u8]>, Set, Set)],
        hash: impl Fn(&[u8]) -> u64,
        classes: &mut Classes,
    ) -> Self {
        let size = (levels.len() * 2).next_power_of_two().max(2);
        let mut table = Self {
            entries: Vec::with_capacity(levels.len()),
            slots: vec![0; size].into(),
            shift: 64 - size.trailing_zeros(),
        };
        for (name, at, below) in levels {
            let hash = hash(name);
            let entry = Entry {
                hash,
                name: name.clone(),
                at: classes.add(at),
                below: classes.add(below),
            };
            table.entries.push(entry);
            let mut slot = (hash >> table.shift) as usize;
            while table.slots[slot] != 0 {
                slot = (slot + 1) % size;
            }
            table.slots[slot] = table.entries.len() as u32;
        }
        table
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<&Entry> {
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize & mask;
        loop {
            let entry = self
                .entries
                .get((self.slots[slot] as usize).checked_sub(1)?)?;
            if entry.hash == hash {
                return Some(entry);
            }
            slot = (slot + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of a table that share the hash of others are told apart.
    #[test]
    fn levels_with_the_hash_of_another_name_are_compared() {
        let free = [Block::NONE];
        let mut classes = Classes::new(1);
        let named: [Named<'_>; 2] = [(0, b"a.test", true, true), (1, b"b.test", true, true)];
        let mut hosts = Hosts::new(&free, &named, &mut classes);
        let right = hosts.class(b"b.test");
        // The entry of `a.test` gets the hash of `b.test`, as an attacker would like it.
        let at = |hosts: &Hosts, name: &[u8]| {
            let mut all = hosts.table.entries.iter();
            all.position(|entry| *entry.name == *name).unwrap()
        };
        let (a, b) = (at(&hosts, b"a.test"), at(&hosts, b"b.test"));
        hosts.table.entries[a].hash = hosts.table.entries[b].hash;
        hosts.table.slots.fill((a + 1) as u32);
        let test = at(&hosts, b"test");
        let slot = (hosts.table.entries[test].hash >> hosts.table.shift) as usize;
        hosts.table.slots[slot] = (test + 1) as u32;
        assert_eq!(hosts.class(b"b.test"), right);
        assert!(classes.rules(right)[0].has(1) && !classes.rules(right)[0].has(0));
    }
}
