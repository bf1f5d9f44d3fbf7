//! Slow and plain reference versions of this crate's rules. They are written from the sources that the heads
//! of the rules' files name (papers, for example), not from the code. They use vectors and linear searches,
//! and share no code with the real rules. The property tests compare the real rules with them.

mod tiny;

pub(crate) use tiny::Tiny;

/// A plain model of a policy.
pub(crate) trait Naive {
    /// Looks up a key; true on a hit.
    fn get(&mut self, key: u64) -> bool;
    /// Inserts a key that is absent and fits. Returns the evicted keys in order.
    fn insert(&mut self, key: u64, size: u64) -> Vec<u64>;
    /// Deletes a key that may be absent.
    fn remove(&mut self, key: u64);
    /// Called before a new version of a key is inserted. The old version is removed; a ghost (a memory of
    /// evicted keys) keeps the key.
    fn replace(&mut self, key: u64) {
        self.remove(key);
    }
    fn evict(&mut self) -> Option<u64>;
    /// True if objects of that size are accepted.
    fn takes(&self, _size: u64) -> bool {
        true
    }
}

/// A policy that refuses objects of more than `most` bytes.
#[derive(Debug)]
pub(crate) struct Limited<N> {
    pub(crate) naive: N,
    pub(crate) most: u64,
}

impl<N: Naive> Naive for Limited<N> {
    fn get(&mut self, key: u64) -> bool {
        self.naive.get(key)
    }

    fn insert(&mut self, key: u64, size: u64) -> Vec<u64> {
        self.naive.insert(key, size)
    }

    fn remove(&mut self, key: u64) {
        self.naive.remove(key);
    }

    fn evict(&mut self) -> Option<u64> {
        self.naive.evict()
    }

    fn takes(&self, size: u64) -> bool {
        size <= self.most
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    key: u64,
    size: u64,
    uses: u64,
}

fn item(key: u64, size: u64) -> Item {
    Item { key, size, uses: 0 }
}

fn bytes(queue: &[Item]) -> u64 {
    queue.iter().map(|i| i.size).sum()
}

fn place(queue: &[Item], key: u64) -> Option<usize> {
    queue.iter().position(|i| i.key == key)
}

/// LRU, FIFO, CLOCK and SIEVE. The oldest key is first in the vector.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) capacity: u64,
    pub(crate) kind: Kind,
    pub(crate) queue: Vec<Item>,
    pub(crate) hand: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Lru,
    Fifo,
    Clock,
    Sieve,
}

impl Queue {
    pub(crate) fn new(kind: Kind, capacity: u64) -> Self {
        Self {
            capacity,
            kind,
            queue: Vec::new(),
            hand: None,
        }
    }

    fn take(&mut self, at: usize) -> Item {
        let item = self.queue.remove(at);
        if self.hand == Some(item.key) {
            self.hand = self.queue.get(at).map(|next| next.key);
        }
        item
    }

    fn sieve(&mut self) -> usize {
        let hand = self.hand.and_then(|key| place(&self.queue, key));
        let mut at = hand.unwrap_or(0);
        while self.queue[at].uses > 0 {
            self.queue[at].uses = 0;
            at = (at + 1) % self.queue.len();
        }
        self.hand = Some(self.queue[at].key);
        at
    }
}

impl Naive for Queue {
    fn get(&mut self, key: u64) -> bool {
        let Some(at) = place(&self.queue, key) else {
            return false;
        };
        self.queue[at].uses = 1;
        if self.kind == Kind::Lru {
            let item = self.queue.remove(at);
            self.queue.push(item);
        }
        true
    }

    fn insert(&mut self, key: u64, size: u64) -> Vec<u64> {
        let mut evicted = Vec::new();
        while bytes(&self.queue) + size > self.capacity {
            evicted.extend(self.evict());
        }
        self.queue.push(item(key, size));
        evicted
    }

    fn remove(&mut self, key: u64) {
        if let Some(at) = place(&self.queue, key) {
            self.take(at);
        }
    }

    fn evict(&mut self) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        let at = match self.kind {
            Kind::Lru | Kind::Fifo => 0,
            Kind::Sieve => self.sieve(),
            Kind::Clock => {
                while self.queue[0].uses > 0 {
                    let mut item = self.queue.remove(0);
                    item.uses = 0;
                    self.queue.push(item);
                }
                0
            }
        };
        Some(self.take(at).key)
    }
}

/// S3-FIFO: 10 % small queue, 90 % ghost, promotion at 2 uses, use counter up to 3.
#[derive(Debug, Default)]
pub(crate) struct S3 {
    pub(crate) capacity: u64,
    small: Vec<Item>,
    main: Vec<Item>,
    ghost: Vec<Item>,
    was_full: bool,
}

impl S3 {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    fn remember(&mut self, gone: Item) {
        let most = self.capacity * 90 / 100;
        if gone.size > most {
            return;
        }
        self.ghost.push(gone);
        while bytes(&self.ghost) > most {
            self.ghost.remove(0);
        }
    }
}

impl Naive for S3 {
    fn get(&mut self, key: u64) -> bool {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        match all.find(|i| i.key == key) {
            Some(item) => {
                item.uses = (item.uses + 1).min(3);
                true
            }
            None => false,
        }
    }

    fn insert(&mut self, key: u64, size: u64) -> Vec<u64> {
        let known = place(&self.ghost, key).map(|at| self.ghost.remove(at));
        let mut evicted = Vec::new();
        while bytes(&self.small) + bytes(&self.main) + size > self.capacity {
            evicted.extend(self.evict());
        }
        let small_is_full = bytes(&self.small) >= self.capacity * 10 / 100;
        match known {
            None if self.was_full || !small_is_full => self.small.push(item(key, size)),
            _ => self.main.push(item(key, size)),
        }
        evicted
    }

    fn remove(&mut self, key: u64) {
        self.replace(key);
        self.ghost.retain(|i| i.key != key);
    }

    fn replace(&mut self, key: u64) {
        self.small.retain(|i| i.key != key);
        self.main.retain(|i| i.key != key);
    }

    fn evict(&mut self) -> Option<u64> {
        self.was_full = true;
        let main_most = self.capacity - self.capacity * 10 / 100;
        let mut in_small = bytes(&self.main) <= main_most;
        while !(self.small.is_empty() && self.main.is_empty()) {
            if self.main.is_empty() || (in_small && !self.small.is_empty()) {
                let mut item = self.small.remove(0);
                if item.uses < 2 {
                    self.remember(item);
                    return Some(item.key);
                }
                item.uses = 0;
                self.main.push(item);
            } else {
                in_small = false;
                let mut item = self.main.remove(0);
                if item.uses == 0 {
                    return Some(item.key);
                }
                item.uses -= 1;
                self.main.push(item);
            }
        }
        None
    }
}

/// LFU with ageing. `items` contains each object with the number of the step in which the object was last
/// used or aged.
#[derive(Debug)]
pub(crate) struct Lfu {
    pub(crate) capacity: u64,
    pub(crate) mean_max: u64,
    pub(crate) count_max: u64,
    items: Vec<(Item, u64)>,
    step: u64,
}

impl Lfu {
    pub(crate) fn new(capacity: u64, count_max: u64, mean_max: u64) -> Self {
        Self {
            capacity,
            mean_max,
            count_max,
            items: Vec::new(),
            step: 0,
        }
    }

    fn age(&mut self) {
        let sum: u64 = self.items.iter().map(|(i, _)| i.uses).sum();
        if sum <= self.mean_max * self.items.len() as u64 {
            return;
        }
        self.items.sort_by_key(|(i, step)| (i.uses, *step));
        for (item, step) in self.items.iter_mut().filter(|(i, _)| i.uses >= 2) {
            self.step += 1;
            (item.uses, *step) = (item.uses / 2, self.step);
        }
    }
}

impl Naive for Lfu {
    fn get(&mut self, key: u64) -> bool {
        self.step += 1;
        let (step, most) = (self.step, self.count_max);
        let Some((item, last)) = self.items.iter_mut().find(|(i, _)| i.key == key) else {
            return false;
        };
        item.uses = (item.uses + 1).min(most);
        *last = step;
        self.age();
        true
    }

    fn insert(&mut self, key: u64, size: u64) -> Vec<u64> {
        let mut evicted = Vec::new();
        while self.items.iter().map(|(i, _)| i.size).sum::<u64>() + size > self.capacity {
            evicted.extend(self.evict());
        }
        self.step += 1;
        let new = Item { key, size, uses: 1 };
        self.items.push((new, self.step));
        evicted
    }

    fn remove(&mut self, key: u64) {
        self.items.retain(|(i, _)| i.key != key);
    }

    fn evict(&mut self) -> Option<u64> {
        let least = self.items.iter().min_by_key(|(i, t)| (i.uses, *t))?.0.key;
        self.remove(least);
        Some(least)
    }
}
