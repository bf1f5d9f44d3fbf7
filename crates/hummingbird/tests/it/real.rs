//! Tests on a real file, with the library's own threads.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::Rng;
use foxy_hummingbird::{Config, DiskPath, Error, Hummingbird};

fn small(folder: &std::path::Path) -> Config {
    Config {
        memory_bytes: 8 << 20,
        ..Config::on(folder.join("disk"), 32 << 20)
    }
}

#[test]
fn what_was_closed_is_there_at_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let config = small(folder.path());
    let fs = Hummingbird::open(&config).unwrap();
    for n in 0..500u32 {
        let body = vec![n as u8; 100 + n as usize * 13];
        fs.write_file(&n.to_le_bytes(), body).unwrap();
    }
    assert!(fs.close());
    let fs = Hummingbird::open(&config).unwrap();
    while fs.statistics().recovering {
        std::thread::yield_now();
    }
    for n in 0..500u32 {
        let file = fs.read_file(&n.to_le_bytes()).unwrap();
        assert_eq!(&*file, &vec![n as u8; 100 + n as usize * 13][..]);
    }
    // The file is locked against a second opening while it is open, and unlocked afterwards.
    let second = Hummingbird::open(&config).unwrap_err();
    assert_eq!(second.code(), -6, "{second}");
    drop(fs);
    assert!(Hummingbird::open(&config).unwrap().close());
}

#[test]
fn files_are_spread_over_several_disks() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    config.disks.push(DiskPath {
        path: folder.path().join("second"),
        bytes: Some(32 << 20),
    });
    let fs = Hummingbird::open(&config).unwrap();
    for n in 0..400u32 {
        fs.write_file(&n.to_le_bytes(), vec![n as u8; 5000])
            .unwrap();
    }
    fs.checkpoint().unwrap();
    assert!(fs.close());
    for disk in &config.disks {
        let bytes = std::fs::read(&disk.path).unwrap();
        let found = bytes.chunks(4096).filter(|c| c.iter().any(|b| *b != 0));
        assert!(found.count() > 100, "{}", disk.path.display());
    }
    let fs = Hummingbird::open(&config).unwrap();
    while fs.statistics().recovering {
        std::thread::yield_now();
    }
    let found = (0..400u32).filter(|n| fs.read_file(&n.to_le_bytes()).is_ok());
    assert_eq!(found.count(), 400);
}

/// Four threads write, read, hint and delete the same names. Each file contains its name and a number. The
/// number that a thread reads for a name never becomes smaller.
#[test]
fn threads_may_call_everything_at_once() {
    const NAMES: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let fs = Hummingbird::open(&small(folder.path())).unwrap();
    let numbers = AtomicU64::new(1);
    let body = |name: u64, number: u64| {
        let mut bytes = [name.to_le_bytes(), number.to_le_bytes()].concat();
        bytes.resize(16 + (name * 37 + number) as usize % 9000, number as u8);
        bytes
    };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (fs, numbers) = (fs.clone(), &numbers);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                let mut seen = vec![0; NAMES as usize];
                for _ in 0..4000 {
                    let name = rng.below(NAMES);
                    // Each name has one writer, so that its numbers ascend.
                    let own = name / 4 * 4 + thread;
                    match rng.below(10) {
                        0..4 => {
                            let number = numbers.fetch_add(1, Ordering::Relaxed);
                            let body = body(own, number);
                            let written = if number % 8 == 0 {
                                fs.write_nomem_file(&own.to_le_bytes(), body)
                            } else {
                                fs.write_file(&own.to_le_bytes(), body)
                            };
                            written.unwrap();
                        }
                        4 => {
                            let hint = fs.collocate_files(&own.to_le_bytes(), &name.to_le_bytes());
                            assert!(matches!(hint, Ok(_) | Err(Error::NotFound)), "{hint:?}");
                        }
                        5 => {
                            let gone = fs.delete_file(&own.to_le_bytes());
                            let refused = matches!(gone, Err(Error::NotFound | Error::Busy));
                            assert!(gone.is_ok() || refused, "{gone:?}");
                        }
                        _ => {
                            let Ok(file) = fs.read_file(&name.to_le_bytes()) else {
                                continue;
                            };
                            let word = |at: usize| {
                                u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
                            };
                            let number = word(8);
                            assert_eq!(&*file, &body(name, number)[..]);
                            assert!(number >= seen[name as usize], "an older file");
                            seen[name as usize] = number;
                        }
                    }
                }
            });
        }
    });
    let statistics = fs.statistics();
    assert_eq!(statistics.read_now, 0);
    assert!(statistics.hints_taken > 100, "{statistics:?}");
    fs.checkpoint().unwrap();
    assert!(fs.close());
}
