//! Tests of the rules by which the condition of a store gets worse, one rule after the other.

use std::io;

use foxy_base::MonoTime;

use super::*;

const fn at(seconds: u64) -> MonoTime {
    MonoTime(seconds * 1_000_000_000)
}

fn failure<'a>(doing: &'static str, error: &'a io::Error) -> Failure<'a> {
    Failure {
        doing,
        at: Some(512),
        error,
    }
}

impl Condition {
    /// Notes a failed read in a store whose segments are all in use.
    fn fail_read(&self, segment: Option<u32>, error: &io::Error) {
        let all = || self.segments.len();
        self.read_failed("disk", segment, all, &failure("read", error));
    }

    fn fail_write(&self, used: usize, doing: &'static str, error: &io::Error) {
        self.write_failed("disk", || used, &failure(doing, error));
    }
}

#[test]
fn a_good_read_or_write_between_makes_counting_begin_anew() {
    let (condition, eio) = (Condition::new(8), io::Error::from_raw_os_error(5));
    for _ in 0..10 {
        for _ in 0..READ_ERRORS_MAX - 1 {
            condition.fail_read(None, &eio);
        }
        condition.read_well();
        condition.fail_write(8, "write", &eio);
        condition.fail_write(8, "write", &eio);
        condition.wrote_well();
    }
    assert_eq!(condition.health(), Health::Good);
    condition.fail_write(8, "flush", &eio);
    assert_eq!(condition.health(), Health::ReadOnly);
    let reason = condition.reason().unwrap();
    assert!(reason.contains("at byte 512") && reason.contains("os error 5"));
}

#[test]
fn segments_go_into_quarantine_one_by_one_and_too_many_end_writing() {
    let (condition, eio) = (Condition::new(8), io::Error::from_raw_os_error(5));
    for segment in 0..4 {
        for n in 0..5 {
            assert_eq!(condition.is_quarantined(segment), n >= 3);
            condition.fail_read(Some(segment), &eio);
        }
        condition.read_well();
        assert_eq!(condition.quarantined(), segment + 1);
        let expected = match segment {
            0 | 1 => Health::Good,
            2 => Health::ReadOnly,
            _ => Health::Offline,
        };
        assert_eq!(condition.health(), expected);
    }
    assert!(!condition.is_quarantined(7));
}

#[test]
fn a_disk_that_gives_what_was_not_written_is_left_alone_but_not_for_one_region() {
    let condition = Condition::new(8);
    let wrong = io::Error::from(io::ErrorKind::InvalidData);
    let damage = |segment| condition.read_damage("disk", segment, &failure("read", &wrong));
    (0..10 * READ_ERRORS_MAX).for_each(|_| damage(3));
    assert_eq!(condition.health(), Health::Good);
    (0..READ_ERRORS_MAX).for_each(|n| damage(n % 8));
    assert_eq!(condition.health(), Health::Offline);
    assert_eq!(condition.quarantined(), 0);
}

#[test]
fn a_store_that_cannot_be_written_nor_read_where_it_holds_something_is_offline() {
    let eio = io::Error::from_raw_os_error(5);
    let in_quarantine = |condition: &Condition, segment| {
        let read = || condition.read_failed("disk", Some(segment), || 4, &failure("read", &eio));
        (0..SEGMENT_ERRORS_MAX).for_each(|_| read());
        condition.read_well();
    };
    // Four of the 64 segments are in use. The order of failing writes and failing reads does not matter.
    let condition = Condition::new(64);
    condition.fail_write(4, "flush", &eio);
    in_quarantine(&condition, 0);
    assert_eq!(condition.health(), Health::ReadOnly);
    in_quarantine(&condition, 1);
    assert_eq!(condition.health(), Health::Offline);

    let condition = Condition::new(64);
    (0..2).for_each(|segment| in_quarantine(&condition, segment));
    assert_eq!(condition.health(), Health::Good, "there is room to write");
    condition.fail_write(4, "flush", &eio);
    assert_eq!(condition.health(), Health::Offline);

    let condition = Condition::new(64);
    condition.fail_write(0, "flush", &eio);
    assert_eq!(condition.health(), Health::ReadOnly, "nothing was read");
}

#[test]
fn slowness_ends_with_the_last_late_read_and_a_pause_that_doubles() {
    let condition = Condition::new(8);
    condition.given_up("disk", 0, at(10));
    condition.given_up("disk", 0, at(10));
    assert!(condition.is_slow(|| at(100)), "two reads are still out");
    condition.arrived(at(100));
    condition.arrived(at(100));
    assert!(condition.is_slow(|| at(100)) && !condition.is_slow(|| at(101)));
    condition.given_up("disk", 0, at(102));
    condition.arrived(at(103));
    assert!(condition.is_slow(|| at(104)) && !condition.is_slow(|| at(105)));
    condition.stalled("disk", at(1000));
    assert!(!condition.is_slow(|| at(1001)), "long forgiven");
}
