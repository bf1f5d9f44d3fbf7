//! Reserves space for a new or growing file, and finds the length of a device.

use super::open::{io_error, refusal};
use crate::DiskError;
use rustix::io::Errno;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

/// Makes a file `wanted` bytes long and reserves the space. Returns true if the file system cannot reserve
/// space; then the file is sparse. On failure the file has its old length again.
pub(super) fn reserve(path: &Path, file: &File, len: u64, wanted: u64) -> Result<bool, DiskError> {
    match allocate(file, len, wanted) {
        Ok(()) => Ok(false),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => sparse(path, file, wanted).map(|()| true),
        Err(error) => {
            // Releases the space that was reserved before the file system was full. If the release fails, the
            // space is only wasted.
            let _ = file.set_len(len);
            Err(no_room(path, file, wanted, error))
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn allocate(file: &File, len: u64, wanted: u64) -> Result<(), Errno> {
    use rustix::fs::{FallocateFlags, fallocate};
    loop {
        match fallocate(file, FallocateFlags::empty(), len, wanted - len) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn allocate(_: &File, _: u64, _: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

fn sparse(path: &Path, file: &File, wanted: u64) -> Result<(), DiskError> {
    let available = available(file);
    if available < wanted {
        return Err(DiskError::NoSpace {
            path: path.into(),
            wanted,
            available,
        });
    }
    file.set_len(wanted)
        .map_err(|e| io_error(path, "set its length", e))
}

fn no_room(path: &Path, file: &File, wanted: u64, error: Errno) -> DiskError {
    match error {
        Errno::NOSPC | Errno::DQUOT => DiskError::NoSpace {
            path: path.into(),
            wanted,
            available: available(file),
        },
        Errno::FBIG => DiskError::TooLarge {
            path: path.into(),
            wanted,
            limit: 0,
        },
        _ => refusal(path, "reserve its space", error),
    }
}

/// Bytes that the file system has left for an ordinary user; 0 if it does not report this.
fn available(file: &File) -> u64 {
    rustix::fs::fstatvfs(file).map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

/// Number of bytes of a device to use: all of them, or `wanted`.
pub(super) fn of_device(
    path: &Path,
    mut file: &File,
    wanted: Option<u64>,
) -> Result<u64, DiskError> {
    let end = file
        .seek(SeekFrom::End(0))
        .map_err(|e| io_error(path, "find its length", e))?;
    match wanted {
        _ if end == 0 => Err(DiskError::Gone { path: path.into() }),
        Some(wanted) if wanted > end => Err(DiskError::TooLarge {
            path: path.into(),
            wanted,
            limit: end,
        }),
        Some(wanted) => Ok(wanted),
        None => Ok(end),
    }
}
