//! Tests of lifetimes that change while the library is open.

use std::time::Duration;

use foxy_hummingbird::{Config, Error};

use super::harness::{Harness, config};

const DISK: u64 = 4 << 20;

#[test]
fn a_file_is_not_found_after_its_lifetime() {
    let mut harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", &b"1"[..]).unwrap();
    harness.clock.advance(Duration::from_secs(100));
    assert!(harness.read(b"a").is_some());
    harness
        .fs
        .update_file_lifetime(Some(Duration::from_secs(101)));
    assert!(harness.read(b"a").is_some());
    harness.clock.advance(Duration::from_secs(1));
    assert!(matches!(harness.fs.read_file(b"a"), Err(Error::NotFound)));
    // The file was not deleted. With a longer lifetime it is found again, even after a restart.
    harness.fs.update_file_lifetime(None);
    assert!(harness.read(b"a").is_some());
    let again = harness.restart();
    assert!(again.read(b"a").is_some());
    again.fs.update_file_lifetime(Some(Duration::from_secs(50)));
    assert!(again.read(b"a").is_none());
    again.fs.write_file(b"a", &b"2"[..]).unwrap();
    assert_eq!(again.read(b"a").unwrap(), b"2");
}

#[test]
fn a_lifetime_of_zero_is_over_at_once() {
    let harness = Harness::new(DISK, config());
    harness.fs.write_file(b"a", &b"1"[..]).unwrap();
    harness.fs.update_file_lifetime(Some(Duration::ZERO));
    assert!(
        harness.read(b"a").is_none(),
        "in the millisecond of its writing"
    );
    harness.fs.update_file_lifetime(None);
    assert!(harness.read(b"a").is_some());
}

#[test]
fn a_cluster_lives_until_its_last_file_is_over() {
    let config = Config {
        pack_age: Duration::from_secs(10),
        cluster_lifetime: Some(Duration::from_secs(60)),
        ..config()
    };
    let harness = Harness::new(DISK, config);
    harness.fs.write_file(b"a", &b"1"[..]).unwrap();
    // Other files may join the cluster of this file for ten seconds (`pack_age`). The cluster lives for 60 s
    // after these ten seconds.
    harness.clock.advance(Duration::from_secs(69));
    assert!(harness.read(b"a").is_some());
    harness.clock.advance(Duration::from_secs(1));
    assert!(harness.read(b"a").is_none());
    harness.fs.update_cluster_lifetime(None);
    assert!(harness.read(b"a").is_some());
}
