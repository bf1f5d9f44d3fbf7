//! Division of the memory budget (the setting `memory`).

/// The shares of a memory budget, in bytes. The proxy divides its budget by this rule, and the simulator uses
/// the same rule for predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Memory for the objects that are served from memory, for the index, and for data that waits to be
    /// written.
    pub engine: u64,
    /// Memory for connections, buffers, queues and running fetches from origins.
    pub requests: u64,
}

impl Budget {
    /// Memory of the program itself, in bytes: code, threads, buffers of the writer. After the start with one
    /// store, 16 to 18 MiB are resident (measured). The buffers for the first writes need more memory.
    const PROGRAM: u64 = 19 << 20;

    /// In small budgets, requests get three eighths of the memory that remains after the program and the
    /// allocator, but at most this number of bytes. In larger budgets, requests get a third of the remaining
    /// memory, up to the limit that [`Self::of`] states. In a small budget, a third would be too little: one
    /// large answer would leave no memory for small answers.
    const FEW_REQUESTS: u64 = 20 << 20;

    /// Divides `memory`. The program and the allocator get their shares first. Requests get the larger of two
    /// amounts: three eighths of the remaining memory (but at most 20 MiB), and a third of the remaining
    /// memory. Their share has an upper limit: 96 MiB, or an eighth of the remaining memory if this eighth is
    /// more. The engine gets everything else.
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

    /// Reserve in bytes for two purposes. First, the allocator keeps free memory between objects in use.
    /// Second, requests need more than their share when every request uses all the memory that it may use.
    /// The reserve is a seventh of `memory`, but at most 48 MiB. If a sixteenth of `memory` is more, the
    /// reserve is this sixteenth. The fractions differ because the measured need grows more slowly than the
    /// budget.
    fn allocator(memory: u64) -> u64 {
        (memory / 7).min(48 << 20).max(memory / 16)
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
