//! The functions that the C header `hummingbird.h` declares. The documentation of this crate (`lib.rs`) lists
//! the conditions that the caller of each function must ensure.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use bytes::Bytes;
use foxy_hummingbird::{Checkpoint, DiskPath, Error, File, Hint, Hummingbird};

use crate::handle::Handle;
use crate::outcome::{self, Failure, NULL, guarded};
use crate::owned::{Release, contents};
use crate::structs::{ConfigOfC, DiskOfC, StatisticsOfC};

type Answer = Result<i64, Failure>;

/// The handle to which a pointer points.
///
/// # Safety
/// See the documentation of this crate.
unsafe fn handle<'a>(fs: *mut Handle) -> Result<&'a Handle, Failure> {
    // SAFETY: the pointer is NULL or a handle that was not closed.
    unsafe { fs.as_ref() }.ok_or(NULL)
}

/// The bytes of a name.
///
/// # Safety
/// See the documentation of this crate.
unsafe fn name<'a>(at: *const c_void, size: usize) -> Result<&'a [u8], Failure> {
    if at.is_null() {
        return Err(Error::Name.into());
    }
    // SAFETY: the pointer is not NULL, and the caller guarantees `size` readable bytes.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), size) })
}

/// Sets all settings to their defaults.
///
/// # Safety
/// `config` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_config_init(config: *mut ConfigOfC) {
    if !config.is_null() {
        // SAFETY: the pointer is writable, and the old value needs no destructor.
        unsafe { config.write(ConfigOfC::usual()) }
    }
}

/// Opens a file system.
///
/// # Safety
/// See the documentation of this crate; in addition, the paths are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_open(
    disks: *const DiskOfC,
    count: usize,
    config: *const ConfigOfC,
    fs: *mut *mut Handle,
) -> i64 {
    guarded(|| {
        if disks.is_null() || fs.is_null() {
            return Err(NULL);
        }
        // SAFETY: the pointer is NULL or points to a configuration.
        let config = unsafe { config.as_ref() }
            .copied()
            .unwrap_or_else(ConfigOfC::usual);
        if config.struct_bytes != size_of::<ConfigOfC>() as u64 {
            return Err(Failure::Text(-8, "hummingbird_config_init was not called"));
        }
        // SAFETY: the pointer is not NULL, and there are `count` disks.
        let disks = unsafe { std::slice::from_raw_parts(disks, count) };
        let mut config = config.config();
        for disk in disks {
            if disk.path.is_null() {
                return Err(NULL);
            }
            // SAFETY: the path is a C string.
            let path = unsafe { CStr::from_ptr(disk.path) };
            config.disks.push(DiskPath {
                path: OsStr::from_bytes(path.to_bytes()).into(),
                bytes: (disk.bytes > 0).then_some(disk.bytes),
            });
        }
        let opened = Box::new(Handle::new(Hummingbird::open(&config)?));
        // SAFETY: the pointer is writable.
        unsafe { fs.write(Box::into_raw(opened)) };
        Ok(0)
    })
}

/// Closes a file system.
///
/// # Safety
/// See the documentation of this crate; in addition, no other call on `fs` is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_close(fs: *mut Handle) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        unsafe { handle(fs) }?.check_idle()?;
        // SAFETY: `hummingbird_open` made the handle, and this is the last call on it.
        unsafe { Box::from_raw(fs) }.close()
    })
}

/// Stores a file. `how` is the function of the library that stores it.
///
/// # Safety
/// See the documentation of this crate.
unsafe fn write(
    fs: *mut Handle,
    named: (*const c_void, usize),
    (buf, size, release): (*mut c_void, usize, Option<Release>),
    how: impl FnOnce(&Hummingbird, &[u8], Bytes) -> Result<u64, Error>,
) -> i64 {
    guarded(|| {
        // SAFETY: the caller guarantees `size` readable bytes at `buf`. This conversion comes before all
        // checks, because the memory belongs to the library even if the call fails (unless `release` is
        // NULL).
        let contents = unsafe { contents(buf, size, release) }.ok_or(NULL)?;
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        // SAFETY: see the function's safety section.
        let name = unsafe { name(named.0, named.1) }?;
        Ok(how(&handle.fs, name, contents)? as i64)
    })
}

/// Stores a file.
///
/// # Safety
/// See the documentation of this crate. If `release` is not NULL, the memory belongs to the library from this
/// call on, even if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_write_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *mut c_void,
    size: usize,
    release: Option<Release>,
) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe {
        write(
            fs,
            (name, name_size),
            (buf, size, release),
            |fs, name, bytes| fs.write_file(name, bytes),
        )
    }
}

/// Stores a file that is not kept in memory.
///
/// # Safety
/// The conditions of [`hummingbird_write_file`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_write_nomem_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *mut c_void,
    size: usize,
    release: Option<Release>,
) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe {
        write(
            fs,
            (name, name_size),
            (buf, size, release),
            |fs, name, bytes| fs.write_nomem_file(name, bytes),
        )
    }
}

/// Stores a file beside another file.
///
/// # Safety
/// The conditions of [`hummingbird_write_file`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_write_file_beside(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *mut c_void,
    size: usize,
    release: Option<Release>,
    beside: *const c_void,
    beside_size: usize,
) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe {
        // A name that is NULL becomes an empty name, which the library refuses.
        let beside = self::name(beside, beside_size).unwrap_or_default();
        write(
            fs,
            (name, name_size),
            (buf, size, release),
            |fs, name, bytes| fs.write_file_beside(name, bytes, beside),
        )
    }
}

/// Reads a file. `how` is the function of the library that reads it.
///
/// # Safety
/// See the documentation of this crate.
unsafe fn read(
    fs: *mut Handle,
    named: (*const c_void, usize),
    buf: *mut *const c_void,
    how: impl FnOnce(&Hummingbird, &[u8]) -> Result<File, Error>,
) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        // SAFETY: see the function's safety section.
        let name = unsafe { name(named.0, named.1) }?;
        if buf.is_null() {
            return Err(NULL);
        }
        let (at, size) = handle.lend(name, how(&handle.fs, name)?);
        // SAFETY: the pointer is writable.
        unsafe { buf.write(at.cast()) };
        Ok(size)
    })
}

/// Finds a file and lends its contents.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_read_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *mut *const c_void,
) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe { read(fs, (name, name_size), buf, Hummingbird::read_file) }
}

/// Finds a file and lends its contents, without keeping them in memory.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_read_nomem_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *mut *const c_void,
) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe { read(fs, (name, name_size), buf, Hummingbird::read_nomem_file) }
}

/// Ends one read.
///
/// # Safety
/// See the documentation of this crate; in addition, the contents are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_done_read_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
    buf: *const c_void,
) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        // SAFETY: see the function's safety section.
        let name = unsafe { self::name(name, name_size) }?;
        handle.done(name, buf.cast())
    })
}

/// Deletes a file.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_delete_file(
    fs: *mut Handle,
    name: *const c_void,
    name_size: usize,
) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        // SAFETY: see the function's safety section.
        let name = unsafe { self::name(name, name_size) }?;
        handle.fs.delete_file(name)?;
        Ok(0)
    })
}

/// Passes on the hint that two files belong together.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_collocate_files(
    fs: *mut Handle,
    first: *const c_void,
    first_size: usize,
    second: *const c_void,
    second_size: usize,
) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        // SAFETY: see the function's safety section.
        let first = unsafe { name(first, first_size) }?;
        // SAFETY: see the function's safety section.
        let second = unsafe { name(second, second_size) }?;
        Ok(match handle.fs.collocate_files(first, second)? {
            Hint::Taken => 0,
            Hint::TooLate => 1,
        })
    })
}

/// Makes a call of the library that needs no pointer except the handle.
///
/// # Safety
/// See the documentation of this crate.
unsafe fn with(fs: *mut Handle, call: impl FnOnce(&Hummingbird) -> Result<(), Error>) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        call(&unsafe { handle(fs) }?.fs)?;
        Answer::Ok(0)
    })
}

fn lifetime(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// Changes the lifetime of files.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_update_file_lifetime(fs: *mut Handle, seconds: i64) -> i64 {
    let change = |fs: &Hummingbird| {
        fs.update_file_lifetime(lifetime(seconds));
        Ok(())
    };
    // SAFETY: see the function's safety section.
    unsafe { with(fs, change) }
}

/// Changes the lifetime of clusters.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_update_cluster_lifetime(fs: *mut Handle, seconds: i64) -> i64 {
    let change = |fs: &Hummingbird| {
        fs.update_cluster_lifetime(lifetime(seconds));
        Ok(())
    };
    // SAFETY: see the function's safety section.
    unsafe { with(fs, change) }
}

/// Makes all files and deletions durable.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_checkpoint(fs: *mut Handle) -> i64 {
    // SAFETY: see the function's safety section.
    unsafe { with(fs, Hummingbird::checkpoint) }
}

/// Begins to make all files and deletions durable.
///
/// # Safety
/// See the documentation of this crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_begin_checkpoint(fs: *mut Handle) -> i64 {
    let begin = |fs: &Hummingbird| {
        let _: Checkpoint = fs.begin_checkpoint();
        Ok(())
    };
    // SAFETY: see the function's safety section.
    unsafe { with(fs, begin) }
}

/// Writes the statistics of the file system into the structure at `statistics`.
///
/// # Safety
/// See the documentation of this crate; in addition, `statistics` has `struct_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hummingbird_get_statistics(
    fs: *mut Handle,
    statistics: *mut StatisticsOfC,
    struct_bytes: usize,
) -> i64 {
    guarded(|| {
        // SAFETY: see the function's safety section.
        let handle = unsafe { handle(fs) }?;
        if statistics.is_null() || struct_bytes != size_of::<StatisticsOfC>() {
            return Err(NULL);
        }
        // SAFETY: the pointer is writable and has the length of the structure.
        unsafe { statistics.write(handle.fs.statistics().into()) };
        Ok(0)
    })
}

/// The text of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn hummingbird_last_error() -> *const c_char {
    outcome::last()
}
