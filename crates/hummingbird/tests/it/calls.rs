//! Tests of each call of the library.

use foxy_hummingbird::{Error, MAX_NAME_BYTES};

use super::harness::{Harness, config};

const DISK: u64 = 4 << 20;

#[test]
fn a_file_is_read_as_it_was_written_from_memory_and_from_the_disk() {
    let mut harness = Harness::new(DISK, config());
    // Names and contents may be any bytes.
    let name = b"http://a/\0\xff";
    assert_eq!(
        harness.fs.write_file(name, &b"zero \0 one"[..]).unwrap(),
        10
    );
    let file = harness.fs.read_file(name).unwrap();
    assert!(file.from_memory());
    assert_eq!(&*file, b"zero \0 one");
    let again = harness.restart();
    let file = again.fs.read_file(name).unwrap();
    assert!(!file.from_memory());
    assert_eq!(&*file, b"zero \0 one");
    assert!(again.fs.read_file(name).unwrap().from_memory());
}

#[test]
fn a_write_replaces_and_readers_keep_what_they_were_lent() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", &b"older"[..]).unwrap();
    harness.checkpoint();
    let file = harness.fs.read_file(b"a").unwrap();
    harness.fs.write_file(b"a", &b"newer"[..]).unwrap();
    assert_eq!(&*file, b"older");
    assert_eq!(harness.read(b"a").unwrap(), b"newer");
    let again = harness.restart();
    assert_eq!(again.read(b"a").unwrap(), b"newer");
}

#[test]
fn an_empty_file_is_a_file() {
    let mut harness = Harness::new(DISK, config());
    assert_eq!(harness.fs.write_file(b"empty", Vec::new()).unwrap(), 0);
    assert_eq!(harness.read(b"empty").unwrap(), b"");
    assert_eq!(harness.restart().read(b"empty").unwrap(), b"");
}

#[test]
fn a_deletion_waits_for_no_reader_and_is_refused_while_there_is_one() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", &b"1"[..]).unwrap();
    let first = harness.fs.read_file(b"a").unwrap();
    let second = harness.fs.read_file(b"a").unwrap();
    assert_eq!(harness.fs.statistics().read_now, 1);
    assert!(matches!(harness.fs.delete_file(b"a"), Err(Error::Busy)));
    drop(first);
    assert!(matches!(harness.fs.delete_file(b"a"), Err(Error::Busy)));
    drop(second);
    harness.fs.delete_file(b"a").unwrap();
    assert!(matches!(harness.fs.read_file(b"a"), Err(Error::NotFound)));
    assert!(matches!(harness.fs.delete_file(b"a"), Err(Error::NotFound)));
    assert_eq!(harness.fs.statistics().read_now, 0);
    assert!(harness.restart().read(b"a").is_none());
}

#[test]
fn a_deleted_file_on_disk_does_not_come_back() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", &b"1"[..]).unwrap();
    harness.checkpoint();
    harness.fs.delete_file(b"a").unwrap();
    // The program crashes right after the deletion, before anything else is written.
    assert!(harness.crash(foxy_disk::Keep::All).read(b"a").is_none());
    harness.checkpoint();
    assert!(harness.crash(foxy_disk::Keep::Nothing).read(b"a").is_none());
}

#[test]
fn files_past_memory_take_no_place_there() {
    let mut harness = Harness::new(DISK, config());
    let usual = harness.fs.statistics().memory_bytes;
    harness.fs.write_nomem_file(b"a", vec![b'a'; 3000]).unwrap();
    // The file is found even before it is packed.
    assert_eq!(harness.read(b"a").unwrap(), vec![b'a'; 3000]);
    harness.checkpoint();
    for _ in 0..2 {
        let file = harness.fs.read_file(b"a").unwrap();
        assert!(!file.from_memory());
        assert_eq!(&*file, &vec![b'a'; 3000][..]);
        assert_eq!(harness.fs.statistics().memory_bytes, usual);
    }
    // The record on disk states that the file must not be kept in memory, so this is still true after a
    // restart.
    let again = harness.restart();
    for _ in 0..2 {
        assert!(!again.fs.read_file(b"a").unwrap().from_memory());
    }
}

#[test]
fn a_read_past_memory_brings_nothing_there() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", vec![b'a'; 3000]).unwrap();
    let again = harness.restart();
    for _ in 0..2 {
        assert!(!again.fs.read_nomem_file(b"a").unwrap().from_memory());
    }
    assert!(!again.fs.read_file(b"a").unwrap().from_memory());
    assert!(again.fs.read_nomem_file(b"a").unwrap().from_memory());
}

#[test]
fn names_are_one_to_32768_bytes() {
    let harness = Harness::new(DISK, config());
    let long = vec![b'n'; MAX_NAME_BYTES + 1];
    for name in [&b""[..], &long] {
        let fs = &harness.fs;
        assert!(matches!(fs.write_file(name, vec![1]), Err(Error::Name)));
        assert!(matches!(
            fs.write_nomem_file(name, vec![1]),
            Err(Error::Name)
        ));
        assert!(matches!(
            fs.write_file_beside(b"a", vec![1], name),
            Err(Error::Name)
        ));
        assert!(matches!(fs.read_file(name), Err(Error::Name)));
        assert!(matches!(fs.read_nomem_file(name), Err(Error::Name)));
        assert!(matches!(fs.delete_file(name), Err(Error::Name)));
        assert!(matches!(fs.collocate_files(name, b"a"), Err(Error::Name)));
        assert!(matches!(fs.collocate_files(b"a", name), Err(Error::Name)));
    }
    let longest = vec![b'n'; MAX_NAME_BYTES];
    harness.fs.write_file(&longest, &b"x"[..]).unwrap();
    assert_eq!(harness.read(&longest).unwrap(), b"x");
}

#[test]
fn knobs_out_of_range_are_named() {
    let mut bad = config();
    bad.memory_bytes = 1 << 20;
    let error = foxy_hummingbird::Hummingbird::open(&bad).unwrap_err();
    assert_eq!(error.code(), -8);
    assert!(error.to_string().contains("memory_bytes"), "{error}");
    bad = config();
    bad.cluster_bytes = 1 << 20;
    let error = foxy_hummingbird::Hummingbird::open(&bad).unwrap_err();
    assert!(error.to_string().contains("cluster_bytes"), "{error}");
    bad = config();
    bad.disks.clear();
    let error = foxy_hummingbird::Hummingbird::open(&bad).unwrap_err();
    assert!(error.to_string().contains("disks"), "{error}");
}

#[test]
fn statistics_count_what_happened() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", vec![0; 5000]).unwrap();
    harness.fs.write_file(b"b", vec![0; 5000]).unwrap();
    let s = harness.fs.statistics();
    assert_eq!((s.writes, s.stored_bytes), (2, 0));
    assert!(s.waiting_bytes >= 10_000, "{s:?}");
    harness.checkpoint();
    drop(harness.fs.read_file(b"a"));
    drop(harness.fs.read_file(b"none"));
    harness.fs.delete_file(b"b").unwrap();
    let s = harness.fs.statistics();
    assert_eq!((s.memory_hits, s.disk_hits, s.misses), (1, 0, 1));
    assert_eq!((s.deletes, s.waiting_bytes, s.failed_disks), (1, 0, 0));
    // Four bytes of each record state that there are no header fields.
    assert_eq!(s.stored_bytes, 10_002 + 2 * 4);
    assert!(
        s.device_bytes > s.stored_bytes && s.device_writes > 0,
        "{s:?}"
    );
    assert_eq!((s.disk_files, s.recovering), (1, false));
    let again = harness.restart();
    drop(again.fs.read_file(b"a"));
    assert_eq!(again.fs.statistics().disk_hits, 1);
}
