//! The study in small: every claim is there, and the same seed gives the same result.

use super::*;

#[test]
fn a_small_reproduction_has_every_claim_and_figure() {
    let conditions = Conditions {
        scale: 200,
        utilisations: vec![0.71, 0.95],
        thresholds: vec![1, 256],
        disks: vec![1.0, 2.0],
        ..Conditions::default()
    };
    let seen = std::sync::Mutex::new(Vec::new());
    let tell = |what: &str, done, of| seen.lock().unwrap().push((what.to_owned(), done, of));
    let done = usits(&conditions, &tell).unwrap();
    for source in [
        "cascade", "figure 2", "figure 3", "figure 4", "figure 5", "table 2", "figure 6",
        "figure 7", "figure 8", "table 1", "journal",
    ] {
        assert!(done.claims.iter().any(|c| c.source == source), "{source}");
    }
    assert_eq!(
        done.claims.iter().filter(|c| c.source == "table 2").count(),
        8
    );
    assert_eq!(done.runs.len(), 4 + 2 + 1 + 7 * 2 + 9);
    let folder = tempfile::tempdir().unwrap();
    let files = done.save(folder.path()).unwrap();
    assert_eq!(files.len(), 5 + 2 * done.figures.len());
    assert!(
        seen.lock()
            .unwrap()
            .iter()
            .any(|(what, done, of)| what == "figure 5" && done == of)
    );
    let csv = std::fs::read_to_string(&files[1]).unwrap();
    assert_eq!(csv.lines().count(), done.claims.len() + 1);
}
