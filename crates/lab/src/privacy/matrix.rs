//! The complete privacy matrix: all cells (combinations of a header set, a timing and a kind of users), many
//! of them in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foxy_base::Rng;
use tokio::sync::Semaphore;

use super::cell::{Cell, Exchange, Kind, RunState};
use super::judge::judge;
use super::table::{Pair, Set, Sharing, TIMINGS, Timing};

/// Number of cells that run in parallel.
const AT_A_TIME: usize = 64;

/// The counters of all cells with one timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of cells.
    pub cells: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of answers that were made for another request.
    pub shared: u64,
    /// Number of foreign answers: answers with a part that the table forbids to share.
    pub foreign: u64,
    /// Number of requests without an answer of the origin.
    pub missing: u64,
    /// Number of cells in which sharing is expected, but no answer was shared. Sharing is expected if the
    /// table has the letter `y` and the timing is concurrent or sequential.
    pub lost: u64,
}

/// A cell with foreign answers, which contain a part that the table forbids to share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Number of foreign answers.
    pub answers: u64,
    /// Parts that belonged to another user.
    pub parts: BTreeSet<&'static str>,
}

/// Name of a cell: its header set, its timing and its kind of users.
pub type Name = (String, Timing, &'static str);

/// Findings of a run of the matrix.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// Counters of each timing.
    pub timings: BTreeMap<Timing, Counts>,
    /// Cells with foreign answers.
    pub foreign: BTreeMap<Name, Foreign>,
    /// Cells without the sharing that the table expects.
    pub lost: BTreeSet<Name>,
    /// Reasons for missing answers, and the number of missing answers for each reason.
    pub missing: BTreeMap<String, u64>,
}

impl Matrix {
    /// Number of answers with a forbidden part.
    #[must_use]
    pub fn foreign_answers(&self) -> u64 {
        self.timings.values().map(|counts| counts.foreign).sum()
    }

    /// Number of requests without an answer of the origin.
    #[must_use]
    pub fn missing_answers(&self) -> u64 {
        self.timings.values().map(|counts| counts.missing).sum()
    }

    /// Number of all requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.timings.values().map(|counts| counts.requests).sum()
    }

    fn take(&mut self, cell: &Cell, exchanges: &[Exchange], state: &RunState) {
        let name = (cell.set.name.clone(), cell.timing, cell.kind.name());
        let counts = self.timings.entry(cell.timing).or_default();
        counts.cells += 1;
        let mut shared = false;
        let path = cell.path();
        for exchange in exchanges {
            let verdict = judge(
                &cell.set,
                cell.timing,
                &path,
                exchange,
                exchanges,
                &state.site,
            );
            counts.requests += 1;
            counts.shared += u64::from(verdict.shared);
            shared |= verdict.shared;
            if !verdict.foreign.is_empty() {
                counts.foreign += 1;
                let foreign = self.foreign.entry(name.clone()).or_default();
                foreign.answers += 1;
                foreign.parts.extend(verdict.foreign);
            }
            if let Some(why) = verdict.missing {
                counts.missing += 1;
                *self.missing.entry(why).or_default() += 1;
            }
        }
        let expected = cell.set.sharing(cell.timing, cell.kind.pair()) == Sharing::Yes
            && matches!(cell.timing, Timing::Concurrent | Timing::Sequential);
        if expected && !shared {
            counts.lost += 1;
            self.lost.insert(name);
        }
    }
}

/// Returns the cells of a round. The seed of `rng` determines their order.
pub(super) fn cells(sets: &[Arc<Set>], round: u32, rng: &mut Rng) -> Vec<Cell> {
    let mut cells = Vec::new();
    for set in sets {
        for timing in TIMINGS {
            let mut kinds = vec![Kind::Plain, Kind::Cookie, Kind::Authorization];
            // In some cells, only some of the users have a Cookie. Such cells add coverage only where the
            // table distinguishes users with a Cookie from users without credentials.
            let same = set.sharing(timing, Pair::Plain) == set.sharing(timing, Pair::Cookie);
            if !same && matches!(timing, Timing::Concurrent | Timing::Sequential) {
                kinds.extend([Kind::GuestFirst, Kind::GuestLast]);
            }
            cells.extend(kinds.into_iter().map(|kind| Cell {
                set: Arc::clone(set),
                timing,
                kind,
                round,
            }));
        }
    }
    for at in (1..cells.len()).rev() {
        cells.swap(at, rng.below(at as u64 + 1) as usize);
    }
    cells
}

/// Runs the cells and adds their results.
pub(super) async fn run(cells: Vec<Cell>, state: &Arc<RunState>, matrix: &mut Matrix) {
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = Vec::new();
    for cell in cells {
        let (room, state) = (Arc::clone(&room), Arc::clone(state));
        tasks.push(tokio::spawn(async move {
            let _turn = room.acquire().await;
            let exchanges = cell.run(&state).await;
            (cell, exchanges)
        }));
    }
    for task in tasks {
        if let Ok((cell, exchanges)) = task.await {
            matrix.take(&cell, &exchanges, state);
        }
    }
}
