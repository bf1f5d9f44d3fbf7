//! Buffers kept for reuse, up to a fixed number of bytes.

use super::{AlignedBuf, PAGE, memory::Memory};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Capacities up to this are kept in classes of one page each, larger ones in powers of two.
const FINE_PAGES: usize = 16;
/// Classes: 16 fine ones, then 128 KiB, 256 KiB, ... 64 MiB.
const CLASSES: usize = FINE_PAGES + 10;

/// A bounded store of idle buffers. Clones share it; any thread may drop a buffer of it.
///
/// The bound is on idle memory only: taking from an empty pool allocates. Give each network
/// thread its own, so that its lock is never contended.
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

/// Destination of a buffer that is dropped.
pub(super) struct Home(BufPool);

impl BufPool {
    /// Keeps at most `idle_max` bytes of unused buffers.
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

    /// A buffer of length `len`, its capacity rounded up to a class of this pool. Its bytes are
    /// initialised, but arbitrary: what the last user left.
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

    /// Bytes of idle buffers held now.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.0.idle.lock().bytes
    }
}

impl Home {
    /// Keeps `memory` if there is room, else frees it.
    pub(super) fn take_back(&self, memory: Memory) {
        let (Some(class), capacity) = class_of(memory.capacity()) else {
            return;
        };
        let mut idle = self.0.0.idle.lock();
        if capacity == memory.capacity() && idle.bytes + capacity <= self.0.0.idle_max {
            idle.bytes += capacity;
            idle.classes[class].push(memory);
        }
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

/// Class and capacity for `len` bytes; no class if empty or too large to keep.
fn class_of(len: usize) -> (Option<usize>, usize) {
    let pages = len.div_ceil(PAGE);
    if pages == 0 {
        return (None, 0);
    }
    if pages <= FINE_PAGES {
        return (Some(pages - 1), pages * PAGE);
    }
    let pages = pages.next_power_of_two();
    let class = FINE_PAGES + (pages / FINE_PAGES).trailing_zeros() as usize - 1;
    if class < CLASSES {
        (Some(class), pages * PAGE)
    } else {
        (None, len)
    }
}
