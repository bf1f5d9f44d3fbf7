//! Tests of the parts at a small scale: every table and figure exists, and every value is a number.

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
        "Hummingbird 2001",
        "ISP stream",
    ] {
        assert!(done.claims().any(|c| c.source == source), "{source}");
    }
    for claim in done.claims() {
        assert!(claim.ours.is_finite(), "{claim:?}");
    }
    let tables = done.sections.iter().flat_map(|s| &s.tables);
    let rows: Vec<_> = tables.map(|(_, t)| t.rows().len()).collect();
    assert_eq!(rows, [11, 5, 15]);
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
    let cell = |table: usize, row: &str, column: usize| -> f64 {
        let (_, table) = &section.tables[table];
        let found = table
            .rows()
            .iter()
            .find(|r| r[..2].join(" ").starts_with(row));
        found.unwrap_or_else(|| panic!("{row}"))[column]
            .parse()
            .unwrap()
    };
    let share = |name: &str| cell(0, name, 1);
    assert!((share("UCFS, saved") - 100.0).abs() < 1e-9);
    assert!(share("UCFS, killed").abs() < 1e-9);
    assert!(share("Hummingbird, no log, scan") <= 100.0);
    let stale = cell(0, "Hummingbird, hot clusters", 5);
    assert!(stale <= cell(0, "Hummingbird, no log, scan", 5));
    for layout in ["buddy", "stream-packetizer"] {
        let back = |way: &str| cell(1, &format!("{layout} {way}"), 2);
        assert!(back("nothing").abs() < 1e-9);
        assert!(back("name and size") > 99.0, "only a buffer is lost");
        assert!(back("a checkpoint every 15") <= back("a checkpoint every 1 ") + 1e-9);
    }
}
