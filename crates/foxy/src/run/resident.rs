//! The thread that compares the memory of the process with its budget.
//!
//! The proxy's ledger contains an entry for each piece of memory that requests and connections use. Some
//! entries are estimates, and the allocator keeps some of the freed memory. This thread therefore reads the
//! resident memory, the memory of sockets, and the use of the control group. Memory beyond the budget, or
//! beyond nine tenths of the group's limit, counts as used by requests and is taken from the RAM tier (the
//! objects in memory). So Foxy reduces its load before the kernel kills the process.
//!
//! Only some control groups count the buffers of sockets. In other groups, the entries of the ledger serve as
//! an estimate of these buffers. Listing the sockets would give the exact size, but for thousands of sockets
//! it takes 10 ms, which is too long for each sample.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use foxy_base::Budget;
use foxy_proxy::{Proxy, Use};
use foxy_store::Engine;

use super::StartError;
use super::background::Background;
use crate::admin::resident_bytes;
use crate::config::{GroupUse, MemoryGroup};

/// Time between two samples. A heavy load can allocate about 50 MiB in that time.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Largest budget in bytes with which huge pages are forbidden.
const SMALL_PAGES: u64 = 512 << 20;
/// Largest budget in bytes with which freed memory is returned to the system immediately.
const GIVE_BACK: u64 = 256 << 20;

/// The memory budget in bytes, which a reload may change.
#[derive(Clone, Debug)]
pub(super) struct Memory(Arc<AtomicU64>);

impl Memory {
    /// Puts a budget into effect: stores it, and adapts the allocator to it.
    pub(super) fn new(bytes: u64) -> Self {
        adapt_allocator(bytes);
        Self(Arc::new(bytes.into()))
    }

    /// Replaces the budget for all later samples.
    pub(super) fn set(&self, bytes: u64) {
        adapt_allocator(bytes);
        self.0.store(bytes, Ordering::Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adapts the allocator to a budget in bytes. With a budget of at most `GIVE_BACK`, freed memory is returned
/// to the system immediately, because memory that the allocator keeps for later use counts against the budget
/// too. Each long block then has its own pages, so that it can be returned as well. With a budget of at most
/// `SMALL_PAGES`, huge pages are forbidden. The allocator does not request huge pages, but some systems use
/// them anyway. Then 20 to 30 MiB more are resident.
fn adapt_allocator(memory: u64) {
    let at_once = memory <= GIVE_BACK;
    foxy_disk::give_back_after(match at_once {
        true => Duration::ZERO,
        false => Duration::from_millis(50),
    });
    foxy_disk::separate_long_blocks(at_once);
    if let Err(error) = foxy_disk::use_small_pages(memory <= SMALL_PAGES) {
        tracing::debug!(%error, "the kernel keeps its choice of page size");
    }
}

/// Starts the thread.
pub(super) fn start(
    memory: Memory,
    proxy: &Arc<Proxy>,
    engine: &Arc<Engine>,
) -> Result<Background, StartError> {
    let (proxy, engine) = (Arc::clone(proxy), Arc::clone(engine));
    Background::start("memory", move |stopped| {
        run(&memory, &proxy, &engine, stopped);
    })
}

fn run(memory: &Memory, proxy: &Proxy, engine: &Engine, stopped: &Receiver<()>) {
    let group = MemoryGroup::own();
    let mut withheld = 0;
    while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let memory = memory.bytes();
        let share = signed(Budget::of(memory).requests);
        let sockets = Use::ALL.map(|of| of.in_sockets(proxy.memory_used(of)) as u64);
        let over = Sample::now(group.as_ref(), sockets.iter().sum()).over(memory);
        let real = share.saturating_add(over).max(0);
        let real = usize::try_from(real).unwrap_or(usize::MAX);
        proxy.observe_memory(real, is_roomy(over, memory));
        let next = withhold(withheld, over);
        if next != withheld {
            engine.withhold(next);
            withheld = next;
        }
    }
}

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Resident memory and buffers of sockets.
    process: u64,
    /// Use and limit of the process's control group.
    group: Option<(u64, u64)>,
}

impl Sample {
    /// Reads the memory now. `sockets` is an estimate of the buffers of sockets, for groups that do not count
    /// them.
    fn now(group: Option<&MemoryGroup>, sockets: u64) -> Self {
        let usage = group.zip(group.and_then(MemoryGroup::usage));
        let usage = usage.map(|(group, usage)| (usage, group.limit()));
        Self::of(resident_bytes(), usage, sockets)
    }

    /// Combines the resident bytes, the use and limit of the control group, and the estimate for sockets.
    ///
    /// A group of version 1 counts the buffers of sockets only if its owner has set a limit for them.
    /// Otherwise it reports 0. If the group counts them, the value is above 0 whenever Foxy has buffers in
    /// use.
    fn of(resident: u64, group: Option<(GroupUse, u64)>, sockets: u64) -> Self {
        let counted = group
            .map(|(usage, _)| usage.sockets)
            .filter(|bytes| *bytes > 0);
        Self {
            process: resident + counted.unwrap_or(sockets),
            group: group.map(|(usage, limit)| (usage.used, limit)),
        }
    }

    /// Returns the larger of two numbers of bytes: the excess of the process over its budget, and the excess
    /// of its control group over nine tenths of the group's limit. Each number is negative if the use is
    /// below its bound.
    fn over(self, budget: u64) -> i64 {
        let own = signed(self.process) - signed(budget);
        let group = |(used, limit): (u64, u64)| signed(used) - signed(limit - limit / 10);
        self.group.map_or(own, |of| own.max(group(of)))
    }
}

/// True if at least half of the budget is free (`over` is at most minus one half of the budget). The free
/// half is enough for the memory that can be allocated between two samples.
fn is_roomy(over: i64, budget: u64) -> bool {
    over <= -signed(budget / 2)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the number of bytes that the RAM tier must give up from now on. `now` is the number that applied
/// so far. The number rises immediately. It falls slowly, because the allocator returns memory to the system
/// some time after the RAM tier has freed it.
fn withhold(now: u64, over: i64) -> u64 {
    match u64::try_from(over) {
        Ok(over) if over > 0 => now.max(over),
        _ => now.saturating_sub((now / 32).max(1 << 19)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_bound_counts() {
        let sample = |process, group| Sample { process, group };
        assert_eq!(sample(900, None).over(1000), -100);
        assert_eq!(sample(900, Some((950, 2000))).over(1000), -100);
        assert_eq!(sample(900, Some((950, 1000))).over(1000), 50);
        assert_eq!(sample(1200, Some((950, 1000))).over(1000), 200);
    }

    #[test]
    fn the_ram_tier_gives_at_once_and_gets_slowly() {
        let held = withhold(0, 64 << 20);
        assert_eq!(held, 64 << 20);
        assert_eq!(withhold(held, 1 << 20), held);
        assert_eq!(withhold(held, -1), 62 << 20);
        assert_eq!(withhold(100, -1), 0);
    }

    #[test]
    fn half_of_the_budget_is_room() {
        let roomy = |process, group| is_roomy(Sample { process, group }.over(1000), 1000);
        assert!(roomy(500, None) && !roomy(501, None));
        // The process shares its control group with other processes, and the group is nearly full.
        assert!(!roomy(300, Some((850, 1000))));
    }

    #[test]
    fn sockets_are_estimated_where_no_group_counts_them() {
        let counted = |sockets| Some((GroupUse { used: 500, sockets }, 1000));
        let process = |group| Sample::of(400, group, 70).process;
        assert_eq!(process(None), 470, "no group");
        assert_eq!(process(counted(0)), 470, "a group that does not count them");
        assert_eq!(process(counted(30)), 430);
        assert_eq!(Sample::of(400, counted(0), 70).group, Some((500, 1000)));
    }

    #[test]
    fn this_process_has_memory() {
        let of = |sockets| Sample::now(None, sockets).over(0);
        assert!(of(0) > 1 << 20);
        assert!(of(1 << 40) > 1 << 40, "and sockets");
    }
}
