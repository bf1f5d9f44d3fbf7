//! Tests of whole file systems: the published create and delete times, and each rule.

mod rules;
mod storm;

use super::*;
use crate::model::{Drive, Op, SimTime};

fn fs(config: FsConfig) -> Ufs {
    Ufs::new(Drive::named("st15150wc").unwrap(), config)
}

fn ufs() -> Ufs {
    fs(FsConfig::ufs(64 << 20))
}

/// Runs the benchmark lat_fs (create and delete files) in 40 cylinder groups and returns the mean times. The
/// times depend on the angle between inode block and directory block. This angle is the same for all files of
/// a directory, so the mean is over several directories.
fn hbench(kb: u64, order: DeleteOrder) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for place in 0..40u64 {
        let mut fs = ufs();
        let root = fs.root();
        let dirs: Vec<_> = (0..=place)
            .map(|name| fs.mkdir(root, name).unwrap())
            .collect();
        let row = lat_fs(&mut fs, dirs[place as usize], kb << 10, 64, 3, order).unwrap();
        sums = (sums.0 + row.create_ms / 40.0, sums.1 + row.delete_ms / 40.0);
    }
    sums
}

fn written(fs: &Ufs, kind: IoKind) -> u64 {
    fs.counters().of(kind, Op::Write)
}

#[test]
fn lat_fs_is_near_the_published_times() {
    let rows: Vec<_> = (0..=10)
        .map(|kb| hbench(kb, DeleteOrder::Reverse))
        .collect();
    for (kb, (create, delete)) in rows.iter().enumerate() {
        println!("{kb} KB: create {create:.1} ms, delete {delete:.1} ms");
    }
    let (empty, four, ten) = (rows[0], rows[4], rows[10]);
    assert!(
        (20.0..27.0).contains(&empty.0),
        "at least 20 ms even if empty: {}",
        empty.0
    );
    assert!(
        (30.0..45.0).contains(&ten.0),
        "about 40 ms at 10 KB: {}",
        ten.0
    );
    assert!(
        rows.iter().all(|r| (10.0..26.0).contains(&r.1)),
        "10 to 20 ms, or more than 20"
    );
    let pair = four.0 + four.1;
    assert!((45.0..56.0).contains(&pair), "about 50 ms for 4 KB: {pair}");
    let forward = hbench(4, DeleteOrder::Forward);
    assert!(
        (forward.1 / four.1 - 1.0).abs() < 0.2,
        "the order matters little: {forward:?}"
    );
}

#[test]
fn sequential_writes_reach_the_measured_rate() {
    let rate = |max_contig| {
        let mut fs = fs(FsConfig {
            max_contig,
            ..FsConfig::ufs(64 << 20)
        });
        let root = fs.root();
        let file = fs.create(root, 1).unwrap();
        let start = fs.now();
        for i in 0..16_384u64 {
            fs.write(file, i * 8_192, 8_192).unwrap();
        }
        fs.fsync(file).unwrap();
        134.2 / (fs.now() - start).as_secs()
    };
    let measured = rate(16);
    assert!((measured / 4.7 - 1.0).abs() < 0.05, "{measured}");
    assert!(rate(7) < 3.7);
}

#[test]
fn a_part_of_a_page_that_is_not_in_memory_is_read_first() {
    let mut fs = ufs();
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    for i in 0..16_384u64 {
        fs.write(file, i * 8_192, 8_192).unwrap();
    }
    fs.sync();
    let before = fs.counters();
    assert_eq!(before.read_modify_writes, 0);
    fs.write(file, 8_192, 8_192).unwrap();
    assert_eq!(
        fs.counters().of(IoKind::Data, Op::Read),
        0,
        "a whole page needs no read"
    );
    fs.write(file, 20 * 8_192 + 512, 1_024).unwrap();
    fs.write(file, 20 * 8_192 + 4_096, 1_024).unwrap();
    let after = fs.counters();
    assert_eq!(
        (after.read_modify_writes, after.of(IoKind::Data, Op::Read)),
        (1, 1)
    );
    assert!(after.waiting > before.waiting);
}

#[test]
fn the_page_cache_keeps_what_was_used_last() {
    let mut fs = ufs();
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    for i in 0..8 * 1_024u64 {
        fs.write(file, i * 8_192, 8_192).unwrap();
    }
    fs.sync();
    let reads = |fs: &Ufs| fs.counters().of(IoKind::Data, Op::Read);
    assert_eq!(
        fs.read(file, (8 * 1_024 - 1) * 8_192, 10_000).unwrap(),
        8_192
    );
    assert_eq!(reads(&fs), 0);
    for i in 0..16 * 1_024u64 {
        fs.write(file, (i + 10_000) * 8_192, 8_192).unwrap();
    }
    fs.read(file, 0, 8_192).unwrap();
    assert_eq!(reads(&fs), 1);
}

#[test]
fn small_files_are_read_by_one_request_and_runs_by_growing_ones() {
    let mut fs = ufs();
    let root = fs.root();
    let small = fs.create(root, 1).unwrap();
    fs.write(small, 0, 60_000).unwrap();
    let large = fs.create(root, 2).unwrap();
    for i in 0..16_384u64 {
        fs.write(large, i * 8_192, 8_192).unwrap();
    }
    fs.sync();
    let reads = |fs: &Ufs| fs.counters().of(IoKind::Data, Op::Read);
    fs.read(small, 0, 60_000).unwrap();
    assert!(
        reads(&fs) <= 2,
        "blocks, and perhaps a tail elsewhere: {}",
        reads(&fs)
    );
    let before = reads(&fs);
    fs.read(large, 4 << 20, 1 << 20).unwrap();
    let requests = reads(&fs) - before;
    assert!((8..24).contains(&requests), "{requests}");
    let before = reads(&fs);
    fs.read(large, 33 << 20, 8_192).unwrap();
    fs.read(large, 22 << 20, 8_192).unwrap();
    assert_eq!(reads(&fs) - before, 2);
}

#[test]
fn metadata_modes_differ_in_what_a_process_waits_for() {
    let run = |config: FsConfig| {
        let mut fs = fs(config);
        let root = fs.root();
        for name in 0..500u64 {
            let file = fs.create(root, name).unwrap();
            fs.write(file, 0, 5_000).unwrap();
            fs.close(file);
            if name >= 100 {
                fs.delete(root, name - 100).unwrap();
            }
        }
        let spent = fs.now();
        fs.sync();
        (spent.as_millis() / 500.0, fs.counters())
    };
    let pages = 64 << 20;
    let (sync_ms, sync) = run(FsConfig::ufs(pages));
    let (async_ms, lazy) = run(FsConfig::ffs_async(pages));
    let (soft_ms, soft) = run(FsConfig::ffs_soft(pages));
    let (log_ms, log) = run(FsConfig::xfs(pages));
    println!("sync {sync_ms:.2} async {async_ms:.2} soft {soft_ms:.2} log {log_ms:.2} ms");
    assert!(async_ms < soft_ms + 0.5 && soft_ms < log_ms && log_ms < sync_ms);
    assert!(lazy.requests() < soft.requests() && soft.requests() < sync.requests());
    assert!(sync.waited >= 2 * 900 && lazy.waited < 50);
    let logged = log.of(IoKind::Log, Op::Write);
    assert!(
        (900..=1_500).contains(&logged),
        "creates and deletes: {logged}"
    );
}

#[test]
fn the_textbook_file_system_waits_twice_for_a_create_and_twice_for_a_delete() {
    let mut fs = fs(FsConfig::ffs_sync(64 << 20));
    let root = fs.root();
    // After the first file, the directory's block and the inodes' block are in memory.
    fs.create(root, 0).unwrap();
    let waited = |fs: &Ufs, before: &FsCounters| {
        let now = fs.counters();
        let kind = |kind| now.of(kind, Op::Write) - before.of(kind, Op::Write);
        (
            now.waited - before.waited,
            kind(IoKind::Inode),
            kind(IoKind::Directory),
        )
    };
    let before = fs.counters();
    let file = fs.create(root, 1).unwrap();
    assert_eq!(waited(&fs, &before), (2, 1, 1));
    fs.write(file, 0, 5_000).unwrap();
    fs.close(file);
    let before = fs.counters();
    fs.delete(root, 1).unwrap();
    assert_eq!(waited(&fs, &before), (2, 1, 1));
}

#[test]
fn a_change_of_names_waits_until_its_log_record_is_on_the_medium() {
    // This drive uses its write cache, in which a write is done in a fraction of a revolution. A log write
    // bypasses the cache, so it takes longer.
    let drive = Drive::named("st118202fc").unwrap();
    let revolution = drive.revolution();
    let mut fs = Ufs::new(drive, FsConfig::xfs(64 << 20));
    let root = fs.root();
    fs.create(root, 0).unwrap();
    let begin = fs.now();
    for name in 1..=50 {
        fs.create(root, name).unwrap();
    }
    let each = (fs.now() - begin).as_millis() / 50.0;
    assert!(each > 0.4 * revolution.as_millis(), "{each} ms");
}

#[test]
fn a_create_waits_for_inode_directory_and_its_inode() {
    let mut fs = ufs();
    let root = fs.root();
    fs.create(root, 0).unwrap();
    let before = fs.counters();
    fs.create(root, 1).unwrap();
    let after = fs.counters();
    assert_eq!(after.waited - before.waited, 3);
    assert_eq!(
        after.of(IoKind::Inode, Op::Write) - before.of(IoKind::Inode, Op::Write),
        2
    );
    assert_eq!(
        after.of(IoKind::Directory, Op::Write) - before.of(IoKind::Directory, Op::Write),
        1
    );
}

#[test]
fn the_daemon_writes_what_is_old_and_nothing_else() {
    let mut fs = fs(FsConfig {
        flush_on_close: false,
        ..FsConfig::ufs(64 << 20)
    });
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    fs.write(file, 0, 5_000).unwrap();
    fs.close(file);
    assert_eq!(written(&fs, IoKind::Data), 0);
    let maps = written(&fs, IoKind::Bitmap);
    for _ in 0..14 {
        fs.advance(SimTime::from_secs(5.0));
    }
    assert_eq!(written(&fs, IoKind::Data), 1);
    assert!(written(&fs, IoKind::Bitmap) > maps);
    let settled = fs.counters().requests();
    for _ in 0..14 {
        fs.advance(SimTime::from_secs(5.0));
    }
    assert_eq!(fs.counters().requests(), settled);
    // A read makes the inode dirty, because its access time changes.
    let inodes = written(&fs, IoKind::Inode);
    let file = fs.open(root, 1).unwrap();
    fs.read(file, 0, 100).unwrap();
    for _ in 0..14 {
        fs.advance(SimTime::from_secs(5.0));
    }
    assert_eq!(written(&fs, IoKind::Inode) - inodes, 1);
}

#[test]
fn large_directories_cost_scans_and_the_name_cache_saves_them() {
    let mut fs = fs(FsConfig {
        name_cache: 100,
        entry_cpu: SimTime::from_nanos(250),
        ..FsConfig::ffs_async(64 << 20)
    });
    let root = fs.root();
    let time = |fs: &mut Ufs, name: u64| {
        let before = fs.now();
        let file = fs.create(root, name).unwrap();
        fs.close(file);
        (fs.now() - before).as_millis()
    };
    time(&mut fs, 0);
    let early = time(&mut fs, 1);
    for name in 2..50_000 {
        time(&mut fs, name);
    }
    let late = time(&mut fs, 50_000);
    assert!(late > early + 20.0, "{early} {late}");
    let before = fs.counters();
    fs.open(root, 50_000).unwrap();
    fs.open(root, 2).unwrap();
    let after = fs.counters();
    assert_eq!(
        (
            after.name_hits - before.name_hits,
            after.name_misses - before.name_misses
        ),
        (1, 1)
    );
    // A scan of a directory reads up to the entry with the requested name.
    let mut cost = |name: u64| {
        let before = fs.now();
        fs.open(root, name).unwrap();
        (fs.now() - before).as_millis()
    };
    let (near, far) = (cost(3), cost(40_000));
    assert!(near < 1.0 && far > 9.0, "{near} {far}");
}

#[test]
fn mappings_read_before_they_write_and_write_late() {
    let mut fs = fs(FsConfig {
        flush_on_close: false,
        ..FsConfig::ufs(16 << 20)
    });
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    for i in 0..4_096u64 {
        fs.write(file, i * 8_192, 8_192).unwrap();
    }
    fs.sync();
    let before = fs.counters();
    fs.map_write(file, 0, 8_192).unwrap();
    let after = fs.counters();
    assert_eq!(
        after.of(IoKind::Data, Op::Read) - before.of(IoKind::Data, Op::Read),
        1
    );
    assert_eq!(
        after.of(IoKind::Data, Op::Write),
        before.of(IoKind::Data, Op::Write)
    );
    assert_eq!(
        fs.map_write(file, 4_096 * 8_192, 1),
        Err(FsError::OutOfRange)
    );
    assert_eq!(fs.map_read(file, 4_096 * 8_192 - 10, 100), Ok(10));
    fs.fsync(file).unwrap();
    assert_eq!(
        fs.counters().of(IoKind::Data, Op::Write) - before.of(IoKind::Data, Op::Write),
        1
    );
}

#[test]
fn a_full_file_system_refuses_and_recovers() {
    let mut fs = fs(FsConfig {
        bytes: 64 << 20,
        ..FsConfig::ffs_async(16 << 20)
    });
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    let mut size = 0u64;
    let refused = loop {
        match fs.write(file, size, 65_536) {
            Ok(()) => size += 65_536,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, FsError::NoSpace);
    assert!(size > 45 << 20 && size < 58 << 20, "10 % stay free: {size}");
    fs.delete(root, 1).unwrap();
    assert_eq!(fs.write(file, 0, 1), Err(FsError::NotFound));
    assert_eq!(fs.delete(root, 1), Err(FsError::NotFound));
    let again = fs.create(root, 1).unwrap();
    assert_ne!(again, file);
    assert!(fs.write(again, 0, 40 << 20).is_ok());
    assert_eq!(fs.create(root, 1), Err(FsError::Exists));
    assert_eq!(fs.open(DirId(77), 1), Err(FsError::NotFound));
    // In this model, a write far beyond the end of a file also allocates the hole before the written bytes.
    // There is no space for this hole, so the write is refused before any space is allocated.
    let free = fs.available();
    assert_eq!(fs.write(again, 1 << 40, 1), Err(FsError::NoSpace));
    assert_eq!(fs.write(again, u64::MAX, 1), Err(FsError::OutOfRange));
    assert_eq!((fs.available(), fs.size(again)), (free, 40 << 20));
}

#[test]
fn raw_partitions_are_bounded_and_batches_are_sorted() {
    let drive = Drive::named("st15150wc").unwrap();
    let mut raw = Raw::partition(drive, crate::model::Schedule::CLook, 1 << 30, 1 << 30);
    assert_eq!(raw.read((1 << 30) - 512, 1_024), Err(FsError::OutOfRange));
    assert_eq!(raw.read(u64::MAX, 2), Err(FsError::OutOfRange));
    raw.write(512 << 20, 65_536).unwrap();
    assert_eq!(raw.head(), (512 << 20) + 65_536);
    let far: Vec<_> = (0..16u64).map(|i| ((i * 7 % 16) << 26, 8_192)).collect();
    let together = raw.read_batch(&far).unwrap();
    let apart: SimTime = far
        .iter()
        .map(|(at, len)| raw.read(at + 16_384, *len).unwrap())
        .sum();
    assert!(
        together.as_secs() * 1.15 < apart.as_secs(),
        "{together} {apart}"
    );
    raw.write_behind(0, 8_192).unwrap();
    assert!(raw.flush() > SimTime::ZERO);
    assert_eq!(raw.counters().requests(), 34);
}
