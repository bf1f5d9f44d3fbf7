//! Tests of runs and sweeps: the same seed gives the same results, for any order and number of threads.

use std::sync::Mutex;

use super::{running::SAMPLES, *};
use crate::{layout::LayoutSpec, levels::LevelsConfig};

fn small(layout: LayoutSpec) -> RunConfig {
    RunConfig {
        workload: Workload::dec(u64::MAX),
        levels: LevelsConfig::lru(1 << 20, 8 << 20),
        ops: 6_000,
        ..RunConfig::published(layout)
    }
}

#[test]
fn the_sums_of_a_run_fit_together() {
    for layout in LayoutSpec::PUBLISHED {
        let result = run(&small(layout)).unwrap();
        assert_eq!(
            result.reads + result.writes + result.deletes,
            6_000,
            "{layout}"
        );
        assert!(result.gets >= result.reads + result.writes);
        assert!(result.seconds > 0.0 && result.ops_per_s > 0.0);
        assert!((result.ops_per_s * result.seconds - 6_000.0).abs() < 1e-6);
        assert!(result.gets_per_s > 0.0 && result.sequential_mb_per_s > 0.0);
        assert_eq!((result.refused, result.missing), (0, 0), "{layout}");
        assert!(result.samples.len() >= SAMPLES);
        if layout.is_stream() {
            assert!(
                result.utilisation > 0.6 && result.utilisation < 0.85,
                "{}",
                result.utilisation
            );
            assert!(result.free_chunk > 0.0);
        }
    }
}

#[test]
fn a_run_repeats_exactly() {
    let config = small(LayoutSpec::LazyLoc(16));
    assert!(run(&config).unwrap() == run(&config).unwrap());
}

#[test]
fn a_workload_to_its_end_needs_no_list_of_operations() {
    let whole = RunConfig {
        workload: Workload::dec(20_000),
        ops: 0,
        ..small(LayoutSpec::Packetizer)
    };
    let listed = RunConfig {
        ops: u64::MAX,
        ..whole.clone()
    };
    let (whole, listed) = (run(&whole).unwrap(), run(&listed).unwrap());
    assert!((SAMPLES..2 * SAMPLES).contains(&whole.samples.len()));
    let without = |result: RunResult| RunResult {
        samples: Vec::new(),
        ..result
    };
    assert!(without(whole) == without(listed));
}

#[test]
fn absurd_parameters_are_refused() {
    let good = small(LayoutSpec::Stream);
    for bad in [
        RunConfig {
            utilisation: 0.0,
            ..good.clone()
        },
        RunConfig {
            utilisation: 1.5,
            ..good.clone()
        },
        RunConfig {
            utilisation: f64::NAN,
            ..good.clone()
        },
        RunConfig {
            page: 1000,
            ..good.clone()
        },
        RunConfig {
            buffer: 1,
            ..good.clone()
        },
        RunConfig {
            levels: LevelsConfig::lru(0, 10),
            ..good.clone()
        },
        RunConfig {
            workload: Workload::Log("no such file".into()),
            ..good.clone()
        },
        RunConfig {
            workload: Workload::dec(0),
            ..good
        },
    ] {
        assert!(run(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_sweep_gives_what_single_runs_give_and_resumes() {
    let configs: Vec<_> = [
        LayoutSpec::Stream,
        LayoutSpec::Buddy(256),
        LayoutSpec::Lazy(10),
    ]
    .map(small)
    .into();
    let alone: Vec<_> = configs.iter().map(|c| run(c).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let resume = folder.path().join("runs.jsonl");
    let seen = Mutex::new(Vec::new());
    let progress = |done, of| seen.lock().unwrap().push((done, of));
    let options = SweepOptions {
        threads: 2,
        resume: Some(resume.clone()),
        progress: Some(&progress),
    };
    assert!(sweep(&configs, &options).unwrap() == alone);
    assert_eq!(seen.lock().unwrap().len(), 3);
    // The file is cut in the middle of its last line. So two runs are taken from the file, and the run of the
    // last line is repeated.
    let text = std::fs::read_to_string(&resume).unwrap();
    std::fs::write(&resume, &text[..text.len() - 40]).unwrap();
    assert!(sweep(&configs, &options).unwrap() == alone);
    let altered = text.replace("\"gets\":", "\"gets\":9");
    std::fs::write(&resume, altered).unwrap();
    assert!(
        sweep(&configs, &options)
            .unwrap()
            .iter()
            .all(|r| r.gets > 9_000)
    );
}
