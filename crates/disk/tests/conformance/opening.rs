//! Tests of opening files: every refusal has its own kind of error that names the path, and leaves no file
//! behind.

use crate::folder;
use foxy_disk::{Backend, Direct, Disk, DiskError, FileDisk, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn sized(len: u64) -> OpenOptions {
    OpenOptions {
        create_len: Some(len),
        ..OpenOptions::default()
    }
}

fn refusal(path: &Path, options: &OpenOptions) -> DiskError {
    let error = FileDisk::open(path, options).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    error
}

#[test]
fn what_is_missing() {
    let folder = folder();
    let path = folder.path().join("store");
    assert!(matches!(
        refusal(&path, &OpenOptions::default()),
        DiskError::NotFound { .. }
    ));
    let deep = folder.path().join("no/such/store");
    assert!(matches!(
        refusal(&deep, &sized(8192)),
        DiskError::NoFolder { .. }
    ));
    let read_only = OpenOptions {
        read_only: true,
        ..sized(8192)
    };
    assert!(matches!(
        refusal(&path, &read_only),
        DiskError::NotFound { .. }
    ));
    assert!(!path.exists());
}

#[test]
fn what_is_no_file() {
    let folder = folder();
    let error = refusal(folder.path(), &sized(8192));
    assert!(matches!(
        error,
        DiskError::WrongKind {
            found: "directory",
            ..
        }
    ));
    let error = refusal(Path::new("/dev/null"), &sized(8192));
    assert!(matches!(
        error,
        DiskError::WrongKind {
            found: "character device",
            ..
        }
    ));
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = refusal(&socket, &sized(8192));
    assert!(matches!(
        error,
        DiskError::WrongKind {
            found: "socket",
            ..
        }
    ));
    let under_file = folder.path().join("socket/store");
    assert!(matches!(
        refusal(&under_file, &sized(1)),
        DiskError::NotFound { .. }
    ));
}

#[test]
fn one_at_a_time() {
    let folder = folder();
    let path = folder.path().join("store");
    let disk = FileDisk::open(&path, &sized(1 << 20)).unwrap();
    assert!(disk.report().created);
    assert!(matches!(
        refusal(&path, &sized(1 << 20)),
        DiskError::InUse { .. }
    ));
    let reading = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    assert!(matches!(refusal(&path, &reading), DiskError::InUse { .. }));
    let looking = OpenOptions {
        lock: false,
        ..reading.clone()
    };
    let onlooker = FileDisk::open(&path, &looking).unwrap();
    assert_eq!(onlooker.len(), 1 << 20);
    onlooker.write_at(0, &[0; 4096]).unwrap_err();
    // The lock is held until the last queue is dropped.
    let queue = disk.open_queue(4).unwrap();
    drop(disk);
    assert!(matches!(
        refusal(&path, &sized(1 << 20)),
        DiskError::InUse { .. }
    ));
    drop(queue);
    let again = FileDisk::open(&path, &sized(1 << 20)).unwrap();
    assert!(!again.report().created);
    drop(again);
    let (one, two) = (
        FileDisk::open(&path, &reading),
        FileDisk::open(&path, &reading),
    );
    assert!(one.is_ok() && two.is_ok(), "readers may be several");
}

#[test]
fn no_space_leaves_no_file() {
    let folder = folder();
    let path = folder.path().join("store");
    let wanted = 1 << 50;
    match refusal(&path, &sized(wanted)) {
        DiskError::NoSpace { wanted: w, .. } | DiskError::TooLarge { wanted: w, .. } => {
            assert_eq!(w, wanted);
        }
        other => panic!("{other}"),
    }
    assert!(!path.exists());
    std::fs::write(&path, [1; 10_000]).unwrap();
    refusal(&path, &sized(wanted));
    assert_eq!(std::fs::read(&path).unwrap(), [1; 10_000]);
}

#[test]
fn lengths() {
    let folder = folder();
    let path = folder.path().join("store");
    std::fs::write(&path, [7; 10_000]).unwrap();
    // No length is wanted, so the file is used with its present length, rounded down to blocks.
    let disk = FileDisk::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(
        disk.len(),
        10_000 / u64::from(disk.block_bytes()) * u64::from(disk.block_bytes())
    );
    drop(disk);
    let disk = FileDisk::open(&path, &sized(65_536)).unwrap();
    assert_eq!((disk.len(), disk.report().created), (65_536, false));
    let mut head = [0; 12_000];
    disk.read_at(0, &mut head).unwrap();
    assert!(head[..10_000].iter().all(|b| *b == 7) && head[10_000..].iter().all(|b| *b == 0));
    drop(disk);
    let disk = FileDisk::open(&path, &sized(4096)).unwrap();
    assert_eq!(disk.len(), 65_536, "a longer file is not cut");
}

#[test]
fn space_is_reserved() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder();
    let path = folder.path().join("store");
    let disk = FileDisk::open(&path, &sized(8 << 20)).unwrap();
    let blocks = std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(
        disk.report().sparse || blocks >= 8 << 20,
        "{blocks} bytes reserved"
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may not read what is cached");
}

#[test]
fn choices_are_reported() {
    let folder = folder();
    let path = folder.path().join("store");
    let forced = OpenOptions {
        backend: Backend::Pool,
        direct: Direct::No,
        ..sized(1 << 20)
    };
    let disk = FileDisk::open(&path, &forced).unwrap();
    let report = disk.report().clone();
    assert!(!report.ring && report.ring_refused.is_none());
    assert!(!report.direct && report.direct_refused.is_none());
    assert!(disk.describe().contains("buffered") && disk.describe().contains("thread pool"));
    drop(disk);
    let disk = FileDisk::open(&path, &OpenOptions::default()).unwrap();
    let report = disk.report();
    assert_eq!(report.ring, report.ring_refused.is_none());
    assert_eq!(report.direct, report.direct_refused.is_none());
    assert_eq!(report.block_bytes, disk.block_bytes());
}

#[test]
fn a_file_cut_short_behind_our_back_reads_as_its_end() {
    let folder = folder();
    let path = folder.path().join("store");
    for backend in [Backend::Auto, Backend::Pool] {
        let options = OpenOptions {
            backend,
            ..sized(1 << 20)
        };
        let disk = FileDisk::open(&path, &options).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(512 << 10)
            .unwrap();
        let mut queue = disk.open_queue(4).unwrap();
        let buf = foxy_disk::AlignedBuf::new(64 << 10);
        // Only the first half of the range exists. The queue continues the short transfer, and then reaches
        // the end of the file.
        queue.submit(foxy_disk::Op::read(
            1,
            (512 << 10) - (32 << 10),
            64 << 10,
            buf,
        ));
        let done = crate::finish(&mut *queue, 1).remove(0);
        assert_eq!(
            done.result.unwrap_err().kind(),
            std::io::ErrorKind::UnexpectedEof
        );
        assert_eq!(done.buf.unwrap().len(), 0);
        drop((queue, disk));
        std::fs::remove_file(&path).unwrap();
    }
}
