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

/// Use of the page cache by transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// Direct where the file system allows it, else buffered (see [`Report`]).
    #[default]
    Auto,
    /// Direct or an error.
    Yes,
    /// Through the page cache.
    No,
}

/// Interface of queues to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A ring where the kernel allows it, else the thread pool (see [`Report`]).
    #[default]
    Auto,
    /// `io_uring` or an error.
    Ring,
    /// Threads that call `pread` and `pwrite`.
    Pool,
}

/// Options for opening a file or device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Create the file with this length if it is missing, or make it longer if it is shorter (space
    /// is reserved). `None`: the file must exist, and is used with its present length. For a device:
    /// use no more than this.
    pub create_len: Option<u64>,
    /// Bypass the page cache?
    pub direct: Direct,
    /// Ring or pool?
    pub backend: Backend,
    /// Refuse to open if another process holds the lock, and keep others out while this disk is open.
    pub lock: bool,
    /// Open for reading alone: writes fail.
    pub read_only: bool,
    /// Most threads of the pool backend, over all queues of this disk.
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

/// Properties and choices of an open disk, for logs and statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A block device, not a file.
    pub device: bool,
    /// Transfers bypass the page cache.
    pub direct: bool,
    /// Why not, if direct I/O was wanted.
    pub direct_refused: Option<String>,
    /// Queues are rings (otherwise the thread pool).
    pub ring: bool,
    /// Why not, if a ring was wanted.
    pub ring_refused: Option<String>,
    /// The file was created by this opening.
    pub created: bool,
    /// Space was only promised by the file system (sparse file): writes may meet `ENOSPC`.
    pub sparse: bool,
    /// Logical block, bytes.
    pub block_bytes: u32,
}

/// A file or device. Cheap to share in an `Arc`; closed (and unlocked) with its last queue.
#[derive(Debug)]
pub struct FileDisk {
    target: Arc<Target>,
    report: Report,
    workers: Arc<Workers>,
    /// A ring was demanded: no pool instead.
    ring_only: bool,
    growing: Mutex<()>,
}

impl FileDisk {
    /// Opens, creates or grows `path`.
    ///
    /// # Errors
    /// See [`DiskError`]: every kind says what to do.
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

    /// Properties and choices of this disk.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The path as given.
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
                // After the first ring, resources can run out (descriptors, locked memory). The
                // thread pool serves instead.
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

/// Returns the reason why this system refuses `io_uring`; `None` if it can be used.
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
