//! Tests that the live cache answers like the levels and does the work of the layout.

use std::sync::mpsc::channel;

use super::*;
use crate::{levels::LevelsConfig, run::Backend};

fn config(layout: LayoutSpec, dir: &std::path::Path) -> RunConfig {
    RunConfig {
        levels: LevelsConfig::lru(20_000, 200_000),
        calls: crate::layout::Calls::Write,
        backend: Backend {
            dir: Some(dir.to_owned()),
            ..Backend::default()
        },
        ..RunConfig::published(layout)
    }
}

/// Requests an object, waits for the disk, and fetches the object if it is absent. Returns where
/// it was found.
fn get(live: &Live, object: u64) -> Found {
    let (told, heard) = channel();
    let found = live.ask(object, 1_000, 7, Box::new(move |ok| told.send(ok).unwrap()));
    match found {
        Found::Memory => assert!(heard.recv().is_err(), "memory needs no disk"),
        Found::Disk => assert_eq!(heard.recv(), Ok(true)),
        Found::Nowhere => live.keep(object, 1_000, 7),
    }
    found
}

#[test]
fn memory_disk_and_what_left_both() {
    for layout in [
        LayoutSpec::Packetizer,
        LayoutSpec::Squid,
        LayoutSpec::Loc(16),
    ] {
        let place = tempfile::tempdir().unwrap();
        let live = Live::start(&config(layout, place.path())).unwrap();
        // The front end may fetch and keep an object that it did not request from this cache.
        live.keep(1, 1_000, 7);
        assert_eq!(get(&live, 1), Found::Memory);
        for object in 2..=100 {
            assert_eq!(get(&live, object), Found::Nowhere);
        }
        assert_eq!(get(&live, 1), Found::Disk);
        assert_eq!(get(&live, 100), Found::Memory);
        for object in 101..=400 {
            assert_eq!(get(&live, object), Found::Nowhere);
        }
        assert_eq!(get(&live, 1), Found::Nowhere, "evicted by newer ones");
        let worked = live.finish().unwrap();
        let levels = worked.levels;
        assert_eq!(
            (levels.ram_hits, levels.disk_hits, levels.misses),
            (2, 1, 401)
        );
        assert_eq!(
            (worked.layout.reads, worked.layout.writes),
            (1, 401),
            "{layout}"
        );
        assert_eq!(worked.layout.deletes, 401 - worked.layout.objects);
        assert_eq!((worked.refused, worked.missing), (0, 0));
        assert_eq!(live.finish().unwrap(), Worked::default(), "it ends once");
        assert_eq!(
            std::fs::read_dir(place.path()).unwrap().count(),
            0,
            "leaves nothing"
        );
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let refusal = |config: &RunConfig| Live::start(config).err().unwrap().to_string();
    let lazy = config(LayoutSpec::Lazy(10), place.path());
    assert!(refusal(&lazy).contains("choose simple"));
    let modelled = RunConfig::published(LayoutSpec::Squid);
    assert!(refusal(&modelled).contains("folder"));
    let nowhere = config(LayoutSpec::Squid, &place.path().join("no such folder"));
    assert!(refusal(&nowhere).contains("no such folder"));
}
