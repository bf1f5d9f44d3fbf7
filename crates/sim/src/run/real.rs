//! Real files in a folder of this machine, behind the same trait as modelled file systems.
//!
//! As in a modelled file system, names are numbers. Times are read from the machine's clock. Counts of I/O
//! are read from the kernel's counters for the device that contains the folder. These counters include the
//! I/O of all processes, so the folder should be on a separate file system. The folder made for a run is
//! removed at the end of the run.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use foxy_base::{Clock as _, MonoTime, SystemClock};

use crate::model::{DirId, FileId, Files, FsCounters, FsError, IoKind, SimTime};

/// Bytes of the buffer from which write() calls copy; longer writes use the buffer several times.
const CHUNK: usize = 1 << 20;

/// Files below one folder.
#[derive(Debug)]
pub struct RealFiles {
    folder: PathBuf,
    clock: SystemClock,
    start: MonoTime,
    dirs: Vec<PathBuf>,
    files: HashMap<u32, (File, PathBuf)>,
    next: u32,
    chunk: Vec<u8>,
    /// The kernel's file of device counters, if there is one.
    device: Option<PathBuf>,
}

static RUN: AtomicU32 = AtomicU32::new(0);

impl RealFiles {
    /// Creates a folder for a run below `dir`. Then writes the dirty pages of the folder's file system, and
    /// empties the page cache if the process has the permission.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let number = RUN.fetch_add(1, Ordering::Relaxed);
        let folder = dir.join(format!("foxy-sim-{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let about = fs::metadata(&folder)?;
        let (major, minor) = (about.dev() >> 8 & 0xfff, about.dev() & 0xff);
        let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let clock = SystemClock::default();
        let made = Self {
            start: clock.mono(),
            clock,
            dirs: vec![folder.clone()],
            files: HashMap::new(),
            next: 1,
            chunk: vec![0x5a; CHUNK],
            device: device.exists().then_some(device),
            folder,
        };
        made.flush();
        // This fails without the permission; then the page cache stays warm.
        let _ = fs::write("/proc/sys/vm/drop_caches", "3");
        Ok(made)
    }

    fn flush(&self) {
        if let Ok(folder) = File::open(&self.folder) {
            let _ = rustix::fs::syncfs(folder);
        }
    }

    fn path(&self, dir: DirId, name: u64) -> Result<PathBuf, FsError> {
        let dir = self.dirs.get(dir.0 as usize).ok_or(FsError::NotFound)?;
        Ok(dir.join(format!("{name:x}")))
    }

    fn keep(&mut self, file: File, path: PathBuf) -> FileId {
        let id = self.next;
        self.next += 1;
        self.files.insert(id, (file, path));
        FileId(id)
    }

    fn file(&self, file: FileId) -> Result<&File, FsError> {
        self.files
            .get(&file.0)
            .map(|f| &f.0)
            .ok_or(FsError::NotFound)
    }
}

impl Drop for RealFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn refused(error: &io::Error) -> FsError {
    match error.kind() {
        ErrorKind::NotFound => FsError::NotFound,
        ErrorKind::AlreadyExists => FsError::Exists,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FsError::NoSpace,
        _ => FsError::Io,
    }
}

impl Files for RealFiles {
    fn now(&self) -> SimTime {
        SimTime::from_nanos(self.clock.mono().0 - self.start.0)
    }

    fn advance(&mut self, _span: SimTime) {}

    fn root(&self) -> DirId {
        DirId(0)
    }

    fn mkdir(&mut self, parent: DirId, name: u64) -> Result<DirId, FsError> {
        let path = self.path(parent, name)?.with_extension("d");
        fs::create_dir(&path).map_err(|e| refused(&e))?;
        self.dirs.push(path);
        Ok(DirId(self.dirs.len() as u32 - 1))
    }

    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        let path = self.path(dir, name)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(&path).map_err(|e| refused(&e))?;
        Ok(self.keep(file, path))
    }

    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        let path = self.path(dir, name)?;
        let file = File::open(&path).map_err(|e| refused(&e))?;
        Ok(self.keep(file, path))
    }

    fn close(&mut self, file: FileId) {
        self.files.remove(&file.0);
    }

    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        let mut buffer = std::mem::take(&mut self.chunk);
        let mut done = 0;
        let result = loop {
            let want = (len - done).min(CHUNK as u64) as usize;
            if want == 0 {
                break Ok(done);
            }
            let got = self.file(file).and_then(|f| {
                f.read_at(&mut buffer[..want], offset + done)
                    .map_err(|e| refused(&e))
            });
            match got {
                Ok(0) => break Ok(done),
                Ok(n) => done += n as u64,
                Err(error) => break Err(error),
            }
        };
        self.chunk = buffer;
        result
    }

    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        let target = self.file(file)?;
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(CHUNK as u64);
            target
                .write_all_at(&self.chunk[..piece as usize], offset + done)
                .map_err(|e| refused(&e))?;
            done += piece;
        }
        Ok(())
    }

    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError> {
        let path = self.path(dir, name)?;
        fs::remove_file(&path).map_err(|e| refused(&e))
    }

    fn fsync(&mut self, file: FileId) -> Result<(), FsError> {
        self.file(file)?.sync_all().map_err(|e| refused(&e))
    }

    fn sync(&mut self) {
        self.flush();
    }

    fn size(&self, file: FileId) -> u64 {
        let about = self.file(file).ok().and_then(|f| f.metadata().ok());
        about.map_or(0, |m| m.len())
    }

    fn counters(&self) -> FsCounters {
        let mut counters = FsCounters::default();
        let text = self
            .device
            .as_ref()
            .and_then(|d| fs::read_to_string(d).ok());
        let text = text.unwrap_or_default();
        let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
        if let [reads, _, read_sectors, _, writes, _, written_sectors, ..] = numbers[..] {
            let data = IoKind::Data as usize;
            (counters.reads[data], counters.writes[data]) = (reads, writes);
            counters.drive.read_bytes = read_sectors * 512;
            counters.drive.written_bytes = written_sectors * 512;
        }
        counters.cpu = cpu();
        counters
    }
}

/// Processor time of this process so far. The kernel counts it in hundredths of a second.
fn cpu() -> SimTime {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, which is in parentheses, may contain spaces. User and system time are fields 14 and
    // 15.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(11).take(2);
    let sum: u64 = ticks.flat_map(str::parse::<u64>).sum();
    SimTime::from_nanos(sum * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        layout::{LayoutSpec, spec::LayoutSizes},
        levels::{Levels, LevelsConfig},
        run::Workload,
    };

    #[test]
    fn every_layout_runs_on_real_files_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut levels = Levels::new(LevelsConfig::lru(1 << 18, 2 << 20));
        let mut ops = Vec::new();
        for request in Workload::dec(3_000).open(1).unwrap() {
            levels.request(&request.unwrap(), &mut ops);
        }
        for spec in LayoutSpec::PUBLISHED {
            let files = RealFiles::new(place.path()).unwrap();
            let mut layout = spec.build(files, LayoutSizes::of(4 << 20), &[]).unwrap();
            for op in &ops {
                let done = layout.apply(op);
                assert!(done.is_ok(), "{spec}: {op:?} {done:?}");
            }
            layout.finish().unwrap();
            assert_eq!(layout.stats().objects, levels.disk_objects() as u64);
            assert!(fs::read_dir(place.path()).unwrap().count() == 1);
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn refusals_are_those_of_the_model() {
        let place = tempfile::tempdir().unwrap();
        let mut files = RealFiles::new(place.path()).unwrap();
        let file = files.create(files.root(), 1).unwrap();
        assert_eq!(files.create(files.root(), 1), Err(FsError::Exists));
        assert_eq!(files.open(files.root(), 2), Err(FsError::NotFound));
        files.write(file, 4096, 3 << 20).unwrap();
        assert_eq!(files.size(file), (3 << 20) + 4096);
        assert_eq!(files.read(file, 1 << 20, 9 << 20), Ok((2 << 20) + 4096));
        files.close(file);
        assert_eq!(files.read(file, 0, 1), Err(FsError::NotFound));
        files.delete(files.root(), 1).unwrap();
        assert_eq!(files.delete(files.root(), 1), Err(FsError::NotFound));
    }
}
