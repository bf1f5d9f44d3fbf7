//! Reading the purge journal at the start, before anybody is answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_format::{BLOCK, JournalBlock, JournalHalf, PurgeNote, read_journal_half};

use super::journal::{Journal, block_at, half_blocks};
use crate::Engine;
use crate::shared::StoreShared;
use crate::stats::add;

/// What a journal says.
#[derive(Debug)]
pub(crate) struct Recalled {
    pub(crate) journal: Journal,
    notes: Vec<PurgeNote>,
    seen: u64,
    retired: u64,
    floor: u64,
    /// Purges may be lost.
    damaged: bool,
}

/// Reads the journal of a store that is being opened, and begins one where there is none.
///
/// # Errors
/// What the device says.
pub(crate) fn recall(store: &StoreShared) -> io::Result<Recalled> {
    let half_bytes = half_blocks(store) as usize * BLOCK as usize;
    let mut halves = Vec::new();
    let mut empty = true;
    for half in 0..2 {
        let mut bytes = vec![0; half_bytes];
        store.disk.read_at(block_at(store, half, 0), &mut bytes)?;
        add(&store.counters.load_bytes, half_bytes as u64);
        empty &= bytes.iter().all(|b| *b == 0);
        halves.push((half, read_journal_half(&bytes, store.uuid)));
    }
    let whole = halves.into_iter().filter_map(|(n, half)| Some((n, half?)));
    if let Some((number, half)) = whole.max_by_key(|(_, half)| half.newest.first) {
        return Ok(Recalled {
            journal: Journal::after(number, &half),
            seen: half.newest.seen,
            retired: half.newest.retired,
            floor: half.newest.floor,
            damaged: half.holes,
            notes: half.notes,
        });
    }
    // From now on a half is whole, whatever happens: one without any is damage.
    let first = begin(store)?;
    Ok(Recalled {
        journal: Journal::after(0, &first),
        notes: Vec::new(),
        seen: 0,
        retired: 0,
        floor: 0,
        damaged: !empty,
    })
}

fn begin(store: &StoreShared) -> io::Result<JournalHalf> {
    let newest = JournalBlock {
        uuid: store.uuid,
        sequence: 1,
        first: 1,
        snapshot: 1,
        seen: 0,
        retired: 0,
        floor: 0,
        notes: Vec::new(),
    };
    let bytes = newest.encode().map_err(io::Error::other)?;
    store.disk.write_at(block_at(store, 0, 0), &bytes)?;
    store.disk.flush()?;
    Ok(JournalHalf {
        newest,
        blocks: 1,
        notes: Vec::new(),
        holes: false,
    })
}

impl Recalled {
    /// Makes what the journal says true for everybody. To be called before the store is known to
    /// lookups, when the end of its log is known. `generation` is the store's own, made durable.
    pub(crate) fn adopt(
        self,
        engine: &Engine,
        store: &Arc<StoreShared>,
        generation: u64,
    ) -> Journal {
        // A store that grows takes its own place.
        let others: Vec<_> = (engine.stores().iter())
            .filter(|other| other.uuid != store.uuid)
            .cloned()
            .collect();
        // By what each had seen itself: numbers given since the last stop say nothing about that.
        let missed =
            |other: &&Arc<StoreShared>| self.retired > other.journal_seen.load(Ordering::Acquire);
        let behind: Vec<_> = others.iter().filter(missed).collect();
        store.journal_seen.store(self.seen, Ordering::Release);
        // Numbers are never given twice: each opening has a generation of its own.
        let base = (generation << 32).max(self.seen);
        engine.purges.raise(base);
        let mut floor = self.floor;
        if self.damaged {
            tracing::warn!(store = %store.disk.describe(), "the purge journal is damaged: what is stored is void");
            add(&store.counters.damaged, 1);
            floor = base;
        }
        // It missed purges that the others are done with.
        let retired = engine.purges.read().retired;
        if retired > self.seen {
            floor = floor.max(retired);
        }
        store.purge_floor.store(floor, Ordering::Release);
        for other in &behind {
            other.purge_floor.fetch_max(self.retired, Ordering::AcqRel);
        }
        if !behind.is_empty() {
            engine.clear_memory();
        }
        let all: Vec<_> = others.iter().chain([store]).cloned().collect();
        engine.purges.adopt(self.notes, self.retired, &all);
        // What one journal knows, all of them should.
        let tell_this = self.damaged || floor != self.floor || !others.is_empty();
        for (tell, this) in others.iter().map(|o| (true, o)).chain([(tell_this, store)]) {
            if tell {
                this.journal.lock().snapshot = true;
                this.bell.ring();
            }
        }
        self.journal
    }
}
