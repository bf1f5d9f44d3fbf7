//! Tests of the reproduction at a small scale: all claims exist, finished parts are kept, and the
//! page is complete.

use std::sync::Mutex;

use super::*;

fn conditions() -> Conditions {
    Conditions {
        scale: 200,
        utilisations: vec![0.71, 0.95],
        thresholds: vec![1, 256],
        disks: vec![1.0, 2.0],
        ..Conditions::default()
    }
}

#[test]
fn a_small_reproduction_has_every_claim_and_figure() {
    let seen = Mutex::new(Vec::new());
    let tell = |what: &str, done, of| seen.lock().unwrap().push((what.to_owned(), done, of));
    let folder = tempfile::tempdir().unwrap();
    let parts = [
        usits::WORKLOAD,
        usits::FILES,
        usits::STREAM,
        usits::CALLS,
        usits::SECOND,
        usits::DISK,
    ];
    let mut finished = Vec::new();
    let done = run_parts(
        &parts,
        &conditions(),
        Some(folder.path()),
        &tell,
        &mut |r| {
            finished.push(r.sections.len());
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(finished, [1, 2, 3, 4, 5, 6]);
    for source in [
        "cascade",
        "figure 2",
        "figure 3",
        "figure 4",
        "figure 5",
        "table 2",
        "figure 6",
        "figure 7",
        "figure 8",
        "table 1",
        "efficiency",
        "journal figure 14",
        "journal figure 15",
    ] {
        assert!(done.claims().any(|c| c.source == source), "{source}");
    }
    assert_eq!(done.claims().filter(|c| c.source == "table 2").count(), 9);
    let ready = |what: &str, done, of| what == "figure 5" && done == of;
    assert!(seen.lock().unwrap().iter().any(|(w, d, o)| ready(w, d, o)));
    let files = done.save(folder.path()).unwrap();
    let figures: usize = done.sections.iter().map(|s| s.figures.len()).sum();
    assert_eq!(files.len(), 5 + 2 * figures);
    let csv = std::fs::read_to_string(folder.path().join("comparison.csv")).unwrap();
    assert_eq!(csv.lines().count(), done.claims().count() + 1);
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("A quick look") && page.matches("<figure>").count() == figures);
    // The verdicts come first, and every reason refers to an existing note.
    let verdicts = page.find("All verdicts").unwrap();
    assert!(verdicts < page.find("<nav>").unwrap());
    let notes: Vec<&str> = done
        .sections
        .iter()
        .flat_map(|s| s.notes.iter().map(|(heading, _)| heading.as_str()))
        .collect();
    let reasons = done.claims().filter_map(|c| c.reason.as_deref());
    assert!(reasons.clone().count() > 0);
    for reason in reasons {
        assert!(notes.contains(&reason), "{reason}");
    }
    assert!(!page.contains("http://") || !page.contains("src=\"http"));
    let docs = done.write_docs(&folder.path().join("docs")).unwrap();
    assert_eq!(docs.len(), figures + 1);
}

#[test]
fn finished_parts_are_not_done_again_unless_conditions_changed() {
    fn part(
        conditions: &Conditions,
        progress: Progress<'_>,
    ) -> Result<Section, crate::run::RunError> {
        progress("work", 1, 1);
        let mut out = Section::default();
        out.claims.push(Claim::new(
            "x",
            "y",
            1.0,
            conditions.seed as f64,
            Comparison::Exact,
        ));
        Ok(out)
    }
    let parts = [Part {
        id: "x",
        title: "X",
        about: "About x.",
        run: part,
    }];
    let folder = tempfile::tempdir().unwrap();
    let times = Mutex::new(0);
    let count = |what: &str, _, _| *times.lock().unwrap() += u32::from(what == "work");
    let go = |conditions: &Conditions| {
        run_parts(&parts, conditions, Some(folder.path()), &count, &mut |_| {
            Ok(())
        })
        .unwrap()
    };
    let first = go(&conditions());
    assert_eq!(first.sections[0].title, "X");
    assert_eq!(go(&conditions()).sections, first.sections);
    assert_eq!(*times.lock().unwrap(), 1);
    let other = Conditions {
        seed: 2,
        ..conditions()
    };
    assert!(go(&other).sections[0].claims[0].ours > 1.5);
    assert_eq!(*times.lock().unwrap(), 2);
    // A truncated file is ignored.
    let file = folder.path().join("parts/x.json");
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    go(&other);
    assert_eq!(*times.lock().unwrap(), 3);
}
