//! A pool of buffers that are kept for reuse, up to a fixed number of bytes.

use super::{AlignedBuf, PAGE, memory::Memory};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Buffers of up to this number of pages (64 KiB) are kept in size classes that are one page apart.
const FINE_PAGES: usize = 16;
/// Number of size classes in each doubling of the capacity above [`FINE_PAGES`] pages. So a buffer is at most
/// an eighth longer than needed. This matters for the objects that Foxy keeps in memory: a fragment of a
/// large object stays in the buffer into which it was read. The disk blocks of a fragment's record are a
/// little longer than 256 KiB. If the classes were powers of two, such a buffer would have 512 KiB.
const STEPS: usize = 8;
/// Number of doublings up to the longest buffers that are kept (64 MiB).
const DOUBLINGS: usize = 10;
const CLASSES: usize = FINE_PAGES + DOUBLINGS * STEPS;

/// A bounded collection of unused buffers. Clones share it. Any thread may drop a buffer of the pool.
///
/// Only unused memory is bounded: taking a buffer from an empty pool allocates memory. Give each network
/// thread its own pool, so that its lock is never contended.
#[derive(Clone)]
pub struct BufPool(Arc<Shared>);

struct Shared {
    idle_max: usize,
    idle: Mutex<Idle>,
}

struct Idle {
    bytes: usize,
    classes: [Vec<Memory>; CLASSES],
}

/// The pool that a buffer returns to when it is dropped.
pub(super) struct Home(BufPool);

impl BufPool {
    /// Makes a pool that keeps at most `idle_max` bytes of unused buffers.
    #[must_use]
    pub fn new(idle_max: usize) -> Self {
        let idle = Idle {
            bytes: 0,
            classes: [const { Vec::new() }; CLASSES],
        };
        Self(Arc::new(Shared {
            idle_max,
            idle: Mutex::new(idle),
        }))
    }

    /// A buffer of length `len`. Its capacity is rounded up to a class of this pool. Its bytes are
    /// initialised, but may be anything that an earlier user left.
    #[must_use]
    pub fn take(&self, len: usize) -> AlignedBuf {
        let (class, capacity) = class_of(len);
        let reused = class.and_then(|class| {
            let mut idle = self.0.idle.lock();
            let memory = idle.classes[class].pop()?;
            idle.bytes -= memory.capacity();
            Some(memory)
        });
        let memory = reused.unwrap_or_else(|| Memory::ordinary(capacity));
        AlignedBuf::from_memory(memory, len, Some(Home(self.clone())))
    }

    /// Number of bytes in the unused buffers that the pool keeps now.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.0.idle.lock().bytes
    }
}

impl Home {
    /// Keeps `memory` if the limit of the pool permits, else frees it. If it is the first buffer of its
    /// class, buffers of other classes may be freed first.
    pub(super) fn take_back(&self, memory: Memory) {
        let (Some(class), capacity) = class_of(memory.capacity()) else {
            return;
        };
        let max = self.0.0.idle_max;
        if capacity != memory.capacity() || capacity > max {
            return;
        }
        let mut idle = self.0.0.idle.lock();
        let first = idle.classes[class].is_empty();
        while first && idle.bytes + capacity > max && idle.free_one() {}
        if idle.bytes + capacity <= max {
            idle.bytes += capacity;
            idle.classes[class].push(memory);
        }
    }
}

impl Idle {
    /// Frees one buffer of the class that has the most bytes; false if there is no buffer.
    fn free_one(&mut self) -> bool {
        let bytes = |class: &&mut Vec<Memory>| class.iter().map(Memory::capacity).sum::<usize>();
        let freed = self.classes.iter_mut().max_by_key(bytes).and_then(Vec::pop);
        self.bytes -= freed.as_ref().map_or(0, Memory::capacity);
        freed.is_some()
    }
}

impl fmt::Debug for BufPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "BufPool({} of {} bytes idle)",
            self.idle_bytes(),
            self.0.idle_max
        )
    }
}

/// Class and capacity for `len` bytes. There is no class if `len` is zero or too large to keep.
fn class_of(len: usize) -> (Option<usize>, usize) {
    let pages = len.div_ceil(PAGE);
    if pages == 0 {
        return (None, 0);
    }
    if pages <= FINE_PAGES {
        return (Some(pages - 1), pages * PAGE);
    }
    // `1 << doubling` is the largest power of two below `pages`. `steps` is the number of steps from this
    // power up to `pages`.
    let doubling = (pages - 1).ilog2();
    let step = (1 << doubling) / STEPS;
    let steps = (pages - (1 << doubling)).div_ceil(step);
    let pages = (1 << doubling) + steps * step;
    let class = FINE_PAGES + (doubling - FINE_PAGES.ilog2()) as usize * STEPS + steps - 1;
    if class < CLASSES {
        (Some(class), pages * PAGE)
    } else {
        (None, len)
    }
}
