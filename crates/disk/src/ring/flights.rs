//! The operations of a queue with a ring, from their submission to their completion. Each has a slot, whose
//! number comes back with the completion. Each operation keeps its buffer until it has completed.

use crate::{Completion, Op, OpKind, check};
use io_uring::{opcode, squeue, types};
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;

/// Greatest number of bytes that one kernel operation requests. The kernel transfers at most 2 GiB less a
/// page in one operation.
const SPAN_MAX: usize = 1 << 30;

/// Operations by slot number.
#[derive(Default)]
pub(super) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
}

struct Flight {
    op: Op,
    /// Bytes transferred so far, in whole blocks.
    done: usize,
    /// Error of an operation that was refused before it began. A no-op carries the error through
    /// the ring, so that it wakes the owner like any other completion.
    refused: Option<io::Error>,
}

/// Meaning of a completion entry.
pub(super) enum Step {
    /// The operation has ended; its slot is free.
    Done(Completion),
    /// The operation is not complete: submit its remaining part.
    Again,
    /// There is no such slot.
    Unknown,
}

impl Flights {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, op: Op, refused: Option<io::Error>) -> u32 {
        let flight = Some(Flight {
            op,
            done: 0,
            refused,
        });
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = flight;
            return slot;
        }
        self.slots.push(flight);
        // There are as many slots as operations in memory, far fewer than 2^32.
        (self.slots.len() - 1) as u32
    }

    /// The ring entry for the remaining part of a slot's operation.
    pub(super) fn entry(&self, slot: u32, fixed: Option<types::Fixed>, fd: RawFd) -> squeue::Entry {
        let flight = self.slots.get(slot as usize).and_then(Option::as_ref);
        let entry = match (flight, fixed) {
            (
                None
                | Some(Flight {
                    refused: Some(_), ..
                }),
                _,
            ) => opcode::Nop::new().build(),
            (Some(flight), Some(file)) => flight.entry(file),
            (Some(flight), None) => flight.entry(types::Fd(fd)),
        };
        entry.user_data(u64::from(slot))
    }

    /// Accepts the kernel's result for a slot.
    pub(super) fn land(&mut self, slot: u32, answer: i32, block: u32) -> Step {
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return Step::Unknown;
        };
        let Some(flight) = place.as_mut() else {
            return Step::Unknown;
        };
        let Some(result) = flight.advance(answer, block as usize) else {
            return Step::Again;
        };
        self.free.push(slot);
        match place.take() {
            Some(flight) => Step::Done(check::completion(flight.op, result)),
            None => Step::Unknown,
        }
    }
}

impl Flight {
    fn entry(&self, file: impl io_uring_target::Target) -> squeue::Entry {
        match &self.op.kind {
            OpKind::Flush => file.sync(),
            OpKind::Read { at, buf, len } => {
                let start = buf.as_raw().wrapping_add(self.done);
                file.read(start, self.span(*len), *at + self.done as u64)
            }
            OpKind::Write { at, buf, len } => {
                let start = buf.as_raw().wrapping_add(self.done);
                file.write(start, self.span(*len), *at + self.done as u64)
            }
        }
    }

    fn span(&self, len: usize) -> u32 {
        // The value fits: it is at most SPAN_MAX.
        (len - self.done).min(SPAN_MAX) as u32
    }

    /// Processes a result of the kernel. Returns the final result if the operation has ended.
    fn advance(&mut self, answer: i32, block: usize) -> Option<io::Result<()>> {
        if let Some(error) = self.refused.take() {
            return Some(Err(error));
        }
        let (len, short) = match &self.op.kind {
            OpKind::Flush => (0, ErrorKind::Other),
            OpKind::Read { len, .. } => (*len, ErrorKind::UnexpectedEof),
            OpKind::Write { len, .. } => (*len, ErrorKind::WriteZero),
        };
        match answer {
            e if e == -libc::EINTR || e == -libc::EAGAIN => None,
            e if e < 0 => Some(Err(io::Error::from_raw_os_error(-e))),
            n if self.done + n as usize >= len => Some(Ok(())),
            n => {
                // A direct transfer continues only at a whole block; bytes moved beyond that block
                // boundary are moved again. If no whole block was moved, the file ends here.
                let whole = n as usize / block * block;
                self.done += whole;
                (whole == 0).then(|| Err(short.into()))
            }
        }
    }
}

/// The two ways to name a file in a ring entry.
mod io_uring_target {
    use io_uring::{opcode, squeue::Entry, types};

    pub(super) trait Target {
        fn read(self, to: *mut u8, len: u32, at: u64) -> Entry;
        fn write(self, from: *const u8, len: u32, at: u64) -> Entry;
        fn sync(self) -> Entry;
    }

    macro_rules! target {
        ($kind:ty) => {
            impl Target for $kind {
                fn read(self, to: *mut u8, len: u32, at: u64) -> Entry {
                    opcode::Read::new(self, to, len).offset(at).build()
                }
                fn write(self, from: *const u8, len: u32, at: u64) -> Entry {
                    opcode::Write::new(self, from, len).offset(at).build()
                }
                fn sync(self) -> Entry {
                    opcode::Fsync::new(self)
                        .flags(types::FsyncFlags::DATASYNC)
                        .build()
                }
            }
        };
    }
    target!(types::Fd);
    target!(types::Fixed);
}
