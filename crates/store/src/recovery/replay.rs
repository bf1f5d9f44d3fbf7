//! Replays the purge journal at the start, before any request is answered.

use std::io;
use std::sync::Arc;

use foxy_base::rule;
use foxy_format::{BLOCK, JournalBlock, JournalHalf, StoreUuid, read_journal_half};

use crate::engine::StoreContext;
use crate::interface::add;
use crate::purge::{Journal, block_at, half_blocks};
use crate::shared::{StoreShared, read_agreed};

/// The contents of a purge journal. It has two halves; each begins with a snapshot of the purges that were
/// active then.
#[derive(Debug)]
pub(super) struct ReplayedJournal {
    /// The half in force: the valid half with the newer snapshot.
    half: JournalHalf,
    /// The number of that half (0 or 1).
    number: u32,
    /// True if purges may be lost.
    damaged: bool,
}

/// Reads the journal of a store that is being opened with this `generation`. A journal is damaged if it has
/// no complete half, because formatting a store already writes a complete half. It is also damaged if a half
/// cannot be read.
///
/// # Errors
/// An error if the device refuses to write the first block of a new journal.
pub(super) fn replay_journal(store: &StoreShared, generation: u64) -> io::Result<ReplayedJournal> {
    let half_bytes = half_blocks(store) as usize * BLOCK as usize;
    let mut whole = Vec::new();
    let mut unreadable = false;
    for half in 0..2 {
        let mut bytes = vec![0; half_bytes];
        let at = block_at(store, half, 0);
        if let Err(error) = read_agreed(&mut bytes, |into| store.disk.read_at(at, into)) {
            tracing::warn!(store = %store.disk.describe(), half, %error, "the purge journal cannot be read");
            unreadable = true;
            continue;
        }
        add(&store.counters.load_bytes, half_bytes as u64);
        whole.extend(read_journal_half(&bytes, store.space.uuid()).map(|read| (half, read)));
    }
    let newest = whole
        .into_iter()
        .max_by_key(|(_, half)| {
            rule!(
                "journal: the half with the newer snapshot is current",
                half.newest.first,
                u64::MAX - half.newest.first
            )
        })
        .map(|(number, half)| ReplayedJournal {
            damaged: half.holes
                || rule!(
                    "journal: a half that cannot be read is damage",
                    unreadable,
                    false
                ),
            half,
            number,
        });
    match newest {
        Some(replayed) => Ok(replayed),
        None => Ok(ReplayedJournal {
            half: begin(store, generation)?,
            number: 0,
            damaged: rule!("journal: one without a whole half is damaged", true, false),
        }),
    }
}

/// Returns the first block of a journal. Also returns the bytes for the beginning of a half: the encoded
/// block and its copy.
pub(super) fn first_block(uuid: StoreUuid, sequence: u64) -> io::Result<(JournalBlock, Vec<u8>)> {
    let block = JournalBlock {
        doubled: true,
        uuid,
        sequence,
        first: sequence,
        snapshot: 1,
        seen: 0,
        retired: 0,
        floor: 0,
        notes: Vec::new(),
    };
    let mut bytes = block.encode().map_err(io::Error::other)?;
    bytes.extend_from_within(..);
    Ok((block, bytes))
}

fn begin(store: &StoreShared, generation: u64) -> io::Result<JournalHalf> {
    let (newest, bytes) = first_block(store.space.uuid(), generation << 32)?;
    store.disk.write_at(block_at(store, 0, 0), &bytes)?;
    store.disk.flush()?;
    Ok(JournalHalf {
        newest,
        blocks: 2,
        notes: Vec::new(),
        holes: false,
    })
}

/// Brings the journal of a store up to date after the store was added to the list of open stores. The journal
/// gets the purges that were made since it was last written. These are purges made while no store was open,
/// or between the reading of the journal and now.
pub(super) fn catch_up(context: &StoreContext, store: &Arc<StoreShared>) {
    let set = context.purges.set();
    set.adopt(Vec::new(), 0, std::slice::from_ref(store));
    if rule!(
        "journal: a store that comes back notes the purges that no store has",
        set.newest_active() > store.marks.journal_seen(),
        false
    ) {
        store.journal.lock().want_snapshot();
        store.bell.ring();
    }
}

impl ReplayedJournal {
    /// Returns the journal in the state from which writing continues.
    fn goes_on(&self, generation: u64) -> Journal {
        let journal = Journal::after(self.number, &self.half);
        match self.damaged {
            true => journal.go_beyond(generation),
            false => journal,
        }
    }

    /// Returns the purge floor of the store, a purge number. Each record contains the number of the newest
    /// purge at the time of its fetch. If that number is below the purge floor, the record is dead. Purges
    /// after this opening of the store get numbers above `base`.
    fn floor(&self, context: &StoreContext, store: &StoreShared, base: u64) -> u64 {
        let JournalBlock { seen, floor, .. } = self.half.newest;
        let mut floor = floor;
        if self.damaged {
            tracing::warn!(store = %store.disk.describe(), "the purge journal is damaged: what is stored is void");
            add(&store.counters.damaged, 1);
            floor = rule!(
                "journal: after damage all records of earlier runs are dead",
                base,
                floor
            );
        }
        // If the greatest retired number is above the newest number in this store's journal, this store
        // missed purges or removals.
        let retired = context.purges.set().retired();
        if rule!(
            "journal: a store that missed purges gives nothing from before them",
            retired > seen,
            false
        ) {
            floor = floor.max(retired);
        }
        floor
    }

    /// Makes the journal's purges effective for all stores. Call it before lookups use the store, and
    /// after the end of its log is known. `generation` must belong to this opening of the store, and be
    /// durable.
    pub(super) fn adopt(
        self,
        context: &StoreContext,
        store: &Arc<StoreShared>,
        generation: u64,
    ) -> Journal {
        let journal = self.goes_on(generation);
        let JournalBlock {
            seen,
            retired: known,
            floor: own,
            ..
        } = self.half.newest;
        // If the store grows, its former entry in the list of open stores is left out: `store` replaces
        // it.
        let others: Vec<_> = (context.core.fleet.stores().iter())
            .filter(|other| other.space.uuid() != store.space.uuid())
            .cloned()
            .collect();
        // The comparison uses the newest number that each store's own journal had when it was opened.
        // Numbers that were used since then do not show whether a store missed purges.
        let missed = |other: &&Arc<StoreShared>| known > other.marks.journal_seen();
        let behind: Vec<_> = others.iter().filter(missed).collect();
        store.marks.set_journal_seen(seen);
        // Purge numbers are never used twice, because each opening has its own generation.
        let base = rule!(
            "purge: numbers are never given twice",
            (generation << 32).max(seen),
            0
        );
        context.purges.set().raise(base);
        let floor = self.floor(context, store, base);
        store.marks.set_purge_floor(floor);
        for other in behind.iter().filter(|_| {
            rule!(
                "journal: nor do the others that missed what it knows",
                true,
                false
            )
        }) {
            other.marks.raise_purge_floor(known);
        }
        if !behind.is_empty() {
            context.memory.clear();
        }
        let all: Vec<_> = others.iter().chain([store]).cloned().collect();
        context.purges.set().adopt(self.half.notes, known, &all);
        // Every journal should contain the purges of all journals.
        let single = !journal.is_doubled();
        let tell_this = self.damaged
            || rule!(
                "journal: a snapshot that is there once is written again",
                single,
                false
            )
            || floor != own
            || !others.is_empty();
        for (tell, this) in others.iter().map(|o| (true, o)).chain([(tell_this, store)]) {
            if tell {
                this.journal.lock().want_snapshot();
                this.bell.ring();
            }
        }
        journal
    }
}
