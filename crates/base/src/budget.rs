//! Division of the setting `memory`.

/// Shares of a memory budget, in bytes. The proxy divides by this rule, and the simulator predicts
/// with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// RAM tier, index and what waits to be written.
    pub engine: u64,
    /// Connections, buffers, queues and fills.
    pub requests: u64,
}

impl Budget {
    /// Memory of the program itself: code, threads, buffers of the writer. Measured: 15 MiB are resident
    /// after the start with one store, and the first writes need buffers.
    const PROGRAM: u64 = 18 << 20;

    /// Requests have three eighths of the rest up to this, in bytes: with a third of a small budget,
    /// small answers find no room beside large ones.
    const FEW_REQUESTS: u64 = 20 << 20;

    /// Divides `memory`. The program and the allocator come first. Of the rest, three eighths are
    /// for requests up to 20 MiB, and a third up to 96 MiB; where there is much memory, an eighth.
    #[must_use]
    pub fn of(memory: u64) -> Self {
        let rest = memory.saturating_sub(Self::PROGRAM + Self::allocator(memory));
        let small = (rest / 8 * 3).min(Self::FEW_REQUESTS);
        let requests = small.max(rest / 3).min((96 << 20).max(rest / 8));
        Self {
            engine: rest - requests,
            requests,
        }
    }

    /// Memory that the allocator keeps between objects in use, and that requests use beyond their share
    /// when all of them use all their rights: a sixteenth of `memory`, or a seventh where that is at most
    /// 32 MiB. Measured: it grows less than the budget does.
    fn allocator(memory: u64) -> u64 {
        (memory / 7).min(32 << 20).max(memory / 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_reserve_are_the_whole_budget() {
        for (mib, requests) in [(64, 13), (96, 21), (512, 96), (1024, 117), (8192, 957)] {
            let memory = mib << 20;
            let budget = Budget::of(memory);
            let reserve = Budget::PROGRAM + Budget::allocator(memory);
            assert_eq!(budget.engine + budget.requests + reserve, memory);
            assert_eq!(budget.requests >> 20, requests, "of {mib} MiB");
        }
        let none = Budget {
            engine: 0,
            requests: 0,
        };
        assert_eq!(Budget::of(Budget::PROGRAM), none);
    }
}
