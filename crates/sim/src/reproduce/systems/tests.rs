//! The parts in small: every table and figure is there, and every figure is a number.

use super::*;
use crate::reproduce::run_parts;

#[test]
fn a_small_reproduction_of_the_cache_systems_is_whole() {
    let conditions = Conditions {
        scale: 500,
        ..Conditions::default()
    };
    let parts = [HUMMINGBIRD, SETS, UCFS, EQUAL, CRASH];
    let mut after = |_: &crate::reproduce::Reproduction| Ok(());
    let done = run_parts(&parts, &conditions, None, &|_, _, _| {}, &mut after).unwrap();
    for source in [
        "Hummingbird figure 1",
        "Hummingbird table 1",
        "Hummingbird table 3",
        "Hummingbird table 4",
        "Hummingbird table 5",
        "Hummingbird table 6",
        "Hummingbird 2001 table 2",
        "UCFS",
        "all systems",
        "crash",
    ] {
        assert!(done.claims().any(|c| c.source == source), "{source}");
    }
    for claim in done.claims() {
        assert!(claim.ours.is_finite(), "{claim:?}");
    }
    let figures = done.sections.iter().map(|s| s.figures.len());
    assert_eq!(figures.collect::<Vec<_>>(), [2, 1, 5, 1, 0]);
}

#[test]
fn crashes_lose_what_was_not_kept() {
    let conditions = Conditions {
        scale: 100,
        ..Conditions::default()
    };
    let section = (CRASH.run)(&conditions, &|_, _, _| {}).unwrap();
    let value = |what: &str| {
        let found = section.claims.iter().find(|c| c.what.starts_with(what));
        found.unwrap_or_else(|| panic!("{what}")).ours
    };
    let share = |name: &str| value(&format!("{name}: share of objects back"));
    assert!((share("UCFS, saved") - 1.0).abs() < 1e-9);
    assert!(share("UCFS, killed").abs() < 1e-9);
    assert!(share("Hummingbird, no log, scan") <= 1.0);
    let stale = value("Hummingbird, hot clusters and deletes: answers of a replaced");
    assert!(stale <= value("Hummingbird, no log, scan: answers of a replaced"));
}
