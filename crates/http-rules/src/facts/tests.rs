//! Tests of the fixed form of caching facts, byte for byte.

use super::*;
use proptest::prelude::*;

prop_compose! {
    fn any_facts()(
        status: u16, flags in 0..=Flags::KNOWN, old: bool, request: i64, response: i64, age in 0..=i64::MAX,
        lifetime: u32, source in 0..LifetimeSource::ALL.len(),
        swr in proptest::option::of(0..u32::MAX), sie in proptest::option::of(0..u32::MAX),
        date in proptest::option::of(i64::MIN + 1..=i64::MAX),
        modified in proptest::option::of(i64::MIN + 1..=i64::MAX),
    ) -> CachingFacts {
        CachingFacts {
            status, flags: Flags(flags | if old { Flags::OLD_RULES.0 } else { 0 }),
            request_time: WallTime(request), response_time: WallTime(response),
            initial_age_ms: age, lifetime_s: lifetime, source: LifetimeSource::ALL[source],
            stale_while_revalidate_s: swr, stale_if_error_s: sie,
            date: date.map(WallTime), last_modified: modified.map(WallTime),
        }
    }
}

proptest! {
    #[test]
    fn facts_round_trip(facts in any_facts()) {
        prop_assert_eq!(CachingFacts::decode(&facts.encode()), Some(facts));
    }

    #[test]
    fn any_64_bytes_are_survived(bytes in proptest::array::uniform32(any::<u8>()), version in 0..3u8) {
        let mut all = [0; FACTS_BYTES];
        all[..32].copy_from_slice(&bytes);
        all[0] = version;
        if let Some(facts) = CachingFacts::decode(&all) {
            prop_assert_eq!(facts.encode(), all);
        }
    }
}

#[test]
fn other_versions_and_unknown_bits_are_refused() {
    let whole = crate::testing::stored("Cache-Control: max-age=60").encode();
    assert!(CachingFacts::decode(&whole).is_some());
    for (at, byte) in [
        (0, 0),
        (0, 2),
        (1, 200),
        (3, 0x80),
        (6, 2),
        (7, 1),
        (31, 0x80),
        (63, 1),
    ] {
        let mut damaged = whole;
        damaged[at] = byte;
        assert_eq!(CachingFacts::decode(&damaged), None, "byte {at}");
    }
}

#[test]
fn the_encoding_does_not_change() {
    let flags = Flags::HAS_ETAG.with(Flags::STRONG_ETAG);
    check_hex(
        flags.with(Flags::OLD_RULES),
        "01032002c800000001000000000000000200000000000000\
         030000000000000006000000000000000000000000000080\
         0400000005000000ffffffff00000000",
    );
    check_hex(
        flags,
        "01032002c800010001000000000000000200000000000000\
         030000000000000006000000000000000000000000000080\
         0400000005000000ffffffff00000000",
    );
}

fn check_hex(flags: Flags, expected: &str) {
    let facts = CachingFacts {
        status: 200,
        flags,
        request_time: WallTime(1),
        response_time: WallTime(2),
        initial_age_ms: 3,
        lifetime_s: 4,
        source: LifetimeSource::MaxAge,
        stale_while_revalidate_s: Some(5),
        stale_if_error_s: None,
        date: Some(WallTime(6)),
        last_modified: None,
    };
    let hex: String = facts.encode().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, expected);
    assert_eq!(CachingFacts::decode(&facts.encode()), Some(facts));
}
