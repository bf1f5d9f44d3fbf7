//! The limits of purges. A purge beyond the limit is refused. It is never replaced by a purge of more
//! objects. Some capacity stays reserved for the purges of operators.

use super::purges::purge;
use super::rig::Rig;
use crate::*;

const MEMORY: u64 = 512 << 10;
const KEY: &str = "forward GET http://a.test/x";

/// Makes a tag that takes much of the journal.
fn long(n: usize) -> String {
    format!("{n}{}", " long".repeat(20))
}

/// Makes purges of tags until one is refused. These purges may not take the places that are reserved for
/// operators. Returns the number of accepted purges.
fn flood(rig: &mut Rig, from: usize, soft: bool) -> usize {
    for n in 0..1000 {
        let purge = purge(PurgeKind::Tag, &long(from + n), soft);
        if let Err(error) = rig.engine.purges().purge_many(&purge, Places::Shared) {
            assert_eq!(error, PurgeError::Busy);
            assert!(error.is_busy());
            return n;
        }
        rig.turns(4);
    }
    panic!("nothing is refused");
}

#[test]
fn a_flood_of_tags_is_refused_and_never_widened() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.fetch(KEY, "");
    rig.settle();
    let taken = flood(&mut rig, 0, false);
    assert!(taken > 20, "{taken}");
    assert!(rig.get(KEY).is_some(), "no purge names it");
    // A start finds the same purges, unchanged.
    let again = rig.kill();
    assert!(again.get(KEY).is_some());
    assert_eq!(again.engine.purges().active_purges(), taken);
    // The sweep frees places.
    assert!(rig.sweep());
    assert_eq!(rig.engine.purges().active_purges(), 0);
    rig.settle();
    assert!(flood(&mut rig, 100, false) >= taken - 3);
    assert!(rig.get(KEY).is_some());
}

#[test]
fn operators_purge_while_a_flood_is_refused() {
    let mut rig = Rig::new(16, MEMORY, 1);
    flood(&mut rig, 0, false);
    rig.fetch(KEY, "mine");
    let before = rig.engine.purges().active_purges();
    rig.purge(PurgeKind::Tag, "mine", false);
    assert!(rig.get(KEY).is_none());
    assert_eq!(rig.engine.purges().active_purges(), before + 1);
}

#[test]
fn expressions_of_others_leave_places_for_operators() {
    let rig = Rig::new(16, MEMORY, 1);
    let ask = |n: usize, places| {
        let purge = purge(PurgeKind::Expression, &format!("^{n}$"), false);
        rig.engine.purges().purge_many(&purge, places).err()
    };
    for n in 0..48 {
        assert_eq!(ask(n, Places::Shared), None);
    }
    assert_eq!(ask(48, Places::Shared), Some(PurgeError::TooMany(48)));
    assert_eq!(ask(0, Places::Shared), None, "known already");
    for n in 48..64 {
        assert_eq!(ask(n, Places::Reserved), None);
    }
    assert_eq!(ask(64, Places::Reserved), Some(PurgeError::TooMany(64)));
}

#[test]
fn a_purge_of_everything_takes_the_place_of_those_before() {
    for soft in [false, true] {
        let mut rig = Rig::new(16, MEMORY, 1);
        flood(&mut rig, 0, soft);
        rig.purge(PurgeKind::Tag, "hard", false);
        rig.purge(PurgeKind::All, "", soft);
        // A soft purge does not replace hard purges.
        assert_eq!(
            rig.engine.purges().active_purges(),
            if soft { 2 } else { 1 }
        );
    }
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.purge(PurgeKind::Tag, "t", false);
    let site = Purge {
        partition: "site".to_owned(),
        ..purge(PurgeKind::All, "", false)
    };
    rig.engine
        .purges()
        .purge_many(&site, Places::Shared)
        .unwrap();
    assert_eq!(
        rig.engine.purges().active_purges(),
        2,
        "of another partition"
    );
}

#[test]
fn soft_purges_do_not_hold_all_places_for_ever() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.fetch(KEY, "");
    rig.fetch("forward GET http://a.test/y", &long(0));
    rig.settle();
    let taken = flood(&mut rig, 0, true);
    assert!(rig.sweep());
    assert_eq!(rig.engine.purges().active_purges(), taken, "they stay");
    // With the next purge, the oldest soft purges become hard; the sweep after that ends them.
    rig.purge(PurgeKind::Tag, "next", true);
    assert!(rig.sweep());
    rig.settle();
    assert!(rig.engine.purges().active_purges() < taken / 2 + 2);
    assert!(rig.get("forward GET http://a.test/y").is_none());
    let whole = rig.get(KEY).unwrap();
    assert!(!whole.is_soft_purged(), "no purge names it");
    assert!(flood(&mut rig, taken, true) > taken / 4);
}

#[test]
fn refusals_name_what_is_wrong() {
    let rig = Rig::new(16, MEMORY, 1);
    let refused = |kind, text: &str| {
        let purge = purge(kind, text, false);
        rig.engine
            .purges()
            .purge_many(&purge, Places::Reserved)
            .err()
    };
    assert_eq!(refused(PurgeKind::Tag, ""), Some(PurgeError::Empty));
    let too_long = "x".repeat(3000);
    assert!(matches!(
        refused(PurgeKind::Tag, &too_long),
        Some(PurgeError::TooLong(_))
    ));
    for bad in ["(", r"(\w{100}){100}"] {
        let error = refused(PurgeKind::Expression, bad);
        assert!(matches!(error, Some(PurgeError::Expression(_))), "{bad}");
    }
}
