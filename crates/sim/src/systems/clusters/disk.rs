//! A raw partition of fixed-size clusters. It records which objects each cluster contains.
//!
//! Time comes from the modelled partition. Contents are kept as records instead of bytes, so that a read
//! returns exactly the last written records, also after a crash.

use crate::model::{FsCounters, FsError, Raw, SimTime};

/// One object in a cluster, as it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Name of the object (URL).
    pub name: u64,
    /// Size of the object in bytes.
    pub size: u64,
    /// Version number, in place of the contents.
    pub version: u32,
}

/// Contents of a cluster as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<R = Stored> {
    /// Number of the write. It rises with each write to the disk.
    pub sequence: u64,
    /// Objects in the cluster. An object that spans several clusters is listed only in the first of these
    /// clusters.
    pub records: Vec<R>,
}

/// The partition: a reserved region, followed by clusters.
#[derive(Clone, Debug)]
pub struct ClusterDisk<R = Stored> {
    raw: Raw,
    reserved: u64,
    cluster: u64,
    contents: Vec<Option<Written<R>>>,
    sequence: u64,
}

impl<R: Clone> ClusterDisk<R> {
    /// Creates an empty partition. The first `reserved` bytes do not belong to clusters.
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

    /// Number of clusters.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.contents.len() as u32
    }

    /// Bytes of a cluster.
    #[must_use]
    pub const fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Bytes of the reserved region before the first cluster.
    #[must_use]
    pub const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Number of the last write to the disk.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The cluster in which the head is (current disk position).
    #[must_use]
    pub fn position(&self) -> u32 {
        let at = self.raw.head().saturating_sub(self.reserved) / self.cluster;
        at.min(u64::from(self.count().saturating_sub(1))) as u32
    }

    fn at(&self, cluster: u32) -> u64 {
        self.reserved + u64::from(cluster) * self.cluster
    }

    /// Reads `count` clusters from `first` on with one request and waits. Returns the contents of
    /// the first cluster.
    ///
    /// # Errors
    /// Returns [`FsError::OutOfRange`].
    pub fn read(&mut self, first: u32, count: u32) -> Result<Option<&Written<R>>, FsError> {
        let len = u64::from(count) * self.cluster;
        self.raw.read(self.at(first), len)?;
        Ok(self.contents.get(first as usize).and_then(Option::as_ref))
    }

    /// Writes adjacent clusters from `first` on with one request and waits until the drive has written them.
    /// An empty list of records means that the cluster continues the previous cluster's object.
    ///
    /// # Errors
    /// Returns [`FsError::OutOfRange`]. In this case nothing was written.
    pub fn write(&mut self, first: u32, clusters: Vec<Vec<R>>) -> Result<(), FsError> {
        let len = clusters.len() as u64 * self.cluster;
        self.raw.write(self.at(first), len)?;
        self.put(first, clusters);
        Ok(())
    }

    /// Writes adjacent clusters as [`ClusterDisk::write`] does, but the process continues while the request
    /// waits for the drive.
    ///
    /// # Errors
    /// The same errors as [`ClusterDisk::write`].
    pub fn write_behind(&mut self, first: u32, clusters: Vec<Vec<R>>) -> Result<(), FsError> {
        let len = clusters.len() as u64 * self.cluster;
        self.raw.write_behind(self.at(first), len)?;
        self.put(first, clusters);
        Ok(())
    }

    /// Waits until the queued writes have at most `bytes` bytes.
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

    /// Returns the contents of a cluster without a simulated read. This is for systems that have a copy in
    /// memory, and for tests.
    #[must_use]
    pub fn peek(&self, cluster: u32) -> Option<&Written<R>> {
        self.contents.get(cluster as usize).and_then(Option::as_ref)
    }

    /// Reads `len` bytes at `at` in the reserved region. The range is cut at the end of the region.
    ///
    /// # Errors
    /// Returns [`FsError::OutOfRange`].
    pub fn read_reserved(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let at = at.min(self.reserved);
        self.raw.read(at, len.min(self.reserved - at))
    }

    /// Writes `len` bytes at `at` in the reserved region and waits. The range is cut at the end
    /// of the region.
    ///
    /// # Errors
    /// Returns [`FsError::OutOfRange`].
    pub fn write_reserved(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let at = at.min(self.reserved);
        self.raw.write(at, len.min(self.reserved - at))
    }

    /// The present time of the simulated process. The drive may still have queued requests.
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

    /// The costs on the drive so far (requests, bytes and times).
    #[must_use]
    pub fn counters(&self) -> FsCounters {
        self.raw.counters()
    }
}
