//! Tests of each call of the library.

use foxy_hummingbird::{Error, MAX_NAME_BYTES};

use super::rig::{Rig, config};

const DISK: u64 = 4 << 20;

#[test]
fn a_file_is_read_as_it_was_written_from_memory_and_from_the_disk() {
    let mut rig = Rig::new(DISK, config());
    // Names and contents may be any bytes.
    let name = b"http://a/\0\xff";
    assert_eq!(rig.fs.write_file(name, &b"zero \0 one"[..]).unwrap(), 10);
    let file = rig.fs.read_file(name).unwrap();
    assert!(file.from_memory());
    assert_eq!(&*file, b"zero \0 one");
    let again = rig.restart();
    let file = again.fs.read_file(name).unwrap();
    assert!(!file.from_memory());
    assert_eq!(&*file, b"zero \0 one");
    assert!(again.fs.read_file(name).unwrap().from_memory());
}

#[test]
fn a_write_replaces_and_readers_keep_what_they_were_lent() {
    let mut rig = Rig::new(DISK, config());
    rig.fs.write_file(b"a", &b"older"[..]).unwrap();
    rig.checkpoint();
    let file = rig.fs.read_file(b"a").unwrap();
    rig.fs.write_file(b"a", &b"newer"[..]).unwrap();
    assert_eq!(&*file, b"older");
    assert_eq!(rig.read(b"a").unwrap(), b"newer");
    let again = rig.restart();
    assert_eq!(again.read(b"a").unwrap(), b"newer");
}

#[test]
fn an_empty_file_is_a_file() {
    let mut rig = Rig::new(DISK, config());
    assert_eq!(rig.fs.write_file(b"empty", Vec::new()).unwrap(), 0);
    assert_eq!(rig.read(b"empty").unwrap(), b"");
    assert_eq!(rig.restart().read(b"empty").unwrap(), b"");
}

#[test]
fn a_deletion_waits_for_no_reader_and_is_refused_while_there_is_one() {
    let mut rig = Rig::new(DISK, config());
    rig.fs.write_file(b"a", &b"1"[..]).unwrap();
    let first = rig.fs.read_file(b"a").unwrap();
    let second = rig.fs.read_file(b"a").unwrap();
    assert_eq!(rig.fs.statistics().read_now, 1);
    assert!(matches!(rig.fs.delete_file(b"a"), Err(Error::Busy)));
    drop(first);
    assert!(matches!(rig.fs.delete_file(b"a"), Err(Error::Busy)));
    drop(second);
    rig.fs.delete_file(b"a").unwrap();
    assert!(matches!(rig.fs.read_file(b"a"), Err(Error::NotFound)));
    assert!(matches!(rig.fs.delete_file(b"a"), Err(Error::NotFound)));
    assert_eq!(rig.fs.statistics().read_now, 0);
    assert!(rig.restart().read(b"a").is_none());
}

#[test]
fn a_deleted_file_on_disk_does_not_come_back() {
    let mut rig = Rig::new(DISK, config());
    rig.fs.write_file(b"a", &b"1"[..]).unwrap();
    rig.checkpoint();
    rig.fs.delete_file(b"a").unwrap();
    // The program crashes right after the deletion, before anything else is written.
    assert!(rig.crash(foxy_disk::Keep::All).read(b"a").is_none());
    rig.checkpoint();
    assert!(rig.crash(foxy_disk::Keep::Nothing).read(b"a").is_none());
}

#[test]
fn files_past_memory_take_no_place_there() {
    let mut rig = Rig::new(DISK, config());
    let usual = rig.fs.statistics().memory_bytes;
    rig.fs.write_nomem_file(b"a", vec![b'a'; 3000]).unwrap();
    // The file is found even before it is packed.
    assert_eq!(rig.read(b"a").unwrap(), vec![b'a'; 3000]);
    rig.checkpoint();
    for _ in 0..2 {
        let file = rig.fs.read_file(b"a").unwrap();
        assert!(!file.from_memory());
        assert_eq!(&*file, &vec![b'a'; 3000][..]);
        assert_eq!(rig.fs.statistics().memory_bytes, usual);
    }
    // The record on disk states that the file must not be kept in memory, so this is still true after a
    // restart.
    let again = rig.restart();
    for _ in 0..2 {
        assert!(!again.fs.read_file(b"a").unwrap().from_memory());
    }
}

#[test]
fn a_read_past_memory_brings_nothing_there() {
    let mut rig = Rig::new(DISK, config());
    rig.fs.write_file(b"a", vec![b'a'; 3000]).unwrap();
    let again = rig.restart();
    for _ in 0..2 {
        assert!(!again.fs.read_nomem_file(b"a").unwrap().from_memory());
    }
    assert!(!again.fs.read_file(b"a").unwrap().from_memory());
    assert!(again.fs.read_nomem_file(b"a").unwrap().from_memory());
}

#[test]
fn names_are_one_to_32768_bytes() {
    let rig = Rig::new(DISK, config());
    let long = vec![b'n'; MAX_NAME_BYTES + 1];
    for name in [&b""[..], &long] {
        let fs = &rig.fs;
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
    rig.fs.write_file(&longest, &b"x"[..]).unwrap();
    assert_eq!(rig.read(&longest).unwrap(), b"x");
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
    let mut rig = Rig::new(DISK, config());
    rig.fs.write_file(b"a", vec![0; 5000]).unwrap();
    rig.fs.write_file(b"b", vec![0; 5000]).unwrap();
    let s = rig.fs.statistics();
    assert_eq!((s.writes, s.stored_bytes), (2, 0));
    assert!(s.waiting_bytes >= 10_000, "{s:?}");
    rig.checkpoint();
    drop(rig.fs.read_file(b"a"));
    drop(rig.fs.read_file(b"none"));
    rig.fs.delete_file(b"b").unwrap();
    let s = rig.fs.statistics();
    assert_eq!((s.memory_hits, s.disk_hits, s.misses), (1, 0, 1));
    assert_eq!((s.deletes, s.waiting_bytes, s.failed_disks), (1, 0, 0));
    // Four bytes of each record state that there are no header fields.
    assert_eq!(s.stored_bytes, 10_002 + 2 * 4);
    assert!(
        s.device_bytes > s.stored_bytes && s.device_writes > 0,
        "{s:?}"
    );
    assert_eq!((s.disk_files, s.recovering), (1, false));
    let again = rig.restart();
    drop(again.fs.read_file(b"a"));
    assert_eq!(again.fs.statistics().disk_hits, 1);
}
