//! A view of a disk that keeps all writes in memory. So a store can be opened by the same code that a start
//! runs, and nothing on the disk changes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use foxy_disk::{Completion, Disk, Op, OpKind, Queue, QueueStats};
use parking_lot::Mutex;

/// Length in bytes of a block that is kept in memory.
const BLOCK: u64 = 4096;

type Blocks = Arc<Mutex<HashMap<u64, Box<[u8]>>>>;

/// A read-only view of another disk.
#[derive(Clone, Debug)]
pub(super) struct Overlay {
    disk: Arc<dyn Disk>,
    written: Blocks,
}

impl Overlay {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            written: Blocks::default(),
        }
    }

    fn keep(&self, at: u64, data: &[u8]) -> io::Result<()> {
        if at + data.len() as u64 > self.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut written = self.written.lock();
        let mut done = 0;
        while done < data.len() {
            let place = at + done as u64;
            let (number, skip) = (place / BLOCK, (place % BLOCK) as usize);
            let len = (data.len() - done).min(BLOCK as usize - skip);
            let block = match written.entry(number) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(place) => place.insert(self.original(number)?),
            };
            block[skip..skip + len].copy_from_slice(&data[done..done + len]);
            done += len;
        }
        Ok(())
    }

    /// Returns a block as the underlying disk contains it, without the writes in memory.
    fn original(&self, number: u64) -> io::Result<Box<[u8]>> {
        let mut block = vec![0; BLOCK as usize];
        let there = (self.len() - number * BLOCK).min(BLOCK) as usize;
        self.disk.read_at(number * BLOCK, &mut block[..there])?;
        Ok(block.into())
    }

    fn lay_over(&self, at: u64, into: &mut [u8]) {
        let written = self.written.lock();
        if written.is_empty() {
            return;
        }
        let end = at + into.len() as u64;
        for number in at / BLOCK..end.div_ceil(BLOCK) {
            let Some(block) = written.get(&number) else {
                continue;
            };
            let (from, until) = ((number * BLOCK).max(at), ((number + 1) * BLOCK).min(end));
            let source =
                &block[(from - number * BLOCK) as usize..(until - number * BLOCK) as usize];
            into[(from - at) as usize..(until - at) as usize].copy_from_slice(source);
        }
    }
}

impl Disk for Overlay {
    fn len(&self) -> u64 {
        self.disk.len()
    }
    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }
    fn describe(&self) -> String {
        self.disk.describe()
    }
    fn open_queue(&self, _depth: u32) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(AtOnce {
            disk: self.clone(),
            done: Vec::new(),
            stats: QueueStats::default(),
        }))
    }
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(at, into)?;
        self.lay_over(at, into);
        Ok(())
    }
    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.keep(at, data)
    }
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.keep(at, data)
    }
    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_cached(at, into)?;
        self.lay_over(at, into);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn grow(&self, _new_len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A queue that carries out every operation during the call that submits it.
struct AtOnce {
    disk: Overlay,
    done: Vec<Completion>,
    stats: QueueStats,
}

impl Queue for AtOnce {
    fn submit(&mut self, op: Op) {
        let (result, buf) = match op.kind {
            OpKind::Read { at, mut buf, len } => {
                buf.set_len(len);
                (self.disk.read_at(at, &mut buf), Some(buf))
            }
            OpKind::Write { at, buf, len } => (self.disk.write_at(at, &buf[..len]), Some(buf)),
            OpKind::Flush => (Ok(()), None),
        };
        let token = op.token;
        self.done.push(Completion { token, result, buf });
    }
    fn flush_submissions(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let count = self.done.len();
        out.append(&mut self.done);
        count
    }
    fn wait(&mut self, _timeout: Duration) -> io::Result<bool> {
        Ok(!self.done.is_empty())
    }
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn in_flight(&self) -> usize {
        self.done.len()
    }
    fn stats(&self) -> QueueStats {
        self.stats
    }
}
