//! Tests of packing by hints. The tests check the positions on disk that later reads use.

use foxy_disk::OpClass;
use foxy_hummingbird::{Error, Hint};

use super::harness::{Harness, config};

const DISK: u64 = 8 << 20;
/// Number of files that a test writes between two files that belong together. These files fill more than one
/// cluster of the store.
const FILLER: usize = 90;

/// The position on disk that is read for each of these files, after a restart.
fn places(harness: &mut Harness, names: &[&[u8]]) -> Vec<u64> {
    let again = harness.restart();
    let place = |name: &&[u8]| {
        again.disk.set_log(true);
        assert!(!again.fs.read_nomem_file(name).unwrap().from_memory());
        let log = again.disk.log();
        let read = log.iter().find(|op| op.class == OpClass::Read);
        read.unwrap().at
    };
    names.iter().map(place).collect()
}

fn fill(harness: &Harness, label: &str) {
    for n in 0..FILLER {
        let name = format!("{label} {n}");
        harness
            .fs
            .write_file(name.as_bytes(), vec![b'f'; 2000])
            .unwrap();
    }
}

fn page(harness: &Harness) {
    harness.fs.write_file(b"page", vec![b'p'; 2000]).unwrap();
}

/// True if both positions can be in one locality buffer (16 KiB). A position is the position of the block in
/// which the read of a file begins.
fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) < 16 << 10
}

#[test]
fn without_a_hint_files_lie_in_the_order_of_writing() {
    let mut harness = Harness::new(DISK, config());
    page(&harness);
    fill(&harness, "x");
    harness.fs.write_file(b"logo", vec![b'l'; 2000]).unwrap();
    let at = places(&mut harness, &[b"page", b"logo"]);
    assert!(!near(at[0], at[1]), "{at:?}");
}

#[test]
fn a_hint_puts_two_files_side_by_side() {
    let mut harness = Harness::new(DISK, config());
    page(&harness);
    fill(&harness, "x");
    harness.fs.write_file(b"logo", vec![b'l'; 2000]).unwrap();
    let hint = harness.fs.collocate_files(b"page", b"logo").unwrap();
    assert_eq!(hint, Hint::Taken);
    // The same hint is given again. Another hint puts a third file beside the second file. All three files
    // are in one set.
    harness.fs.collocate_files(b"page", b"logo").unwrap();
    harness.fs.write_file(b"third", vec![b't'; 2000]).unwrap();
    harness.fs.collocate_files(b"logo", b"third").unwrap();
    let at = places(&mut harness, &[b"page", b"logo", b"third"]);
    assert!(near(at[0], at[1]) && near(at[0], at[2]), "{at:?}");
    assert_eq!(harness.fs.statistics().hints_taken, 3);
    assert_eq!(harness.fs.statistics().replicas, 0);
}

#[test]
fn a_hint_given_with_the_write_does_the_same() {
    let mut harness = Harness::new(DISK, config());
    harness
        .fs
        .write_file_beside(b"logo", vec![b'l'; 2000], b"page")
        .unwrap();
    fill(&harness, "x");
    harness
        .fs
        .write_file_beside(b"page", vec![b'p'; 2000], b"page")
        .unwrap();
    let at = places(&mut harness, &[b"page", b"logo"]);
    assert!(near(at[0], at[1]), "{at:?}");
}

#[test]
fn a_packed_file_in_memory_is_written_once_more_if_replicas_are_wanted() {
    for replicas in [true, false] {
        let knobs = foxy_hummingbird::Config {
            replicas,
            ..config()
        };
        let mut harness = Harness::new(DISK, knobs);
        harness.fs.write_file(b"logo", vec![b'l'; 2000]).unwrap();
        harness.checkpoint();
        fill(&harness, "x");
        page(&harness);
        let written = harness.fs.statistics().stored_bytes;
        let hint = harness.fs.collocate_files(b"page", b"logo").unwrap();
        assert_eq!(hint == Hint::Taken, replicas);
        assert_eq!(harness.fs.statistics().replicas, u64::from(replicas));
        let at = places(&mut harness, &[b"page", b"logo"]);
        assert_eq!(near(at[0], at[1]), replicas, "{at:?}");
        assert!(harness.fs.statistics().stored_bytes > written);
    }
}

#[test]
fn a_file_that_is_on_disk_alone_or_unknown_cannot_be_moved() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"logo", vec![b'l'; 2000]).unwrap();
    let again = harness.restart();
    page(&again);
    let hint = again.fs.collocate_files(b"page", b"logo").unwrap();
    assert_eq!(hint, Hint::TooLate);
    // Other files can still be placed beside a file that is only on disk.
    let hint = again.fs.collocate_files(b"logo", b"page").unwrap();
    assert_eq!(hint, Hint::Taken);
    let unknown = again.fs.collocate_files(b"page", b"none");
    assert!(matches!(unknown, Err(Error::NotFound)));
    let unknown = again.fs.collocate_files(b"none", b"page");
    assert!(matches!(unknown, Err(Error::NotFound)));
    assert_eq!(again.fs.statistics().hints_late, 1);
}

#[test]
fn a_hint_never_brings_older_contents_back() {
    let mut harness = Harness::new(DISK, config());
    page(&harness);
    harness.fs.write_file(b"logo", &b"older"[..]).unwrap();
    harness.fs.collocate_files(b"page", b"logo").unwrap();
    harness.fs.write_file(b"logo", &b"newer"[..]).unwrap();
    harness.fs.collocate_files(b"page", b"logo").unwrap();
    assert_eq!(harness.read(b"logo").unwrap(), b"newer");
    harness.fs.delete_file(b"logo").unwrap();
    let gone = harness.fs.collocate_files(b"page", b"logo");
    assert!(matches!(gone, Err(Error::NotFound)));
    let again = harness.restart();
    assert!(again.read(b"logo").is_none());
    assert_eq!(again.read(b"page").unwrap().len(), 2000);
}

#[test]
fn a_file_past_memory_stays_so_when_it_is_moved() {
    let mut harness = Harness::new(DISK, config());
    page(&harness);
    harness
        .fs
        .write_nomem_file(b"logo", vec![b'l'; 2000])
        .unwrap();
    harness.fs.collocate_files(b"page", b"logo").unwrap();
    let again = harness.restart();
    for _ in 0..2 {
        assert!(!again.fs.read_file(b"logo").unwrap().from_memory());
    }
}
