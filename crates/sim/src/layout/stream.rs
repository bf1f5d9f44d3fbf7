//! STREAM and the layouts that are built on it (the STREAM family). Objects are written at the cursor, the
//! position after the slots that were allocated last.
//!
//! Rule (USITS'99 section 3): there is one file of 512-byte slots. An object takes an integer number of
//! slots, usually contiguous. A delete marks the object's slots free. A write uses only free slots. It starts
//! at the cursor, and continues from the start of the file when it reaches the end. No cleaner copies objects
//! to make free space contiguous. About 30 % of spare space is needed. The papers extend STREAM step by step:
//! see the rules at [`Packetizer`], [`LazyReads`] and [`Locality`]. In this module each extension is an
//! option.

use hashbrown::HashMap;

use super::{
    Area, Layout, LayoutError, LayoutStats, Place,
    lazy_reads::{LazyConfig, LazyReads},
    locality::{LocConfig, Locality},
    packetizer::{Packetizer, write_through},
    slots::{Runs, Slots},
};
use crate::model::{FsCounters, SimTime};

/// Options of a layout of the STREAM family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamConfig {
    /// Bytes of the file.
    pub bytes: u64,
    /// Page of the packetizer, bytes; `None`: every write is issued separately.
    pub packet: Option<u64>,
    /// Lazy reads; `None`: every read is issued immediately.
    pub lazy: Option<LazyConfig>,
    /// Locality buffers that collect writes by server; `None`: no buffers.
    pub locality: Option<LocConfig>,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    /// `None`: the object is in a locality buffer.
    runs: Option<Runs>,
}

/// A layout of the STREAM family over any area.
#[derive(Debug)]
pub struct Stream<A> {
    area: A,
    slots: Slots,
    objects: HashMap<u64, Entry>,
    packetizer: Option<Packetizer>,
    lazy: Option<LazyReads>,
    locality: Option<Locality>,
    stats: LayoutStats,
}

impl<A: Area> Stream<A> {
    /// Creates an empty layout.
    #[must_use]
    pub fn new(area: A, config: StreamConfig) -> Self {
        Self {
            area,
            slots: Slots::new(config.bytes),
            objects: HashMap::new(),
            packetizer: config.packet.map(Packetizer::new),
            lazy: config.lazy.map(LazyReads::new),
            locality: config.locality.map(Locality::new),
            stats: LayoutStats::default(),
        }
    }

    /// Position of the cursor, in bytes.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        u64::from(self.slots.cursor()) * super::BLOCK
    }

    /// Allocates slots for an object and writes the object there.
    fn append(&mut self, object: u64) -> Result<(), LayoutError> {
        let Some(entry) = self.objects.get_mut(&object) else {
            return Err(LayoutError::Missing);
        };
        let runs = self
            .slots
            .take(Slots::needed(entry.size))
            .ok_or(LayoutError::Full)?;
        let stats = &mut self.stats;
        let written = runs.as_slice().iter().try_for_each(|run| {
            write_through(
                self.packetizer.as_mut(),
                &mut self.area,
                run.bytes(),
                |len| {
                    stats.write_calls += 1;
                    stats.write_bytes += len;
                },
            )
        });
        if let Err(error) = written {
            self.slots.give(&runs);
            return Err(error);
        }
        stats.pieces += runs.as_slice().len() as u64;
        entry.runs = Some(runs);
        Ok(())
    }

    fn append_all(&mut self, objects: &[u64]) -> Result<(), LayoutError> {
        for object in objects {
            match self.append(*object) {
                Err(LayoutError::Full) => {
                    self.stats.dropped += 1;
                    self.forget(*object);
                }
                done => done?,
            }
        }
        Ok(())
    }

    fn forget(&mut self, object: u64) -> Option<Entry> {
        let entry = self.objects.remove(&object)?;
        self.stats.objects -= 1;
        self.stats.object_bytes -= entry.size;
        if let Some(runs) = &entry.runs {
            self.slots.give(runs);
            self.stats.pieces -= runs.as_slice().len() as u64;
        }
        Some(entry)
    }

    fn issue_if_due(&mut self) -> Result<(), LayoutError> {
        match &self.lazy {
            Some(lazy) if lazy.is_due(self.area.now()) => self.issue(),
            _ => Ok(()),
        }
    }

    fn issue(&mut self) -> Result<(), LayoutError> {
        let Some(lazy) = &mut self.lazy else {
            return Ok(());
        };
        let ranges = lazy.take();
        for (at, len) in &ranges {
            self.stats.count_read(*at, *len);
        }
        self.area.read_all(&ranges)
    }

    /// The ranges of an object that must be read from the area. The packetizer's buffer contains the rest of
    /// the object.
    fn ranges(&self, runs: &Runs) -> Vec<(u64, u64)> {
        let outside = |range: (u64, u64)| match &self.packetizer {
            Some(packetizer) => packetizer.outside(range.0, range.1),
            None => Some(range),
        };
        runs.as_slice()
            .iter()
            .filter_map(|run| outside(run.bytes()))
            .collect()
    }

    fn flush_packet(&mut self) -> Result<(), LayoutError> {
        let (area, stats) = (&mut self.area, &mut self.stats);
        let Some(packetizer) = &mut self.packetizer else {
            return Ok(());
        };
        packetizer.flush(|at, len| {
            stats.write_calls += 1;
            stats.write_bytes += len;
            area.write(at, len)
        })
    }
}

impl<A: Area> Layout for Stream<A> {
    fn write(&mut self, object: u64, size: u64, server: u32) -> Result<(), LayoutError> {
        self.issue_if_due()?;
        if self.objects.contains_key(&object) {
            return Err(LayoutError::Exists);
        }
        let size = size.max(1);
        self.objects.insert(object, Entry { size, runs: None });
        self.stats.objects += 1;
        self.stats.object_bytes += size;
        let done = match &mut self.locality {
            None => self.append(object),
            Some(locality) => {
                let flush = locality.add(object, Slots::needed(size) * super::BLOCK, server);
                self.append_all(&flush.before)
                    .and_then(|()| self.append_all(&flush.after))
            }
        };
        if done.is_err() && self.locality.is_none() {
            self.forget(object);
        }
        self.stats.writes += u64::from(done.is_ok());
        done
    }

    fn read(&mut self, object: u64) -> Result<(), LayoutError> {
        let Some(entry) = self.objects.get(&object) else {
            return Err(LayoutError::Missing);
        };
        let ranges = entry
            .runs
            .as_ref()
            .map(|runs| self.ranges(runs))
            .unwrap_or_default();
        self.stats.reads += 1;
        self.stats.buffer_reads += u64::from(ranges.is_empty());
        match &mut self.lazy {
            Some(lazy) if !ranges.is_empty() => lazy.push(object, &ranges, self.area.now()),
            Some(_) => {}
            None => {
                for (at, len) in ranges {
                    self.stats.count_read(at, len);
                    self.area.read(at, len)?;
                }
            }
        }
        self.issue_if_due()
    }

    fn delete(&mut self, object: u64) -> Result<(), LayoutError> {
        if self.lazy.as_ref().is_some_and(|lazy| lazy.waits(object)) {
            self.issue()?;
        }
        self.issue_if_due()?;
        let entry = self.forget(object).ok_or(LayoutError::Missing)?;
        if let (None, Some(locality)) = (&entry.runs, &mut self.locality) {
            locality.remove(object);
        }
        self.stats.deletes += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LayoutError> {
        self.issue()?;
        while let Some(objects) = self.locality.as_mut().and_then(Locality::flush_any) {
            self.append_all(&objects)?;
        }
        self.flush_packet()?;
        self.area.sync();
        Ok(())
    }

    fn place(&self, object: u64) -> Option<Place> {
        let entry = self.objects.get(&object)?;
        Some(match &entry.runs {
            None => Place::Buffer,
            Some(runs) => Place::Shared {
                file: self.area.file(),
                ranges: runs.as_slice().iter().map(|run| run.bytes()).collect(),
            },
        })
    }

    fn stats(&self) -> LayoutStats {
        let mut stats = self.stats.clone();
        stats.capacity = u64::from(self.slots.total()) * super::BLOCK;
        stats.free_bytes = u64::from(self.slots.left()) * super::BLOCK;
        stats.allocated_bytes = stats.capacity - stats.free_bytes;
        for run in self.slots.free_runs() {
            stats.free_chunks += 1;
            stats.free_largest = stats.free_largest.max(run.bytes().1);
        }
        stats
    }

    fn usage(&self, parts: usize) -> Vec<f32> {
        self.slots.usage(parts)
    }

    fn now(&self) -> SimTime {
        self.area.now()
    }

    fn counters(&self) -> FsCounters {
        self.area.counters()
    }
}

impl LayoutStats {
    fn count_read(&mut self, at: u64, len: u64) {
        self.read_calls += 1;
        self.read_bytes += len;
        self.distances.count(at, at + len);
    }
}
