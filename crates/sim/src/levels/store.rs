//! Contents of the two levels: two caches under any policies, or the faster shared table if both policies are
//! LRU.

use foxy_policy::Evicted;
use foxy_trace::Request;

use super::{
    AnyCache, DiskOp, DiskOpKind, LevelsConfig, Outcome, PolicyKind, Stamp,
    lru_pair::{Level, LruPair},
    op,
};

pub(super) enum Store {
    Any(Any),
    Lru(LruPair, Vec<(u64, Stamp)>),
}

/// Two caches under arbitrary policies.
pub(super) struct Any {
    ram: Option<AnyCache<Stamp>>,
    disk: AnyCache<Stamp>,
    evicted: Vec<Evicted<u64, Stamp>>,
}

impl Store {
    pub(super) fn new(config: &LevelsConfig) -> Self {
        if config.ram_policy == PolicyKind::Lru && config.disk_policy == PolicyKind::Lru {
            Self::Lru(LruPair::new(config.ram, config.disk), Vec::new())
        } else {
            Self::any(config)
        }
    }

    pub(super) fn any(config: &LevelsConfig) -> Self {
        Self::Any(Any {
            ram: (config.ram > 0).then(|| config.ram_policy.build(config.ram)),
            disk: config.disk_policy.build(config.disk),
            evicted: Vec::new(),
        })
    }

    /// Handles a cacheable request.
    pub(super) fn request(&mut self, request: &Request, ops: &mut Vec<DiskOp>) -> Outcome {
        match self {
            Self::Any(any) => any.request(request, ops),
            Self::Lru(pair, gone) => {
                let outcome = lru(pair, gone, request, ops);
                gone.clear();
                outcome
            }
        }
    }

    /// Evicts the next object from disk.
    pub(super) fn evict(&mut self) -> Option<(u64, Stamp)> {
        match self {
            Self::Any(any) => any.disk.evict().map(|gone| (gone.key, gone.value)),
            Self::Lru(pair, _) => pair.evict(Level::Disk, None),
        }
    }

    pub(super) fn disk_used(&self) -> u64 {
        match self {
            Self::Any(any) => any.disk.used(),
            Self::Lru(pair, _) => pair.used(Level::Disk),
        }
    }

    pub(super) fn disk_objects(&self) -> usize {
        match self {
            Self::Any(any) => any.disk.len(),
            Self::Lru(pair, _) => pair.objects(Level::Disk),
        }
    }
}

impl Any {
    fn request(&mut self, request: &Request, ops: &mut Vec<DiskOp>) -> Outcome {
        let mut modified = false;
        if let Some(ram) = &mut self.ram
            && let Some(stamp) = ram.get(&request.object)
        {
            if stamp.is(request) {
                return Outcome::RamHit;
            }
            modified = true;
        }
        if let Some(stamp) = self.disk.get(&request.object).copied() {
            if stamp.is(request) {
                ops.push(op(DiskOpKind::Read, request.object, stamp));
                self.keep_in_ram(request.object, stamp);
                return Outcome::DiskHit;
            }
            modified = true;
        }
        if request.size == 0 {
            return Outcome::Bypass;
        }
        self.store(request, ops);
        missed(modified)
    }

    fn keep_in_ram(&mut self, object: u64, stamp: Stamp) {
        if let Some(ram) = &mut self.ram {
            // The object is already on disk, so it does not matter whether memory accepts it.
            let _ = ram.insert(object, stamp, stamp.size, &mut self.evicted);
            self.evicted.clear();
        }
    }

    fn store(&mut self, request: &Request, ops: &mut Vec<DiskOp>) {
        let stamp = Stamp::of(request);
        self.keep_in_ram(request.object, stamp);
        let inserted = self
            .disk
            .insert(request.object, stamp, stamp.size, &mut self.evicted);
        if let Some(old) = inserted.replaced {
            ops.push(op(DiskOpKind::Delete, request.object, old));
        }
        // Some policies compare the new object with the stored objects, and can choose the new object itself
        // for eviction. Then the new object was never on disk.
        let stays = inserted.stored && !self.evicted.iter().any(|e| e.key == request.object);
        for gone in self.evicted.drain(..).filter(|e| e.key != request.object) {
            ops.push(op(DiskOpKind::Delete, gone.key, gone.value));
        }
        if stays {
            ops.push(op(DiskOpKind::Write, request.object, stamp));
        }
    }
}

const fn missed(modified: bool) -> Outcome {
    if modified {
        Outcome::Modified
    } else {
        Outcome::Miss
    }
}

/// Handles a cacheable request as [`Any::request`] does, on the table that two LRU levels share.
fn lru(
    pair: &mut LruPair,
    gone: &mut Vec<(u64, Stamp)>,
    request: &Request,
    ops: &mut Vec<DiskOp>,
) -> Outcome {
    let found = pair.find(request.object);
    let mut modified = false;
    if let Some(at) = found {
        if let Some(stamp) = pair.stamp(Level::Ram, at) {
            pair.touch(Level::Ram, at);
            if stamp.is(request) {
                return Outcome::RamHit;
            }
            modified = true;
        }
        if let Some(stamp) = pair.stamp(Level::Disk, at) {
            pair.touch(Level::Disk, at);
            if stamp.is(request) {
                ops.push(op(DiskOpKind::Read, request.object, stamp));
                pair.store(Level::Ram, at, stamp, gone);
                return Outcome::DiskHit;
            }
            modified = true;
        }
    }
    if request.size == 0 {
        return Outcome::Bypass;
    }
    let stamp = Stamp::of(request);
    let at = pair.node(found, request.object);
    pair.store(Level::Ram, at, stamp, gone);
    gone.clear();
    if let Some(old) = pair.take(Level::Disk, at) {
        ops.push(op(DiskOpKind::Delete, request.object, old));
    }
    let stored = pair.store(Level::Disk, at, stamp, gone);
    for (object, stamp) in gone.iter() {
        ops.push(op(DiskOpKind::Delete, *object, *stamp));
    }
    if stored {
        ops.push(op(DiskOpKind::Write, request.object, stamp));
    } else {
        pair.drop_unused(at);
    }
    missed(modified)
}
