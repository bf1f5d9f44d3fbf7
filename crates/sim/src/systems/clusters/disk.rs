//! A raw partition of fixed-size clusters that remembers which records each holds.
//!
//! Time comes from the modelled partition; contents are kept as records instead of bytes, so
//! that a read gives exactly what the last write put there, after a crash too.

use crate::model::{FsCounters, FsError, Raw, SimTime};

/// One object in a cluster, as it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name (URL).
    pub name: u64,
    /// Its bytes.
    pub size: u64,
    /// Version number; stands for the contents.
    pub version: u32,
}

/// Contents of a cluster as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<R = Stored> {
    /// Number of the write: rises over the whole disk.
    pub sequence: u64,
    /// Objects in it. One that spans several clusters is in the first one only.
    pub records: Vec<R>,
}

/// The partition: a reserved region, then clusters.
#[derive(Clone, Debug)]
pub struct ClusterDisk<R = Stored> {
    raw: Raw,
    reserved: u64,
    cluster: u64,
    contents: Vec<Option<Written<R>>>,
    sequence: u64,
}

impl<R: Clone> ClusterDisk<R> {
    /// An empty one; `reserved` bytes at the start are no clusters.
    #[must_use]
    pub fn new(raw: Raw, cluster: u64, reserved: u64) -> Self {
        let cluster = cluster.max(512) / 512 * 512;
        let count = raw.bytes().saturating_sub(reserved) / cluster;
        Self {
            raw,
            reserved,
            cluster,
            contents: vec![None; count.min(u64::from(u32::MAX - 1)) as usize],
            sequence: 0,
        }
    }

    /// Clusters there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.contents.len() as u32
    }

    /// Bytes of a cluster.
    #[must_use]
    pub const fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Bytes before the first cluster.
    #[must_use]
    pub const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Number of the last write.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The cluster where the head is (current disk position).
    #[must_use]
    pub fn position(&self) -> u32 {
        let at = self.raw.head().saturating_sub(self.reserved) / self.cluster;
        at.min(u64::from(self.count().saturating_sub(1))) as u32
    }

    fn at(&self, cluster: u32) -> u64 {
        self.reserved + u64::from(cluster) * self.cluster
    }

    /// Reads `count` clusters from `first` by one request and waits; returns the contents of the first.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn read(&mut self, first: u32, count: u32) -> Result<Option<&Written<R>>, FsError> {
        let len = u64::from(count) * self.cluster;
        self.raw.read(self.at(first), len)?;
        Ok(self.contents.get(first as usize).and_then(Option::as_ref))
    }

    /// Writes neighbouring clusters from `first` by one request and waits until the drive has
    /// it. An empty list of records continues the object before.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`]: nothing was written.
    pub fn write(&mut self, first: u32, clusters: Vec<Vec<R>>) -> Result<(), FsError> {
        let len = clusters.len() as u64 * self.cluster;
        self.raw.write(self.at(first), len)?;
        self.put(first, clusters);
        Ok(())
    }

    /// As [`ClusterDisk::write`], but the process goes on while the request waits for the drive.
    ///
    /// # Errors
    /// As [`ClusterDisk::write`].
    pub fn write_behind(&mut self, first: u32, clusters: Vec<Vec<R>>) -> Result<(), FsError> {
        let len = clusters.len() as u64 * self.cluster;
        self.raw.write_behind(self.at(first), len)?;
        self.put(first, clusters);
        Ok(())
    }

    /// Waits until at most `bytes` of writes wait for the drive.
    pub fn wait_below(&mut self, bytes: u64) {
        self.raw.wait_below(bytes);
    }

    fn put(&mut self, first: u32, clusters: Vec<Vec<R>>) {
        for (cluster, records) in (first as usize..).zip(clusters) {
            self.sequence += 1;
            let sequence = self.sequence;
            if let Some(slot) = self.contents.get_mut(cluster) {
                *slot = Some(Written { sequence, records });
            }
        }
    }

    /// Contents of a cluster, without reading it: for systems that hold a copy in memory, and
    /// tests.
    #[must_use]
    pub fn peek(&self, cluster: u32) -> Option<&Written<R>> {
        self.contents.get(cluster as usize).and_then(Option::as_ref)
    }

    /// Reads `len` bytes of the reserved region, cut at its end.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn read_reserved(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let at = at.min(self.reserved);
        self.raw.read(at, len.min(self.reserved - at))
    }

    /// Writes `len` bytes of the reserved region, cut at its end, and waits.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn write_reserved(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let at = at.min(self.reserved);
        self.raw.write(at, len.min(self.reserved - at))
    }

    /// The moment the process has reached.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.raw.now()
    }

    /// Lets the process compute or sleep.
    pub fn advance(&mut self, span: SimTime) {
        self.raw.advance(span);
    }

    /// Waits until everything is on the medium.
    pub fn flush(&mut self) {
        self.raw.flush();
    }

    /// Cost so far.
    #[must_use]
    pub fn counters(&self) -> FsCounters {
        self.raw.counters()
    }
}
