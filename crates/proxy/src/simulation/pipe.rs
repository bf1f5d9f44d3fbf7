//! One direction of a connection in memory.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::Rng;
use tokio::time::Instant;

/// Number of bytes that one direction buffers before its writer has to wait.
pub(super) const CAPACITY: usize = 48 << 10;

/// The way in which a direction ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The reader sees an orderly end.
    End,
    /// Both sides see a reset.
    Reset,
}

/// The behaviour of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Largest number of bytes that arrive together.
    pub(super) piece: usize,
    /// Longest delay of a piece, in milliseconds.
    pub(super) delay: u64,
    /// The direction breaks after this number of bytes.
    pub(super) cut: Option<(u64, Cut)>,
}

/// A bounded queue of pieces. Each piece has a time of arrival.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) rng: Rng,
    manner: Manner,
    pieces: VecDeque<(Instant, Bytes)>,
    pub(super) bytes: usize,
    passed: u64,
    /// Time of arrival of the last piece. A new piece does not arrive before this time. So pieces keep their
    /// order.
    latest: Instant,
    pub(super) ended: bool,
    pub(super) reset: bool,
    pub(super) reader_left: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

impl Pipe {
    pub(super) fn new(rng: Rng, manner: Manner) -> Self {
        Self {
            rng,
            manner,
            pieces: VecDeque::new(),
            bytes: 0,
            passed: 0,
            latest: Instant::now(),
            ended: false,
            reset: false,
            reader_left: false,
            reader: None,
            writer: None,
        }
    }

    pub(super) fn wake(&mut self) {
        let both = [self.reader.take(), self.writer.take()];
        both.into_iter().flatten().for_each(Waker::wake);
    }

    pub(super) fn break_off(&mut self) {
        self.reset = true;
        self.pieces.clear();
        self.bytes = 0;
        self.wake();
    }

    /// Takes bytes from the writer. Returns the number of bytes taken. If these bytes reach the position at
    /// which the direction breaks, also returns the way in which it breaks.
    pub(super) fn take(&mut self, slices: &[IoSlice<'_>]) -> io::Result<(usize, Option<Cut>)> {
        if self.reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if self.reader_left || self.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut room = CAPACITY - self.bytes.min(CAPACITY);
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let cut = self.manner.cut.filter(|(at, _)| {
            let left = at.saturating_sub(self.passed);
            room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
            true
        });
        let mut taken = 0;
        for slice in slices {
            let mut rest = &slice[..slice.len().min(room - taken)];
            taken += rest.len();
            while !rest.is_empty() {
                let most = self.rng.below(self.manner.piece as u64) as usize + 1;
                let (piece, others) = rest.split_at(most.min(rest.len()));
                self.push(piece);
                rest = others;
            }
        }
        self.passed += taken as u64;
        let met = cut.filter(|(at, _)| self.passed >= *at);
        Ok((taken, met.map(|(_, cut)| cut)))
    }

    fn push(&mut self, piece: &[u8]) {
        let delay = match self.manner.delay {
            0 => 0,
            most => self.rng.below(most),
        };
        let at = (Instant::now() + Duration::from_millis(delay)).max(self.latest);
        self.latest = at;
        self.bytes += piece.len();
        self.pieces.push_back((at, Bytes::copy_from_slice(piece)));
        self.wake();
    }

    /// Returns the arrival time of the next piece. Returns `None` if there is no next piece.
    pub(super) fn next(&self) -> Option<Instant> {
        self.pieces.front().map(|(at, _)| *at)
    }

    pub(super) fn is_readable(&self) -> bool {
        let end = self.ended && self.pieces.is_empty();
        self.reset || end || self.next().is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn give(&mut self, into: &mut [u8], keep: bool) -> io::Result<usize> {
        if self.reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if !self.is_readable() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some((_, piece)) = self.pieces.front_mut() else {
            return Ok(0);
        };
        let n = piece.len().min(into.len());
        if keep {
            return Ok(n);
        }
        into[..n].copy_from_slice(&piece.split_to(n));
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        self.bytes -= n;
        self.wake();
        Ok(n)
    }

    /// Ends the direction. No more bytes are sent.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.wake();
    }

    /// Returns true if there are pieces that the reader has not read yet.
    pub(super) fn is_unread(&self) -> bool {
        !self.pieces.is_empty()
    }
}
