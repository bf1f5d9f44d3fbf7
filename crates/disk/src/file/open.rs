//! Opening of a file or device: checks the path, takes the lock, finds the length, and chooses direct or
//! buffered transfers.

use super::{Direct, OpenOptions, Report, Target, space};
use crate::{AlignedBuf, DiskError};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Opens the file or device as the options require.
pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<(Target, Report), DiskError> {
    let (file, created) = open_or_create(path, options)?;
    let result = prepare(path, file, created, options);
    if result.is_err() && created {
        // Removes the file, so that no empty or half reserved file stays behind. An error of the removal is
        // ignored.
        let _ = std::fs::remove_file(path);
    }
    result
}

fn prepare(
    path: &Path,
    file: File,
    created: bool,
    options: &OpenOptions,
) -> Result<(Target, Report), DiskError> {
    let meta = file
        .metadata()
        .map_err(|e| io_error(path, "read its properties", e))?;
    let device = meta.file_type().is_block_device();
    refuse_kind(path, meta.file_type())?;
    if options.lock {
        lock(path, &file, options.read_only)?;
    }
    let (len, sparse) = if device {
        (space::of_device(path, &file, options.create_len)?, false)
    } else {
        let wanted = options
            .create_len
            .filter(|_| !options.read_only)
            .unwrap_or(0);
        let sparse = meta.len() < wanted && space::reserve(path, &file, meta.len(), wanted)?;
        (meta.len().max(wanted), sparse)
    };
    if created {
        settle(path, &file)?;
    }
    let (direct, direct_refused) = set_direct(path, &file, options.direct)?;
    let cached = direct
        .then(|| open_cached(path, &file, options.read_only))
        .transpose()?;
    let block = if direct || device {
        block_bytes(&file, device)
    } else {
        512
    };
    let len = len / u64::from(block) * u64::from(block);
    let report = Report {
        device,
        direct,
        direct_refused,
        ring: false,
        ring_refused: None,
        created,
        sparse,
        block_bytes: block,
    };
    Ok((Target::new(file, cached, path.into(), block, len), report))
}

/// A second descriptor of the open file or device, which goes through the page cache. A duplicate of
/// the descriptor is not sufficient, since it shares the flag for direct transfers.
fn open_cached(path: &Path, file: &File, read_only: bool) -> Result<File, DiskError> {
    let access = if read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty());
    let cached: File = fd.map_err(|e| refusal(path, "open it again", e))?.into();
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let (first, second) = (file.metadata(), cached.metadata());
    let metas = first.and_then(|first| Ok((first, second?)));
    let (first, second) = metas.map_err(|e| io_error(path, "read its properties", e))?;
    if same(&first, &second) {
        Ok(cached)
    } else {
        // Somebody put another file at this path between the two openings.
        Err(DiskError::InUse { path: path.into() })
    }
}

/// Makes a new file and its entry in the folder survive a power cut.
fn settle(path: &Path, file: &File) -> Result<(), DiskError> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let synced = file
        .sync_all()
        .and_then(|()| File::open(folder)?.sync_all());
    synced.map_err(|e| io_error(path, "make it durable", e))
}

fn open_or_create(path: &Path, options: &OpenOptions) -> Result<(File, bool), DiskError> {
    // The type of the file is checked before it is opened, since opening a pipe would wait for its other end.
    let exclusive = match std::fs::metadata(path) {
        Ok(meta) => {
            refuse_kind(path, meta.file_type())?;
            // With this flag, opening a mounted device fails. The flag has no effect for files.
            meta.file_type().is_block_device() && options.lock && !options.read_only
        }
        Err(_) => false,
    };
    let access = if options.read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = if exclusive {
        flags | OFlags::EXCL
    } else {
        flags
    };
    let mode = Mode::from_raw_mode(0o600);
    match patiently(Errno::BUSY, || rustix::fs::open(path, flags, mode)) {
        Ok(fd) => Ok((fd.into(), false)),
        Err(Errno::NOENT) if options.create_len.is_some() && !options.read_only => {
            match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
                Ok(fd) => Ok((fd.into(), true)),
                Err(Errno::NOENT) => Err(DiskError::NoFolder { path: path.into() }),
                Err(error) => Err(refusal(path, "create it", error)),
            }
        }
        Err(error) => Err(refusal(path, "open it", error)),
    }
}

/// The pauses between attempts to open or lock a file that is in use. Each pair is a length in milliseconds
/// and a number of pauses. All pauses together take 5 s.
const PAUSES: [(u64, usize); 2] = [(1, 100), (20, 245)];

/// Repeats the call for five seconds while the error is `busy`. The kernel releases the files of an
/// `io_uring` some time after the process has died; on a busy machine this can take more than half a second.
/// A restart should not fail because of this delay.
fn patiently<T>(busy: Errno, mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let pauses = PAUSES
        .iter()
        .flat_map(|(pause, number)| std::iter::repeat_n(*pause, *number));
    for pause in pauses {
        match call() {
            Err(error) if error == busy => std::thread::sleep(Duration::from_millis(pause)),
            other => return other,
        }
    }
    call()
}

/// Turns an error of the system into a typed error.
pub(super) fn refusal(path: &Path, doing: &'static str, error: Errno) -> DiskError {
    let path = path.into();
    match error {
        Errno::NOENT | Errno::NOTDIR => DiskError::NotFound { path },
        Errno::ACCESS | Errno::PERM => DiskError::Permission { path },
        Errno::ROFS => DiskError::ReadOnly { path },
        Errno::BUSY | Errno::TXTBSY => DiskError::InUse { path },
        Errno::ISDIR => DiskError::WrongKind {
            path,
            found: "directory",
        },
        _ => DiskError::Io {
            path,
            doing,
            source: error.into(),
        },
    }
}

pub(super) fn io_error(path: &Path, doing: &'static str, source: io::Error) -> DiskError {
    DiskError::Io {
        path: path.into(),
        doing,
        source,
    }
}

fn refuse_kind(path: &Path, kind: FileType) -> Result<(), DiskError> {
    let found = if kind.is_file() || kind.is_block_device() {
        return Ok(());
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_char_device() {
        "character device"
    } else if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "file of unknown kind"
    };
    Err(DiskError::WrongKind {
        path: path.into(),
        found,
    })
}

/// Takes the advisory lock. The system drops the lock when the last descriptor closes, even after `kill -9`.
fn lock(path: &Path, file: &File, read_only: bool) -> Result<(), DiskError> {
    let how = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    match patiently(Errno::WOULDBLOCK, || rustix::fs::flock(file, how)) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(DiskError::InUse { path: path.into() }),
        Err(error) => Err(refusal(path, "lock it", error)),
    }
}

/// Switches to direct transfers if the options ask for them. Then tries a direct transfer, because some file
/// systems accept the flag but refuse the transfer.
fn set_direct(
    path: &Path,
    file: &File,
    wanted: Direct,
) -> Result<(bool, Option<String>), DiskError> {
    if wanted == Direct::No {
        return Ok((false, None));
    }
    let refused = match try_direct(file) {
        Ok(()) => return Ok((true, None)),
        // These errors do not concern direct transfers: the device cannot be read at all.
        Err(error @ (Errno::IO | Errno::NXIO | Errno::NODEV)) => {
            return Err(io_error(path, "read it", error.into()));
        }
        Err(error) => error,
    };
    if wanted == Direct::Yes {
        return Err(DiskError::NoDirect { path: path.into() });
    }
    let off = rustix::fs::fcntl_getfl(file)
        .and_then(|flags| rustix::fs::fcntl_setfl(file, flags.difference(direct_flag())));
    off.map_err(|e| refusal(path, "go back to buffered transfers", e))?;
    Ok((
        false,
        Some(format!("the file system refuses direct I/O: {refused}")),
    ))
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn direct_flag() -> OFlags {
    OFlags::DIRECT
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn direct_flag() -> OFlags {
    OFlags::empty()
}

fn try_direct(file: &File) -> Result<(), Errno> {
    if direct_flag().is_empty() {
        return Err(Errno::NOTSUP);
    }
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | direct_flag())?;
    let mut buf = AlignedBuf::new(4096);
    rustix::io::pread(file, &mut buf[..], 0).map(drop)
}

/// The smallest unit of a direct transfer: 512 or 4096 bytes.
fn block_bytes(file: &File, device: bool) -> u32 {
    let told = if device {
        device_block(file)
    } else {
        file_block(file)
    };
    match told {
        Some(bytes @ (512 | 4096)) => bytes,
        Some(bytes) if bytes != 0 && bytes < 512 => 512,
        _ => tried_block(file),
    }
}

/// Block size from `statx`, if the kernel (6.1 or later) and the file system report it.
fn file_block(file: &File) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        /// `STATX_DIOALIGN`.
        const DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);
        let found = statx(file, "", AtFlags::EMPTY_PATH, DIOALIGN).ok()?;
        let told = found.stx_mask & DIOALIGN.bits() != 0;
        told.then_some(found.stx_dio_offset_align)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

fn device_block(file: &File) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_blksszget(file).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

/// Finds the block size by trying a transfer of 512 bytes.
fn tried_block(file: &File) -> u32 {
    let mut buf = AlignedBuf::new(512);
    let accepted = rustix::io::pread(file, &mut buf[..], 512).is_ok();
    if accepted { 512 } else { 4096 }
}
