//! A disk for the production store. It keeps contents, and its times come from the modelled drive.
//!
//! Operations of a queue go to the drive in the order in which they were submitted. An operation is complete
//! when the simulated clock has reached its end time. Contents are kept in small pieces, and only if they are
//! not zero. In the simulation the bodies of objects are zeros. So they take no memory, and a disk of
//! gigabytes fits into memory.

use std::{
    collections::HashMap,
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foxy_base::{Clock, MonoTime, WallTime};
use foxy_disk::{Completion, Disk, Op, OpKind, Queue, QueueStats};
use parking_lot::Mutex;

use crate::model::{Drive, Request, SimTime, hash::BuildIdHasher};

/// Size of a piece in bytes: the unit in which contents are kept.
const PIECE: u64 = 128;
/// Size of a logical block in bytes.
const BLOCK: u32 = 512;

/// Simulated time as a clock for the store.
#[derive(Debug, Default)]
pub(super) struct SimClock(AtomicU64);

impl SimClock {
    pub(super) fn now(&self) -> SimTime {
        SimTime::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Advances the clock to `time`; the clock never goes back.
    pub(super) fn reach(&self, time: SimTime) {
        self.0.fetch_max(time.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn wall(&self) -> WallTime {
        WallTime((self.now().as_nanos() / 1_000_000) as i64 + 1)
    }

    fn mono(&self) -> MonoTime {
        MonoTime(self.now().as_nanos())
    }
}

/// Contents of the disk by address.
#[derive(Debug, Default)]
struct Image(HashMap<u64, Box<[u8; PIECE as usize]>, BuildIdHasher>);

impl Image {
    fn write(&mut self, at: u64, data: &[u8]) {
        each(at, data.len(), |piece, within, part| {
            let part = &data[part];
            if part.iter().all(|b| *b == 0) {
                if part.len() as u64 == PIECE {
                    self.0.remove(&piece);
                } else if let Some(bytes) = self.0.get_mut(&piece) {
                    bytes[within..within + part.len()].fill(0);
                }
                return;
            }
            let bytes = self
                .0
                .entry(piece)
                .or_insert_with(|| Box::new([0; PIECE as usize]));
            bytes[within..within + part.len()].copy_from_slice(part);
        });
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        each(at, into.len(), |piece, within, part| {
            let len = part.len();
            match self.0.get(&piece) {
                Some(bytes) => into[part].copy_from_slice(&bytes[within..within + len]),
                None => into[part].fill(0),
            }
        });
    }
}

fn each(at: u64, len: usize, mut call: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let place = at + done as u64;
        let within = (place % PIECE) as usize;
        let step = (PIECE as usize - within).min(len - done);
        call(place / PIECE, within, done..done + step);
        done += step;
    }
}

#[derive(Debug)]
struct State {
    image: Image,
    drive: Drive,
    len: u64,
    /// End times of operations under way, so that a caller can wait for the next end.
    ends: Vec<SimTime>,
}

/// The disk; clones share its state.
#[derive(Clone, Debug)]
pub(super) struct ModelDisk {
    state: Arc<Mutex<State>>,
    clock: Arc<SimClock>,
}

impl ModelDisk {
    pub(super) fn new(drive: Drive, len: u64, clock: Arc<SimClock>) -> Self {
        let len = len.min(drive.capacity()) / u64::from(BLOCK) * u64::from(BLOCK);
        let state = State {
            image: Image::default(),
            drive,
            len,
            ends: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            clock,
        }
    }

    /// A copy of the drive in its present state, so that the caller can read its sums.
    pub(super) fn drive(&self) -> Drive {
        self.state.lock().drive.clone()
    }

    /// Does a foreground read and advances the clock to its end.
    pub(super) fn read_now(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check(at, into.len() as u64)?;
        let request = Request::read(at, into.len() as u64);
        let end = state.drive.serve(self.clock.now(), request);
        state.image.read(at, into);
        drop(state);
        self.clock.reach(end);
        Ok(())
    }

    /// The earliest end time of the running operations.
    pub(super) fn next_end(&self) -> Option<SimTime> {
        self.state.lock().ends.iter().min().copied()
    }

    /// Waits until the drive's cache is written.
    pub(super) fn settle(&self) {
        let end = self.state.lock().drive.flush(self.clock.now());
        self.clock.reach(end);
    }
}

impl State {
    fn check(&self, at: u64, len: u64) -> io::Result<()> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Carries out an operation. Returns its end time and result.
    fn run(&mut self, now: SimTime, op: &mut Op) -> (SimTime, io::Result<()>) {
        match &mut op.kind {
            OpKind::Flush => (self.drive.flush(now), Ok(())),
            OpKind::Read { at, buf, len } => {
                if let Err(error) = self.check(*at, *len as u64) {
                    return (now, Err(error));
                }
                buf.set_len(*len);
                self.image.read(*at, buf);
                (
                    self.drive.serve(now, Request::read(*at, *len as u64)),
                    Ok(()),
                )
            }
            OpKind::Write { at, buf, len } => {
                if let Err(error) = self.check(*at, *len as u64) {
                    return (now, Err(error));
                }
                self.image.write(*at, &buf[..*len]);
                let request = Request::write(*at, *len as u64);
                (self.drive.serve(now, request), Ok(()))
            }
        }
    }
}

impl Disk for ModelDisk {
    fn len(&self) -> u64 {
        self.state.lock().len
    }

    fn block_bytes(&self) -> u32 {
        BLOCK
    }

    fn describe(&self) -> String {
        format!("modelled {}", self.state.lock().drive.name())
    }

    fn open_queue(&self, _depth: u32) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(ModelQueue {
            disk: self.clone(),
            staged: Vec::new(),
            flying: Vec::new(),
            stats: QueueStats::default(),
        }))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_now(at, into)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check(at, data.len() as u64)?;
        state.image.write(at, data);
        let request = Request::write(at, data.len() as u64);
        let end = state.drive.serve(self.clock.now(), request);
        drop(state);
        self.clock.reach(end);
        Ok(())
    }

    /// Writes into the operating system's memory. In this model such a write takes no time, and it never
    /// reaches the drive.
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check(at, data.len() as u64)?;
        state.image.write(at, data);
        Ok(())
    }

    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        state.check(at, into.len() as u64)?;
        state.image.read(at, into);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.settle();
        Ok(())
    }

    fn grow(&self, _new_len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

struct ModelQueue {
    disk: ModelDisk,
    staged: Vec<Op>,
    flying: Vec<(SimTime, Completion)>,
    stats: QueueStats,
}

impl Queue for ModelQueue {
    fn submit(&mut self, op: Op) {
        let (stats, bytes) = (&mut self.stats, &op.kind);
        match bytes {
            OpKind::Read { len, .. } => {
                stats.reads += 1;
                stats.read_bytes += *len as u64;
            }
            OpKind::Write { len, .. } => {
                stats.writes += 1;
                stats.written_bytes += *len as u64;
            }
            OpKind::Flush => stats.flushes += 1,
        }
        self.staged.push(op);
    }

    fn flush_submissions(&mut self) -> io::Result<()> {
        self.stats.submit_calls += u64::from(!self.staged.is_empty());
        let now = self.disk.clock.now();
        let mut state = self.disk.state.lock();
        for mut op in self.staged.drain(..) {
            let (end, result) = state.run(now, &mut op);
            let buf = match op.kind {
                OpKind::Read { buf, .. } | OpKind::Write { buf, .. } => Some(buf),
                OpKind::Flush => None,
            };
            let token = op.token;
            state.ends.push(end);
            self.flying.push((end, Completion { token, result, buf }));
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let now = self.disk.clock.now();
        let before = out.len();
        let (done, flying) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|(end, _)| *end <= now);
        self.flying = flying;
        out.extend(Vec::into_iter(done).map(|(_, completion)| completion));
        self.disk.state.lock().ends.retain(|end| *end > now);
        out.len() - before
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.flush_submissions()?;
        let limit = self.disk.clock.now() + SimTime::from_secs(timeout.as_secs_f64());
        // Time passes while the caller waits, even if no operation is under way.
        let Some(end) = self.flying.iter().map(|(end, _)| *end).min() else {
            self.disk.clock.reach(limit);
            return Ok(false);
        };
        self.disk.clock.reach(end.min(limit));
        Ok(end <= limit)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn in_flight(&self) -> usize {
        self.staged.len() + self.flying.len()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;
    use foxy_disk::AlignedBuf;

    #[test]
    fn bytes_come_back_and_zeros_cost_nothing() {
        let mut rng = Rng::new(5);
        let (mut image, mut plain) = (Image::default(), vec![0u8; 20_000]);
        for _ in 0..3_000 {
            let at = rng.below(19_000) as usize;
            let len = 1 + rng.below(900) as usize;
            let fill = (rng.below(3) as u8).saturating_sub(1);
            let data = vec![fill; len.min(20_000 - at)];
            image.write(at as u64, &data);
            plain[at..at + data.len()].copy_from_slice(&data);
        }
        let mut back = vec![9; 20_000];
        image.read(0, &mut back);
        assert_eq!(back, plain);
        image.write(0, &vec![0; 20_096]);
        assert!(image.0.is_empty());
    }

    #[test]
    fn operations_complete_when_their_time_has_come() {
        let clock = Arc::new(SimClock::default());
        let drive = Drive::named("st118202fc").unwrap();
        let disk = ModelDisk::new(drive, 1 << 30, clock.clone());
        let mut queue = disk.open_queue(8).unwrap();
        let mut buf = AlignedBuf::new(4_096);
        buf[0] = 7;
        queue.submit(Op::write(1, 1 << 20, 4_096, buf));
        queue.submit(Op::read(2, 1 << 20, 4_096, AlignedBuf::new(4_096)));
        queue.flush_submissions().unwrap();
        let mut out = Vec::new();
        assert_eq!((queue.reap(&mut out), queue.in_flight()), (0, 2));
        while let Some(end) = disk.next_end() {
            clock.reach(end);
            queue.reap(&mut out);
        }
        let tokens: Vec<_> = out.iter().map(|c| c.token).collect();
        assert_eq!(tokens, [1, 2]);
        assert_eq!(out[1].buf.as_ref().unwrap()[0], 7);
        assert!(clock.now() > SimTime::ZERO);
        let mut past = [0; 512];
        assert!(disk.read_at(1 << 30, &mut past).is_err());
    }
}
