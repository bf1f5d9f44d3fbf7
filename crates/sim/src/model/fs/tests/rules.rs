//! Tests of single rules whose effects are not visible in a complete run.

use super::{super::*, fs, ufs, written};
use crate::model::{Op, SimTime};

#[test]
fn sequential_writes_are_gathered_into_clusters() {
    let mut fs = ufs();
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    for i in 0..8 * 1_024u64 {
        fs.write(file, i * 1_024, 1_024).unwrap();
    }
    fs.fsync(file).unwrap();
    // 8 MB are written in pieces of 128 KB; an indirect block may split one of these pieces.
    assert!(
        (64..=66).contains(&written(&fs, IoKind::Data)),
        "{}",
        written(&fs, IoKind::Data)
    );
    assert_eq!(fs.counters().written_bytes[IoKind::Data as usize], 8 << 20);
}

#[test]
fn a_writer_waits_when_too_much_of_its_file_is_queued() {
    let ahead = |high: u64| {
        let config = FsConfig {
            write_high: high,
            write_low: high / 2,
            ..FsConfig::ufs(256 << 20)
        };
        let mut fs = fs(config);
        let root = fs.root();
        let file = fs.create(root, 1).unwrap();
        for i in 0..500u64 {
            fs.write(file, i * 8_192, 8_192).unwrap();
        }
        let before = fs.now();
        fs.fsync(file).unwrap();
        (fs.now() - before).as_secs()
    };
    assert!(ahead(384 << 10) < 0.3, "{}", ahead(384 << 10));
    assert!(
        ahead(1 << 40) > 0.6,
        "the writer would be far ahead of the drive"
    );
}

#[test]
fn large_files_leave_a_group_before_it_is_full() {
    let mut fs = ufs();
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    for i in 0..2_400u64 {
        fs.write(file, i * 8_192, 8_192).unwrap();
    }
    let group = |page: u64| fs.place(file, page * 8_192).unwrap() / fs.config().group;
    assert_eq!(group(0), group(575));
    assert_eq!(group(576), group(0) + 1);
    assert_eq!(group(2_399), group(0) + 4);
    assert_eq!(fs.place(file, 2_400 * 8_192), None);
}

#[test]
fn a_file_that_is_deleted_soon_is_never_written() {
    let mut fs = fs(FsConfig {
        flush_on_close: false,
        ..FsConfig::ffs_async(64 << 20)
    });
    let root = fs.root();
    for name in 0..50 {
        let file = fs.create(root, name).unwrap();
        fs.write(file, 0, 5_000).unwrap();
        fs.close(file);
        fs.delete(root, name).unwrap();
    }
    fs.sync();
    assert_eq!(written(&fs, IoKind::Data), 0);
    assert!(fs.counters().requests() < 20, "{:?}", fs.counters());
}

#[test]
fn the_log_is_written_in_order_in_the_middle_of_the_partition() {
    let mut fs = fs(FsConfig::xfs(64 << 20));
    let root = fs.root();
    fs.create(root, 0).unwrap();
    fs.drive_mut().stats_mut().record(1_000);
    for name in 1..100 {
        fs.create(root, name).unwrap();
    }
    let counters = fs.counters();
    let log: Vec<_> = counters
        .drive
        .trace
        .iter()
        .filter(|t| t.op == Op::Write && t.len == 2_048)
        .collect();
    assert_eq!(log.len(), 99);
    let capacity = fs.drive_mut().capacity();
    assert!(
        log.iter()
            .all(|t| t.at > capacity / 3 && t.at < capacity / 3 * 2)
    );
    assert!(log.windows(2).all(|pair| pair[1].at == pair[0].at + 4_096));
}

#[test]
fn pages_under_memory_pressure_are_written_before_they_leave() {
    let config = FsConfig {
        max_contig: 1_000,
        write_high: u64::MAX,
        ..FsConfig::ffs_async(1 << 20)
    };
    let mut fs = fs(config);
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    // Write-behind collects only full pages, and these writes cover only parts of pages. So only a lack of
    // memory starts their writes to the drive.
    for i in 0..512u64 {
        fs.write(file, i * 8_192, 4_096).unwrap();
    }
    assert!(fs.counters().evicted_dirty >= 1);
    let pages = fs.counters().written_bytes[IoKind::Data as usize] / 8_192;
    assert!(pages >= 512 - 128 - 1, "{pages}");
    fs.sync();
    assert_eq!(
        fs.counters().written_bytes[IoKind::Data as usize],
        512 * 8_192
    );
}

#[test]
fn inodes_and_indirect_blocks_that_left_memory_are_read_again() {
    let config = FsConfig {
        inode_cache: 4,
        block_cache: 16 << 10,
        ..FsConfig::ffs_async(1 << 20)
    };
    let mut fs = fs(config);
    let root = fs.root();
    let dirs: Vec<_> = (0..50).map(|name| fs.mkdir(root, name).unwrap()).collect();
    for dir in &dirs {
        let file = fs.create(*dir, 7).unwrap();
        fs.close(file);
    }
    let before = fs.counters().of(IoKind::Inode, Op::Read);
    fs.open(dirs[0], 7).unwrap();
    assert_eq!(fs.counters().of(IoKind::Inode, Op::Read), before + 1);
    fs.open(dirs[0], 7).unwrap();
    assert_eq!(fs.counters().of(IoKind::Inode, Op::Read), before + 1);

    let large = fs.create(root, 100).unwrap();
    for i in 0..3_000u64 {
        fs.write(large, i * 8_192, 8_192).unwrap();
    }
    let before = fs.counters().of(IoKind::Indirect, Op::Read);
    fs.read(large, 20 * 8_192, 1).unwrap();
    fs.read(large, 2_700 * 8_192, 1).unwrap();
    assert!(fs.counters().of(IoKind::Indirect, Op::Read) >= before + 2);
}

#[test]
fn idle_time_lets_the_drive_catch_up() {
    let mut fs = ufs();
    let root = fs.root();
    let file = fs.create(root, 1).unwrap();
    fs.write(file, 0, 256 << 10).unwrap();
    let mut idle = fs.clone();
    idle.advance(SimTime::from_secs(2.0));
    let spent = |fs: &mut Ufs| {
        let before = fs.now();
        fs.fsync(file).unwrap();
        fs.now() - before
    };
    assert!(spent(&mut idle) < spent(&mut fs));
}

#[test]
fn a_create_looks_through_its_directory_twice_however_long_that_is() {
    let mut fs = ufs();
    let root = fs.root();
    let per_page = fs.config().block / fs.config().name_bytes;
    for pages in 1..=4u64 {
        // The names fill the directory up to the middle of the last page.
        let names = pages * per_page - per_page / 2;
        let dir = fs.mkdir(root, pages).unwrap();
        for name in 0..names {
            let file = fs.create(dir, name).unwrap();
            fs.close(file);
        }
        let before = fs.counters();
        fs.create(dir, names).unwrap();
        let after = fs.counters();
        assert_eq!(after.page_misses, before.page_misses);
        // The hits are the pages of both scans, and the page in which the new name is stored.
        assert_eq!(after.page_hits - before.page_hits, 2 * pages + 1);
    }
}
