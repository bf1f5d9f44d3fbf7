//! The writer of one store, which one thread drives.
//!
//! This module uses `recovery`, `engine` and the modules below them; `join` opens stores of an engine.
//!
//! [`Writer`] drives parts that own their state. A turn (one call of [`Writer::turn`]) runs them in this
//! order:
//!
//! | part | owns |
//! |---|---|
//! | [`Io`] | the queue of the disk, numbered flushes |
//! | [`Intake`] | the writer's side of the inbox |
//! | [`PurgeNotes`] | the purge journal |
//! | [`Opening`] | segments still to be loaded |
//! | [`Superblocks`] | the superblocks in their last written state |
//! | [`Reuse`] | segments in preparation, records that are written again |
//! | [`Gather`] | objects and removals that wait for a cluster |
//! | [`Log`] | the open segment, the chain, segments being sealed |
//! | [`Flight`] | clusters being written, their buffers, the rate |
//! | [`Tickets`] | callers that wait for durability |
//! | [`Trouble`] | the pause after a failure |
//! | [`EngineHandle`] | the access to the other parts of the engine, for joining and leaving it |
//!
//! Only [`Objects`] accesses the engine's tables, and only [`EngineHandle`] accesses the other parts of the
//! engine.

mod assemble;
mod chain;
mod commit;
mod drain;
mod engine_handle;
mod flight;
mod gather;
mod intake;
pub(crate) mod io;
mod join;
mod journal;
mod leave;
mod log;
mod objects;
mod opening;
mod quarantine;
mod records;
mod reinsert;
mod reuse;
mod reuse_queue;
mod seal;
#[cfg(test)]
mod stand;
mod superblocks;
mod sync;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{MonoTime, rule};
use foxy_disk::Disk;
use foxy_format::{ENTRY_BYTES, LogPosition};

use self::engine_handle::EngineHandle;
use self::flight::Flight;
use self::gather::Gather;
use self::intake::Intake;
use self::io::{Done, Io, Purpose};
use self::journal::PurgeNotes;
use self::log::Log;
use self::objects::Objects;
use self::opening::Opening;
use self::reuse::{Found, May, Reuse};
use self::superblocks::Superblocks;
use self::sync::{Reached, Tickets};
use self::trouble::{Fault, Trouble};
use crate::engine::StoreContext;
use crate::recovery::Opened;
use crate::shared::StoreShared;
use crate::{OpenError, StoreOptions};

pub use self::leave::{GrowError, Grown};

/// Maximum number of operations in the writer's queue.
const QUEUE_DEPTH: u32 = 32;

/// Pause after a turn that found something in the inbox. More items arrive during the pause, so that the next
/// turn handles several at once.
const PAUSE: Duration = Duration::from_millis(1);

/// The time at which [`Writer::turn`] must be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The maximum time until the next turn; a wake-up or the completion of an operation ends the wait
    /// earlier. `None`: only such an event ends the wait.
    pub wait: Option<Duration>,
    /// True if there is more work now, so that the next turn must follow without a wait.
    pub busy: bool,
}

/// Wakes the thread that waits in [`Writer::park`].
#[derive(Clone, Debug)]
pub struct WakeHandle(Arc<StoreShared>);

impl WakeHandle {
    /// Wakes the writer's thread, so that its next turn begins now.
    pub fn wake(&self) {
        self.0.bell.ring();
    }
}

/// Writes, recovers and reuses the segments of one store. Dropping it without [`Writer::drain`] is like
/// a crash: it is safe, and data that was not yet durable is lost.
#[derive(Debug)]
pub struct Writer {
    engine: EngineHandle,
    store: Arc<StoreShared>,
    io: Io,
    objects: Objects,
    superblocks: Superblocks,
    gather: Gather,
    flight: Flight,
    log: Log,
    reuse: Reuse,
    tickets: Tickets,
    opening: Opening,
    notes: PurgeNotes,
    trouble: Trouble,
    intake: Intake,
    /// The time of this turn.
    now: MonoTime,
}

impl Drop for Writer {
    /// If a bug ends the thread, the store becomes offline. Otherwise a store without its thread would look
    /// healthy and store nothing.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let disk = self.store.disk.describe();
            self.store.condition.abandoned(&disk);
        }
    }
}

impl Writer {
    pub(crate) fn open(
        context: &StoreContext,
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        grows: Option<&Arc<StoreShared>>,
    ) -> Result<Self, OpenError> {
        let now = context.core.clock.mono();
        let queue = disk
            .open_queue(QUEUE_DEPTH)
            .map_err(|source| OpenError::Io {
                disk: disk.describe(),
                doing: "open a queue",
                source,
            })?;
        let Opened {
            store,
            superblock,
            current,
            ready,
            next_sequence,
            chain,
            loader,
            journal,
            tables_damaged,
        } = crate::recovery::open(context, disk, options, grows)?;
        let found = Found {
            ready,
            next_sequence,
            tables_damaged,
        };
        Ok(Self {
            engine: EngineHandle::new(context, &store),
            io: Io::new(store.clone(), queue, now),
            objects: Objects::new(context, store.clone()),
            superblocks: Superblocks::new(store.clone(), superblock, now),
            gather: Gather::new(options),
            flight: Flight::new(store.clone(), options.write_rate, now),
            log: Log::new(store.clone(), current, chain),
            reuse: Reuse::new(store.clone(), found, options.reinsert_percent),
            tickets: Tickets::new(store.clone(), options.sync_interval),
            opening: Opening::new(options.clone(), loader),
            notes: PurgeNotes::new(context, store.clone(), journal),
            trouble: Trouble::new(store.clone()),
            intake: Intake::new(store.clone()),
            now,
            store,
        })
    }

    /// Does the work that is due: reaps completions, commits written clusters, assembles and submits new
    /// clusters, seals segments, prepares their reuse, and loads segments. A turn usually does not wait for a
    /// disk. It does wait when it writes superblocks, when it records or retries segments in quarantine, and
    /// when it reads a summary that is damaged or longer than its slot.
    pub fn turn(&mut self) -> Turn {
        self.now = self.engine.now();
        if let Some(turn) = self.membership_step() {
            return turn;
        }
        self.reap();
        self.flight.look_for_stalls(self.now);
        self.part_if_lost();
        self.take_inbox();
        let pauses = self.trouble.pauses(self.now);
        self.notes.step(pauses, &mut self.io);
        self.load_step();
        self.restore_step();
        self.quarantine_step();
        self.reuse_step();
        self.gather.expire(self.now);
        self.assemble_all();
        self.log.seal_step(&mut self.io);
        self.tickets.step(self.reached(), &mut self.io);
        self.confirm_step();
        self.tickets.periodic_flush(&mut self.io, self.now);
        let held = self.memory_bytes() as u64;
        self.engine.set_writer_bytes(held);
        self.io.submit(self.now);
        self.next_turn()
    }

    fn reap(&mut self) {
        for Done {
            purpose,
            result,
            buf,
        } in self.io.reap()
        {
            match purpose {
                Purpose::Cluster(number) => self.cluster_done(number, result, buf),
                Purpose::Spill(sequence) => {
                    let written = result.is_ok();
                    self.log.spill_done(sequence, written, &mut self.io);
                }
                Purpose::SealSlot(sequence) => self.log.slot_done(sequence, result.is_ok()),
                Purpose::OpenSlot(sequence) => {
                    let done = self.reuse.open_header_done(sequence, result, &mut self.io);
                    self.unless_failed(done);
                }
                Purpose::OpenSlotCheck(sequence) => {
                    let found = buf.filter(|_| result.is_ok());
                    let done = self.reuse.open_header_checked(sequence, found.as_ref());
                    self.unless_failed(done);
                }
                Purpose::VictimSlot(sequence) => {
                    let slot = buf.filter(|_| result.is_ok());
                    self.reuse.victim_slot_done(sequence, slot, &self.objects);
                }
                Purpose::VictimPart(sequence) => {
                    let part = buf.filter(|_| result.is_ok());
                    self.reuse.victim_part_done(sequence, part, &self.objects);
                    self.reuse.hand_over(&mut self.gather, self.now);
                }
                Purpose::Load(piece) => self.opening.piece_done(piece, &result, buf),
                Purpose::Journal(write) => {
                    let written = result.is_ok();
                    let at = self.store.space.geometry().journal_at();
                    self.unless_failed(result.map_err(|error| Fault::write(at, error)));
                    self.notes.written(write, written, &mut self.io);
                }
                Purpose::JournalCheck(write) => {
                    let found = buf.filter(|_| result.is_ok());
                    let done = self.notes.checked(write, found.as_deref());
                    self.unless_failed(done);
                }
                Purpose::Flush(number) => match result {
                    Ok(()) if self.log.chain_mut().flushed(number) => {
                        // Removals that are now confirmed leave the removal log.
                        self.settle_removals();
                    }
                    Ok(()) => {}
                    Err(error) => self.write_failed(&Fault::flush(error)),
                },
            }
        }
        let first = self.flight.first();
        let next_flush = self.io.next_flush();
        self.log.chain_mut().note(first, next_flush);
    }

    fn unless_failed(&mut self, done: Result<(), Fault>) {
        if let Err(fault) = done {
            self.write_failed(&fault);
        }
    }

    fn reuse_step(&mut self) {
        let write_headers = self.trouble.may_write(self.now);
        let loading = rule!(
            "reuse: it does not begin while the store is being loaded",
            self.opening.is_loading(),
            false
        );
        let may = May {
            begin: !loading && write_headers,
            write_headers,
        };
        self.reuse.step(may, &self.log, &mut self.io, &self.objects);
        self.reuse.hand_over(&mut self.gather, self.now);
    }

    /// Handles a store that takes no writes, and so records no removals either. The other stores note this
    /// at the first call. The store's own disk records it as soon as the disk accepts the write, and again
    /// when the store set changes.
    fn part_if_lost(&mut self) {
        if self.store.takes_writes() {
            return;
        }
        if self.trouble.leave_behind() {
            rule!(
                "faults: the others note a store that takes no writes any more",
                self.engine.leave_behind(),
                ()
            );
        }
        let epoch = self.engine.epoch();
        if self.superblocks.owe_parting(epoch, self.now) {
            let membership = self.engine.membership();
            self.superblocks.part(epoch, membership, self.now);
        }
    }

    fn take_inbox(&mut self) {
        let inbox = self.intake.take();
        if rule!(
            "removals: when too many wait, everything before them is dead",
            inbox.overflow,
            false
        ) {
            self.raise_floor();
        }
        for removal in inbox.removals {
            self.gather.removal(removal, self.now);
        }
        for item in inbox.items {
            if self.store.takes_writes() {
                self.gather.item(item, self.now);
            } else {
                self.objects.forget(item.hash, item.ticket);
            }
        }
        for request in inbox.requests {
            self.tickets.begin(request, &mut self.gather, self.now);
        }
        if !self.store.takes_writes() {
            self.give_up_items();
        }
    }

    fn reached(&self) -> Reached {
        Reached {
            left: self.gather.left(),
            last: self.log.chain().last(),
            first_in_flight: self.flight.first(),
        }
    }

    /// Gives up all waiting items: a store that takes no writes cannot write them.
    fn give_up_items(&mut self) {
        self.gather.fill_up(u64::MAX, self.now);
        while let Some(item) = self.gather.pop(u64::MAX) {
            self.objects.forget(item.hash, item.ticket);
        }
    }

    /// Handles an overflow of the inbox, which dropped removals. In their place, everything that is in the
    /// log so far is dead after the next start. Here the turn waits for the disk. This happens only if a
    /// million removals wait to be written.
    pub(crate) fn raise_floor(&mut self) {
        let floor = self.log.end(self.reuse.next_sequence());
        self.opening.raise_floor(floor);
        if let Err(error) = self.superblocks.set_floor(floor) {
            self.write_failed(&Fault::write(0, error));
        }
    }

    /// Writes to both superblocks that everything before `floor` is dead. Returns false if that is not
    /// possible yet.
    fn record_floor(&mut self, floor: LogPosition) -> bool {
        if self.trouble.pauses(self.now) {
            return false;
        }
        match self.superblocks.raise_floor(floor) {
            Ok(()) => true,
            Err(error) => {
                self.write_failed(&Fault::write(0, error));
                false
            }
        }
    }

    /// The memory in use, in bytes: cluster buffers (in huge pages), tables of segments, queues,
    /// recovery.
    fn memory_bytes(&self) -> usize {
        let entries = self.log.entries() + self.reuse.entries();
        let slots = self.store.space.geometry().slot_bytes as usize;
        self.flight.memory_bytes()
            + entries * ENTRY_BYTES
            + self.gather.memory_bytes()
            + self.opening.memory_bytes()
            + slots
    }

    fn next_turn(&mut self) -> Turn {
        let loading = self.opening.is_busy();
        let dropping = self.reuse.is_dropping();
        let due = [
            self.gather.next_due(),
            self.tickets.next_due(&self.io),
            self.trouble.next_due(self.now),
        ];
        let wait = due.into_iter().flatten().min().map(|at| at.since(self.now));
        // Due work may have to wait for the end of another cluster, for a segment or for the budget. It is
        // tried again when an operation completes, or after one millisecond.
        let wait = wait.map(|w| w.max(Duration::from_millis(1)));
        Turn {
            wait,
            busy: dropping || (loading && self.io.in_flight() == 0),
        }
    }

    /// Blocks the calling thread until `turn.wait` is over, an operation completes or the thread is
    /// woken.
    pub fn park(&mut self, turn: Turn) {
        let wait = turn
            .wait
            .unwrap_or(Duration::from_secs(1))
            .min(Duration::from_secs(1));
        if turn.busy {
            return;
        }
        if self.io.in_flight() > 0 {
            self.io.wait(wait.min(Duration::from_millis(5)));
        } else if self.intake.is_fed() {
            self.store.bell.pause(wait.min(PAUSE));
        } else {
            self.store.bell.wait(wait);
        }
    }

    /// Wakes this writer's thread.
    #[must_use]
    pub fn wake_handle(&self) -> WakeHandle {
        WakeHandle(self.store.clone())
    }

    /// Returns the number of the store that this writer writes.
    #[must_use]
    pub fn store_id(&self) -> crate::StoreId {
        self.store.id
    }
}
