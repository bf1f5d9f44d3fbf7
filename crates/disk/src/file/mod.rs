//! A regular file or block device as a [`Disk`].

mod open;
mod space;
mod target;

pub(crate) use target::Target;

use crate::pool::{PoolQueue, Workers};
use crate::{Disk, DiskError, Queue};
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The choice between direct transfers and transfers through the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// Direct transfers if the file system permits them, else buffered transfers (see [`Report`]).
    #[default]
    Auto,
    /// Direct transfers; opening fails if they are not possible.
    Yes,
    /// Buffered transfers, through the page cache.
    No,
}

/// The interface between queues and the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A ring (`io_uring`) if the kernel permits it, else the thread pool (see [`Report`]).
    #[default]
    Auto,
    /// `io_uring`; opening fails if it is not possible.
    Ring,
    /// Threads that call `pread` and `pwrite`.
    Pool,
}

/// Options for opening a file or device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// For a file: a missing file is created with this length, and a shorter file grows to this length. Space
    /// is reserved. With `None`, the file must exist, and is used with its present length. For a device: the
    /// number of bytes that are used; with `None`, all bytes.
    pub create_len: Option<u64>,
    /// The choice between direct transfers and transfers through the page cache.
    pub direct: Direct,
    /// The choice between ring and thread pool.
    pub backend: Backend,
    /// Refuses to open if another process holds the lock, and excludes other processes while this disk is
    /// open.
    pub lock: bool,
    /// Opens for reading only; writes fail.
    pub read_only: bool,
    /// Greatest number of threads in the thread pool, which all queues of this disk share.
    pub pool_threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create_len: None,
            direct: Direct::Auto,
            backend: Backend::Auto,
            lock: true,
            read_only: false,
            pool_threads: 16,
        }
    }
}

/// Properties of an open disk, and choices made when it was opened, for logs and statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// True for a block device, false for a file.
    pub device: bool,
    /// True if transfers bypass the page cache.
    pub direct: bool,
    /// The reason why transfers are not direct although direct I/O was wanted.
    pub direct_refused: Option<String>,
    /// True if queues are rings, false if they use the thread pool.
    pub ring: bool,
    /// The reason why queues are not rings although a ring was wanted.
    pub ring_refused: Option<String>,
    /// True if this opening created the file.
    pub created: bool,
    /// True if the file system did not reserve the space (sparse file): writes may fail with `ENOSPC`.
    pub sparse: bool,
    /// Logical block in bytes.
    pub block_bytes: u32,
}

/// A file or device. Sharing it in an `Arc` is cheap. It is closed (and unlocked) when its last queue is
/// dropped.
#[derive(Debug)]
pub struct FileDisk {
    target: Arc<Target>,
    report: Report,
    workers: Arc<Workers>,
    /// The options require a ring, so a failure to open one is an error, and the thread pool is not used
    /// instead.
    ring_only: bool,
    growing: Mutex<()>,
}

impl FileDisk {
    /// Opens, creates or grows `path`.
    ///
    /// # Errors
    /// See [`DiskError`]: every kind of error states what to do.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, DiskError> {
        let path = path.as_ref();
        let refused = match options.backend {
            Backend::Pool => Some(None),
            Backend::Auto => probe().err().map(Some),
            Backend::Ring => match probe() {
                Ok(()) => None,
                Err(reason) => {
                    return Err(DiskError::NoRing {
                        path: path.into(),
                        reason,
                    });
                }
            },
        };
        let (target, mut report) = open::open(path, options)?;
        report.ring = refused.is_none();
        report.ring_refused = refused.flatten();
        let target = Arc::new(target);
        Ok(Self {
            workers: Arc::new(Workers::new(target.clone(), options.pool_threads)),
            target,
            report,
            ring_only: options.backend == Backend::Ring,
            growing: Mutex::new(()),
        })
    }

    /// Properties of this disk, and choices made when it was opened.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The path as the caller gave it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    fn try_grow(&self, wanted: u64) -> Result<(), DiskError> {
        let _one_at_a_time = self.growing.lock();
        let (path, len) = (&self.target.path, self.target.len());
        let wanted = wanted / u64::from(self.target.block) * u64::from(self.target.block);
        if wanted < len {
            return Err(DiskError::Shrink {
                path: path.clone(),
                len,
                wanted,
            });
        }
        if self.report.device {
            space::of_device(path, &self.target.file, Some(wanted))?;
        } else if wanted > len {
            space::reserve(path, &self.target.file, len, wanted)?;
        }
        self.target.set_len(wanted);
        Ok(())
    }
}

impl Disk for FileDisk {
    fn len(&self) -> u64 {
        self.target.len()
    }

    fn block_bytes(&self) -> u32 {
        self.target.block
    }

    fn describe(&self) -> String {
        let report = &self.report;
        let kind = if report.device { "device" } else { "file" };
        let transfer = if report.direct { "direct" } else { "buffered" };
        let queue = if report.ring {
            "io_uring"
        } else {
            "thread pool"
        };
        let mut text = format!(
            "{} {kind}, {} bytes, {transfer}, blocks of {}, {queue}",
            self.target.path.display(),
            self.len(),
            report.block_bytes
        );
        for reason in [&report.direct_refused, &report.ring_refused]
            .into_iter()
            .flatten()
        {
            text = format!("{text}; {reason}");
        }
        text
    }

    fn open_queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        if self.report.ring {
            match ring_queue(&self.target, depth) {
                Ok(queue) => return Ok(queue),
                Err(error) if self.ring_only => return Err(error),
                // The first ring could be opened, but later rings may lack resources (descriptors,
                // locked memory). Then the thread pool is used instead.
                Err(_) => {}
            }
        }
        Ok(Box::new(PoolQueue::new(self.workers.clone())?))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.target.read_any(at, into)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.target.write_any(at, data)
    }

    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.target.write_cached(at, data)
    }

    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.target.read_cached(at, into)
    }

    fn flush(&self) -> io::Result<()> {
        self.target.sync()
    }

    fn grow(&self, new_len: u64) -> io::Result<()> {
        self.try_grow(new_len).map_err(Into::into)
    }
}

#[cfg(target_os = "linux")]
use crate::ring::probe;

/// The reason why this system refuses `io_uring`; `None` if it can be used.
#[must_use]
pub fn ring_refusal() -> Option<String> {
    probe().err()
}

#[cfg(target_os = "linux")]
fn ring_queue(target: &Arc<Target>, depth: u32) -> io::Result<Box<dyn Queue>> {
    Ok(Box::new(crate::ring::RingQueue::new(
        target.clone(),
        depth,
    )?))
}

#[cfg(not(target_os = "linux"))]
fn probe() -> Result<(), String> {
    Err("this system has no io_uring".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn ring_queue(_: &Arc<Target>, _: u32) -> io::Result<Box<dyn Queue>> {
    Err(io::ErrorKind::Unsupported.into())
}
