//! The end of a writer while the engine continues: its store is taken out, or grows and is opened again.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::rule;
use foxy_format::{BLOCK, FormatError, Geometry};
use thiserror::Error;

use super::Writer;
use crate::OpenError;
use crate::interface::add;
use crate::shared::StoreShared;

/// The reason why a store did not grow.
#[derive(Debug, Error)]
pub enum GrowError {
    /// The store is being loaded, or did not complete its pending work.
    #[error("the store is still being loaded or very busy; try again later")]
    Busy,
    /// The store takes no writes.
    #[error("the store takes no writes (look at its state); nothing was changed")]
    NotWritable,
    /// There is not enough room for one more segment.
    #[error(
        "{bytes} bytes hold no segment more than the store has; it needs at least {needed} bytes"
    )]
    TooSmall {
        /// The requested length, in bytes.
        bytes: u64,
        /// The bytes that would suffice.
        needed: u64,
    },
    /// The store has grown as often as it can.
    #[error(
        "the store grew as often as it can ({0} times); add another store, drain and remove this one"
    )]
    TooOften(usize),
    /// The device or the file system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The step that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The store has grown, but could not be opened again.
    #[error("the store grew, but could not be opened again: {0}")]
    Lost(#[from] OpenError),
}

/// The result of growing a store.
#[derive(Debug)]
pub struct Grown {
    /// The writer of the store; `None` if the store was lost and is not among the open stores any more.
    pub writer: Option<Writer>,
    /// The present number of its segments, or the error.
    pub result: Result<u32, GrowError>,
}

impl Writer {
    /// Takes the store out of the engine and ends the writer. Objects that wait are written first, for at
    /// most about `at_most`. When this returns, no index entry and no list refers to the store any more.
    /// The disk of the store is closed as soon as the last reader releases the disk
    /// ([`crate::Fleet::departure`]). Returns true if everything was written. If, in addition, the store was
    /// loaded completely, its removal log had room, and its superblocks could be written, the store still has
    /// its contents when it returns to this engine.
    pub fn close(mut self, at_most: Duration) -> bool {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        let _one_at_a_time = engine.lock_membership();
        engine.begin_to_leave();
        let known = rule!(
            "leave: a store that is not loaded yet comes back empty",
            self.opening.is_done(),
            true
        );
        let written = rule!(
            "leave: a store that could not write everything comes back empty",
            store.takes_writes() && self.drain(at_most),
            {
                self.drain(at_most);
                true
            }
        );
        let full = store.counters.read().removal_log_full;
        rule!(
            "leave: what is removed while it is detached is remembered",
            engine.note_removals(),
            ()
        );
        let noted = rule!(
            "leave: a store whose removal log was full comes back empty",
            store.counters.read().removal_log_full == full,
            true
        );
        let floor = self.superblocks.floor();
        let marked = rule!(
            "leave: it records on its disk that its contents are dead",
            store.health() != crate::Health::Offline && self.superblocks.disown().is_ok(),
            true
        );
        if known && written && noted && marked {
            engine.may_reattach(self.superblocks.generation(), floor);
        } else {
            engine.forget_removals();
        }
        if !marked {
            rule!(
                "leave: the others note a store that left without recording it",
                engine.leave_unmarked(),
                ()
            );
        }
        engine.take_out();
        written
    }

    /// Grows the store to `bytes` bytes and keeps its contents. First the file or device is extended, then
    /// the slots of the new segments are zeroed, then the superblocks are written with the new geometry, and
    /// then the store is opened again. A crash at any point leaves the store either unchanged or grown. While
    /// the store is being loaded, objects that are not loaded yet are misses. This method blocks for the
    /// writes and reads.
    #[must_use]
    pub fn grow(mut self, bytes: u64, at_most: Duration) -> Grown {
        let next = self.reuse.next_sequence();
        let room = match self.store.takes_writes() {
            false => Err(GrowError::NotWritable),
            true if !self.opening.is_done() => Err(GrowError::Busy),
            true => make_room(&self.store, next, bytes),
        };
        if let Err(error) = room {
            return Grown {
                writer: Some(self),
                result: Err(error),
            };
        }
        let engine = self.engine.clone();
        let _one_at_a_time = engine.lock_membership();
        let duty = engine.begin_to_leave();
        let drained = self.drain(at_most);
        engine.note_removals();
        // The store is drained once more. Records that were removed after the first drain, but before
        // `note_removals` was called, must be dead in the log. Loading knows these removals only from the
        // log.
        let geometry = match drained && self.drain_for(at_most, true) {
            true => grown(&self.store, self.reuse.next_sequence()),
            false => Err(GrowError::Busy),
        };
        let geometry = match geometry {
            Ok(geometry) => geometry,
            Err(error) => {
                self.intake.set_heir(false);
                engine.forget_removals();
                self.store.member.set_duty(duty);
                return Grown {
                    writer: Some(self),
                    result: Err(error),
                };
            }
        };
        match self.reopen(geometry) {
            Ok(writer) => {
                writer.store.member.set_duty(duty);
                Grown {
                    result: Ok(geometry.segments),
                    writer: Some(writer),
                }
            }
            Err(error) => Grown {
                writer: None,
                result: Err(error),
            },
        }
    }

    /// Writes the superblocks and opens the store again. If that fails, the store is taken out.
    fn reopen(mut self, geometry: Geometry) -> Result<Self, GrowError> {
        let (engine, old) = (self.engine.clone(), Arc::clone(&self.store));
        let options = self.opening.options().clone();
        let written = self.superblocks.grow(geometry);
        let written = written.map_err(|source| GrowError::Io {
            doing: "write the superblock",
            source,
        });
        // The operations of the writer end when its queue is dropped.
        drop(self);
        let disk = Arc::clone(&old.disk);
        let opened =
            written.and_then(|()| Ok(Self::open(engine.context(), disk, &options, Some(&old))?));
        if opened.is_err() {
            engine.forget_removals();
            engine.leave_unmarked();
            engine.take_out();
        }
        opened
    }
}

/// Returns the geometry with the number of segments for which the disk has room.
fn grown(store: &StoreShared, next_sequence: u64) -> Result<Geometry, GrowError> {
    let (geometry, bytes) = (*store.space.geometry(), store.disk.len());
    let grown = geometry.grow(bytes, next_sequence);
    grown.map_err(|problem| match problem {
        FormatError::Invalid("number of growths") => GrowError::TooOften(foxy_format::GROWTHS_MAX),
        _ => GrowError::TooSmall {
            bytes,
            needed: geometry.total_bytes()
                + u64::from(geometry.slot_bytes)
                + u64::from(geometry.segment_bytes),
        },
    })
}

/// Extends the file or device, and zeroes the slots of the new segments.
fn make_room(store: &StoreShared, next_sequence: u64, bytes: u64) -> Result<(), GrowError> {
    let disk = Arc::clone(&store.disk);
    let fail = |doing| move |source| GrowError::Io { doing, source };
    if bytes > disk.len() {
        disk.grow(bytes).map_err(fail("make it longer"))?;
    }
    let grown = grown(store, next_sequence)?;
    // On a device, the places of the new slots may contain anything. Zeroing the header is enough: the
    // header states whether the slot is in use.
    let zeros = [0; BLOCK as usize];
    for index in store.space.geometry().segments..grown.segments {
        let at = grown.slot_at(index);
        disk.write_at(at, &zeros)
            .map_err(fail("write its tables"))?;
        add(&store.counters.meta_bytes, BLOCK);
    }
    disk.flush().map_err(fail("write its tables"))
}
