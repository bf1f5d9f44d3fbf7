//! Tests of files that have several parts.

use foxy_hummingbird::Error;

use super::harness::{Harness, config};

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
}

#[test]
fn a_long_file_is_one_piece_again() {
    let mut harness = Harness::new(64 << 20, config());
    let long = contents(1_500_001);
    harness.fs.write_file(b"long", long.clone()).unwrap();
    harness.checkpoint();
    harness.fs.write_nomem_file(b"past", long.clone()).unwrap();
    assert_eq!(harness.read(b"long").unwrap(), long);
    let again = harness.restart();
    for _ in 0..2 {
        for name in [&b"long"[..], b"past"] {
            assert_eq!(again.read(name).unwrap(), long);
        }
        assert!(!again.fs.read_file(b"past").unwrap().from_memory());
    }
    again.fs.delete_file(b"long").unwrap();
    assert!(again.read(b"long").is_none());
}

#[test]
fn too_long_a_file_is_refused_and_its_older_contents_are_gone() {
    let harness = Harness::new(8 << 20, config());
    harness.fs.write_file(b"a", &b"older"[..]).unwrap();
    let refused = harness.fs.write_file(b"a", contents(3 << 20));
    assert!(matches!(refused, Err(Error::TooLarge)));
    assert!(harness.read(b"a").is_none());
}

#[test]
fn one_that_finds_no_room_is_refused_whole() {
    let harness = Harness::new(64 << 20, config());
    harness.fs.write_file(b"a", &b"older"[..]).unwrap();
    // Nothing calls `Driver::turn`, so the number of waiting bytes only grows.
    let mut refused = 0;
    for n in 0..8u8 {
        match harness.fs.write_nomem_file(&[n], contents(700_000)) {
            Ok(size) => assert_eq!(size, 700_000),
            Err(Error::NoRoom) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        let found = harness.read(&[n]);
        assert!(found.is_none_or(|file| file == contents(700_000)));
    }
    assert!(refused > 0);
}
