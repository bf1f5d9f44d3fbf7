//! State of a memory disk: the written image and the durable image, the writes that only one of these two
//! images contains, and held operations.

use super::image::Image;
use super::seek::Head;
use super::{Counts, Fault, FaultPlan, HeldOp, LoggedOp, OpClass};
use crate::signal::Inbox;
use crate::{Completion, Op, OpKind, check};
use foxy_base::{Clock, MonoTime, Rng};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Granularity of torn writes in bytes.
pub(super) const SECTOR: u64 = 512;

/// The moment when a completion was returned to its owner. It is stored as the number of the first operation
/// that is submitted after this moment. A flush covers a write if the number stored for the write is at most
/// the flush's own number.
pub(super) type Seen = Arc<AtomicU64>;

/// A completion on its way to the owner of a queue.
pub(super) struct Parcel {
    pub(super) completion: Completion,
    pub(super) seen: Option<Seen>,
}

/// A queue, for the disk: its number, and the inbox that gets its completions.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) queue: u32,
    pub(super) inbox: Weak<Inbox<Parcel>>,
}

/// A piece of an executed write that is not durable.
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) data: Vec<u8>,
    pub(super) seen: Seen,
}

/// A write that reaches the disk after some later writes.
pub(super) struct Late {
    pub(super) after: u32,
    pub(super) piece: Piece,
}

/// A submitted operation that the test has not released yet.
pub(super) struct Held {
    pub(super) id: u64,
    pub(super) op: Op,
    pub(super) owner: Owner,
}

/// An executed operation whose completion is delayed.
pub(super) struct Parked {
    pub(super) owner: Owner,
    pub(super) parcel: Parcel,
    pub(super) until: Until,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    Looks(u32),
    Time(MonoTime),
    Never,
}

pub(super) struct State {
    pub(super) len: u64,
    pub(super) block: u32,
    pub(super) written: Image,
    pub(super) durable: Image,
    pub(super) unsynced: Vec<Piece>,
    pub(super) late: Vec<Late>,
    pub(super) held: Vec<Held>,
    pub(super) parked: Vec<Parked>,
    pub(super) step: bool,
    pub(super) plan: FaultPlan,
    pub(super) rng: Rng,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counts: Counts,
    pub(super) log: Option<Vec<LoggedOp>>,
    pub(super) next_id: u64,
    pub(super) queues: u32,
    pub(super) head: Option<Head>,
    /// Longest real time of one wait of a queue.
    pub(super) longest_wait: Option<std::time::Duration>,
}

impl State {
    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Accepts an operation from a queue: executes it, or, in step mode, holds it until the test releases it.
    pub(super) fn accept(&mut self, id: u64, op: Op, owner: &Owner) {
        if self.step {
            self.held.push(Held {
                id,
                op,
                owner: owner.clone(),
            });
        } else {
            self.run(id, op, owner);
        }
    }

    /// Executes an operation and sends its completion. Parks the completion if it is delayed.
    pub(super) fn run(&mut self, id: u64, mut op: Op, owner: &Owner) {
        if let Err(refusal) = check::op(&op, self.len, self.block) {
            let completion = check::completion(op, Err(refusal));
            return deliver(
                owner,
                Parcel {
                    completion,
                    seen: None,
                },
            );
        }
        let (class, at, len) = shape(&op);
        let fault = self.strike(Some(owner.queue), class, at, len);
        let mut seen = None;
        let result = match &mut op.kind {
            OpKind::Flush => self.flush(id, fault),
            OpKind::Read { buf, len, .. } => {
                buf.set_len(*len);
                self.read(at, buf, fault)
            }
            OpKind::Write { buf, len, .. } => {
                let stamp = Seen::new(AtomicU64::new(u64::MAX));
                seen = Some(stamp.clone());
                self.write(at, &buf[..*len], fault, stamp)
            }
        };
        let parcel = Parcel {
            completion: check::completion(op, result),
            seen,
        };
        let until = self.until(fault).or_else(|| self.travel(class, at, len));
        match until {
            None => deliver(owner, parcel),
            Some(until) => {
                // The owner is woken so that it checks its queue: `Fault::Looks` counts these checks.
                if let Some(inbox) = owner.inbox.upgrade().filter(|_| until != Until::Never) {
                    inbox.nudge();
                }
                self.parked.push(Parked {
                    owner: owner.clone(),
                    parcel,
                    until,
                });
            }
        }
    }

    fn until(&self, fault: Option<Fault>) -> Option<Until> {
        match fault? {
            Fault::Looks(n) => Some(Until::Looks(n)),
            Fault::Delay(by) => Some(Until::Time(self.clock.mono() + by)),
            Fault::Stuck => Some(Until::Never),
            _ => None,
        }
    }

    /// Returns the end time of a read or write, if the simulated disk has seek times.
    fn travel(&mut self, class: OpClass, at: u64, len: u64) -> Option<Until> {
        let head = self.head.as_mut().filter(|_| class != OpClass::Flush)?;
        let end = head.serve(self.clock.mono(), at, len, self.len, &mut self.rng);
        Some(Until::Time(end))
    }

    /// Draws the fault for an operation. Counts and logs the operation.
    pub(super) fn strike(
        &mut self,
        queue: Option<u32>,
        class: OpClass,
        at: u64,
        len: u64,
    ) -> Option<Fault> {
        let fault = self.plan.strike(&mut self.rng, class, at, len);
        match class {
            OpClass::Read => {
                self.counts.reads += 1;
                self.counts.read_bytes += len;
            }
            OpClass::Write => {
                self.counts.writes += 1;
                self.counts.written_bytes += len;
            }
            OpClass::Flush | OpClass::Any => self.counts.flushes += 1,
        }
        self.counts.faults += u64::from(fault.is_some());
        if let Some(log) = &mut self.log {
            log.push(LoggedOp {
                queue,
                class,
                at,
                len,
                fault,
            });
        }
        fault
    }

    pub(super) fn read(
        &mut self,
        at: u64,
        into: &mut [u8],
        fault: Option<Fault>,
    ) -> io::Result<()> {
        let mut from = at;
        match fault {
            Some(Fault::Errno(code)) => return Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Short(_)) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(Fault::Misdirected(by)) => from = self.elsewhere(at, into.len() as u64, by),
            Some(Fault::BitRot(bits)) => {
                let mut bytes = vec![0; into.len()];
                self.written.read(at, &mut bytes);
                flip(&mut self.rng, &mut bytes, bits);
                self.spoil(at, &bytes);
            }
            _ => {}
        }
        self.written.read(from, into);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        at: u64,
        data: &[u8],
        fault: Option<Fault>,
        seen: Seen,
    ) -> io::Result<()> {
        let (pieces, result) = self.effect(at, data, fault);
        if let Some(Fault::Late(after)) = fault {
            for (at, data) in pieces {
                self.late.push(Late {
                    after,
                    piece: Piece {
                        at,
                        data,
                        seen: seen.clone(),
                    },
                });
            }
            return result;
        }
        for (at, data) in pieces {
            self.arrive(Piece {
                at,
                data,
                seen: seen.clone(),
            });
        }
        self.let_late_ones_in();
        result
    }

    /// A write through the cache. Later processes see it even before the cache is written back. The cache is
    /// written back at any time and in any order. So a power cut keeps or loses each sector by itself, even
    /// if several sectors belong to one write.
    pub(super) fn write_cached(
        &mut self,
        at: u64,
        data: &[u8],
        fault: Option<Fault>,
        seen: &Seen,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            let place = at + done as u64;
            let step = ((SECTOR - place % SECTOR) as usize).min(data.len() - done);
            self.write(place, &data[done..done + step], fault, seen.clone())?;
            done += step;
        }
        Ok(())
    }

    /// Changes the bytes on the disk itself. No later flush or power cut restores the old bytes.
    pub(super) fn spoil(&mut self, at: u64, bytes: &[u8]) {
        self.written.write(at, bytes);
        self.durable.write(at, bytes);
        let end = at + bytes.len() as u64;
        for piece in &mut self.unsynced {
            let (from, to) = (
                piece.at.max(at),
                (piece.at + piece.data.len() as u64).min(end),
            );
            if from < to {
                // Both values are offsets in buffers in memory, so they fit into a `usize`.
                let (into, of) = ((from - piece.at) as usize, (from - at) as usize);
                let len = (to - from) as usize;
                piece.data[into..into + len].copy_from_slice(&bytes[of..of + len]);
            }
        }
    }

    fn arrive(&mut self, piece: Piece) {
        self.written.write(piece.at, &piece.data);
        self.unsynced.push(piece);
    }

    fn let_late_ones_in(&mut self) {
        let mut waiting = Vec::new();
        for mut late in std::mem::take(&mut self.late) {
            late.after = late.after.saturating_sub(1);
            if late.after == 0 {
                self.arrive(late.piece);
            } else {
                waiting.push(late);
            }
        }
        self.late = waiting;
    }

    /// Effect of a write: the bytes that reach each position, and the reported result.
    fn effect(
        &mut self,
        at: u64,
        data: &[u8],
        fault: Option<Fault>,
    ) -> (Vec<(u64, Vec<u8>)>, io::Result<()>) {
        let whole = |at, data: &[u8]| vec![(at, data.to_vec())];
        match fault {
            Some(Fault::Errno(code)) => (Vec::new(), Err(io::Error::from_raw_os_error(code))),
            Some(Fault::Lost) => (Vec::new(), Ok(())),
            Some(Fault::Short(len)) => {
                let kept = &data[..data.len().min(len as usize)];
                (whole(at, kept), Err(ErrorKind::WriteZero.into()))
            }
            Some(Fault::Torn) => (self.torn(at, data), Ok(())),
            Some(Fault::TornError) => (self.torn(at, data), Err(io::Error::from_raw_os_error(5))),
            Some(Fault::Misdirected(by)) => {
                let place = self.elsewhere(at, data.len() as u64, by);
                (whole(place, data), Ok(()))
            }
            Some(Fault::BitRot(bits)) => {
                let mut rotten = data.to_vec();
                flip(&mut self.rng, &mut rotten, bits);
                (vec![(at, rotten)], Ok(()))
            }
            _ => (whole(at, data), Ok(())),
        }
    }

    fn torn(&mut self, at: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut pieces = Vec::new();
        let mut place = at;
        for sector in data.chunks(SECTOR as usize) {
            if self.rng.chance(0.5) {
                pieces.push((place, sector.to_vec()));
            }
            place += sector.len() as u64;
        }
        pieces
    }

    /// The position `by` bytes away, wrapping at the end of the disk, such that `len` bytes fit
    /// there.
    fn elsewhere(&self, at: u64, len: u64, by: i64) -> u64 {
        let places = (self.len - len) / u64::from(self.block) + 1;
        let shift = by
            .div_euclid(i64::from(self.block))
            .rem_euclid(places.cast_signed());
        let place = (at / u64::from(self.block) + shift.cast_unsigned()) % places;
        place * u64::from(self.block)
    }

    /// Executes the flush numbered `id`.
    pub(super) fn flush(&mut self, id: u64, fault: Option<Fault>) -> io::Result<()> {
        match fault {
            Some(Fault::Errno(code)) => return Err(io::Error::from_raw_os_error(code)),
            Some(Fault::FlushLies | Fault::Lost) => return Ok(()),
            _ => {}
        }
        let durable = &mut self.durable;
        self.unsynced.retain(|piece| {
            let covered = piece.seen.load(Ordering::SeqCst) <= id;
            if covered {
                durable.write(piece.at, &piece.data);
            }
            !covered
        });
        Ok(())
    }

    /// Moves the parked completions of a queue that are now due into the queue's inbox, and counts this
    /// check. Returns true if the queue has parked completions that may become due at a later check.
    pub(super) fn look(&mut self, queue: u32) -> bool {
        let now = self.clock.mono();
        let mut more = false;
        let mut kept = Vec::new();
        for mut parked in std::mem::take(&mut self.parked) {
            if parked.owner.queue == queue {
                let due = match &mut parked.until {
                    Until::Never => false,
                    Until::Time(at) => *at <= now,
                    Until::Looks(n) => {
                        *n = n.saturating_sub(1);
                        *n == 0
                    }
                };
                if due {
                    deliver(&parked.owner, parked.parcel);
                    continue;
                }
                more |= parked.until != Until::Never;
            }
            kept.push(parked);
        }
        self.parked = kept;
        more
    }
}

/// Puts a completion into its owner's inbox. It is dropped if the queue no longer exists.
pub(super) fn deliver(owner: &Owner, parcel: Parcel) {
    if let Some(inbox) = owner.inbox.upgrade() {
        inbox.push(parcel);
    }
}

/// Class, position and length of an operation.
pub(super) fn shape(op: &Op) -> (OpClass, u64, u64) {
    match &op.kind {
        OpKind::Flush => (OpClass::Flush, 0, 0),
        OpKind::Read { at, len, .. } => (OpClass::Read, *at, *len as u64),
        OpKind::Write { at, len, .. } => (OpClass::Write, *at, *len as u64),
    }
}

impl Held {
    pub(super) fn describe(&self) -> HeldOp {
        let (class, at, len) = shape(&self.op);
        let (id, queue, token) = (self.id, self.owner.queue, self.op.token);
        HeldOp {
            id,
            queue,
            token,
            class,
            at,
            len,
        }
    }
}

/// Flips `bits` random bits.
fn flip(rng: &mut Rng, bytes: &mut [u8], bits: u32) {
    for _ in 0..bits {
        let bit = rng.below(bytes.len() as u64 * 8);
        // The value is below the length, which is a usize.
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}
