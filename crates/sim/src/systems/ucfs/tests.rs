//! Tests of UCFS' rules, of its space accounting, and of its state after a shutdown.

use std::collections::HashMap;

use foxy_base::Rng;

use super::*;
use crate::model::{Drive, Schedule};

const KB: u64 = 1 << 10;

fn config() -> UcfsConfig {
    UcfsConfig {
        cluster: 16 * KB,
        reserved: 1 << 20,
        largest: 100 * KB,
        medium_up: false,
        ..UcfsConfig::new(256 * KB)
    }
}

fn system(clusters: u64, config: UcfsConfig) -> Ucfs {
    let drive = Drive::named("atlas10k2").unwrap();
    let bytes = config.reserved + config.memory + clusters * config.cluster;
    Ucfs::new(Raw::partition(drive, Schedule::CLook, 0, bytes), config)
}

fn ask(system: &mut Ucfs, object: u64, size: u64, version: u32) -> Outcome {
    let request = Request {
        object,
        size,
        version,
        server: (object % 7) as u32 + 1,
        class: if object.is_multiple_of(5) {
            Class::Html
        } else {
            Class::Image
        },
        ..Request::default()
    };
    system.request(&request).unwrap()
}

/// Checks that every row leads to a cluster that contains the file, or to memory; that no cluster is used
/// twice; and that free clusters are counted right.
fn check(system: &Ucfs) {
    let mut owner: HashMap<u32, u32> = HashMap::new();
    for (number, cluster) in (0u32..).zip(&system.tables.clusters) {
        if cluster.files.is_empty() {
            assert!(cluster.array.is_empty());
            continue;
        }
        for each in std::iter::once(number).chain(cluster.array.iter().copied()) {
            assert_eq!(
                owner.insert(each, number),
                None,
                "cluster {each} has two owners"
            );
            assert!(!system.tables.free.is_free(each));
        }
        for file in &cluster.files {
            assert_eq!(system.row(*file).unwrap().cluster, number);
        }
    }
    let used = owner.len() as u32;
    assert_eq!(used + system.free_clusters(), system.disk.count());
    let mut in_memory = 0;
    for (name, row) in &system.tables.files {
        assert!(row.slot != NONE || row.cluster != NONE, "{name} is nowhere");
        if row.slot != NONE {
            assert_eq!(system.memory.get(row.slot).name, *name);
            in_memory += 1;
        }
        if row.cluster != NONE {
            let written = system.disk.peek(row.cluster).unwrap();
            assert!(written.records.iter().any(|r| r.name == *name));
        }
    }
    assert_eq!(in_memory, system.memory.len());
    assert!(system.memory_used() <= system.config.memory);
}

#[test]
fn space_and_tables_add_up_under_every_choice() {
    let choices = [
        config(),
        UcfsConfig {
            medium_up: true,
            ..config()
        },
        UcfsConfig {
            keep_partial: true,
            ..config()
        },
        UcfsConfig {
            virtual_clusters: false,
            ..config()
        },
        UcfsConfig {
            grouping: false,
            write_clusters: 1,
            ..config()
        },
    ];
    for choice in choices {
        let mut system = system(90, choice);
        let mut rng = Rng::new(3);
        let mut versions: HashMap<u64, u32> = HashMap::new();
        let mut disk_hits = 0;
        for step in 0..8_000 {
            let object = (rng.unit().powi(2) * 1_200.0) as u64;
            let version = versions.entry(object).or_default();
            *version += u32::from(rng.chance(0.02));
            let size = 1 + (object * 7_919 + u64::from(*version) * 31) % 5_000;
            let size = if object % 97 == 1 { size * 15 } else { size };
            disk_hits += u64::from(ask(&mut system, object, size, *version) == Outcome::DiskHit);
            if step % 500 == 0 {
                check(&system);
            }
        }
        check(&system);
        let counts = *system.counts();
        assert!(disk_hits > 100 && counts.replaced > 0, "{choice:?}");
        assert!(
            counts.memory_stale > 0 && counts.disk_stale > 0,
            "{choice:?}"
        );
        assert!(counts.clusters_written > counts.writes || choice.write_clusters == 1);
    }
}

#[test]
fn a_cluster_that_nobody_changed_leaves_without_a_write() {
    let mut system = system(200, config());
    for object in 0..100 {
        ask(&mut system, object, 4_000, 0);
    }
    let on_disk = (0..100)
        .find(|o| system.row(*o).unwrap().slot == NONE)
        .unwrap();
    assert_eq!(ask(&mut system, on_disk, 4_000, 0), Outcome::DiskHit);
    let cluster = system.row(on_disk).unwrap().cluster;
    let others = system.tables.get(cluster).files.clone();
    assert!(others.len() > 1 && system.tables.get(cluster).in_memory);
    for object in &others {
        assert_ne!(ask(&mut system, *object, 4_000, 0), Outcome::DiskHit);
    }
    let clean = system.counts().clean_evictions;
    for object in 1_000..1_200 {
        ask(&mut system, object, 4_000, 0);
        ask(&mut system, object, 4_000, 0);
    }
    assert!(system.counts().clean_evictions > clean);
    assert_eq!(system.row(on_disk).map(|r| r.slot), Some(NONE));
    check(&system);
}

#[test]
fn a_changed_file_voids_its_cluster_and_the_others_stay_in_memory() {
    let mut system = system(200, config());
    for object in 0..100 {
        ask(&mut system, object, 4_000, 0);
    }
    let on_disk = (0..100)
        .find(|o| system.row(*o).unwrap().slot == NONE)
        .unwrap();
    let cluster = system.row(on_disk).unwrap().cluster;
    let others = system.tables.get(cluster).files.clone();
    assert_eq!(ask(&mut system, on_disk, 4_000, 1), Outcome::Modified);
    assert_eq!(system.counts().disk_stale, 1);
    assert!(system.tables.free.is_free(cluster));
    for other in others.iter().filter(|o| **o != on_disk) {
        let row = system.row(*other).unwrap();
        assert!(row.cluster == NONE && row.slot != NONE);
    }
    check(&system);
}

#[test]
fn a_large_file_has_clusters_of_its_own() {
    let mut system = system(200, config());
    ask(&mut system, 1, 50_000, 0);
    for object in 10..200 {
        ask(&mut system, object, 4_000, 0);
    }
    let row = system.row(1).unwrap();
    let cluster = system.tables.get(row.cluster);
    assert_eq!(
        (row.slot, cluster.files.len(), cluster.array.len()),
        (NONE, 1, 3)
    );
    assert_eq!(ask(&mut system, 1, 50_000, 0), Outcome::DiskHit);
    assert_eq!(ask(&mut system, 2, 200 * KB, 0), Outcome::Miss);
    assert_eq!(ask(&mut system, 2, 200 * KB, 0), Outcome::Miss);
    check(&system);
}

#[test]
fn files_of_a_site_share_clusters() {
    let sites_per_cluster = |grouping| {
        let mut system = system(
            400,
            UcfsConfig {
                grouping,
                ..config()
            },
        );
        for object in 0..600 {
            ask(&mut system, object, 2_000, 0);
        }
        let clusters = system.tables.clusters.iter().filter(|c| c.files.len() > 3);
        let sites = clusters.map(|c| {
            let mut sites: Vec<_> = c.files.iter().map(|f| f % 7).collect();
            sites.sort_unstable();
            sites.dedup();
            sites.len() as f64
        });
        let sites: Vec<_> = sites.collect();
        sites.iter().sum::<f64>() / sites.len() as f64
    };
    assert!(sites_per_cluster(true) + 1.0 < sites_per_cluster(false));
}

#[test]
fn one_timers_go_when_their_time_is_over() {
    let choice = UcfsConfig {
        one_timers: SimTime::from_secs(60.0),
        ..config()
    };
    let mut system = system(400, choice);
    let mut at = |object: u64, time_ms: i64| {
        let request = Request {
            object,
            size: 4_000,
            time_ms,
            server: 1,
            ..Request::default()
        };
        system.request(&request).unwrap()
    };
    for object in 0..200 {
        at(object, 0);
    }
    for object in 200..400 {
        at(object, 120_000);
    }
    assert!(system.counts().one_timers > 50);
    check(&system);
}

#[test]
fn a_saved_cache_comes_back_and_a_crashed_one_does_not() {
    let mut system = system(400, config());
    for object in 0..300 {
        ask(&mut system, object, 3_000, 2);
    }
    let known = system.len();
    let (image, saved) = system.save().unwrap();
    assert!(saved.bytes > 100 * KB && saved.seconds > 0.0);
    let (mut after, restored) = Ucfs::restore(image, config()).unwrap();
    assert_eq!((after.len(), restored.bytes), (known, saved.bytes));
    check(&after);
    for object in 0..300 {
        assert_ne!(ask(&mut after, object, 3_000, 2), Outcome::Miss, "{object}");
    }
    let (empty, _) = Ucfs::restore(after.crash(), config()).unwrap();
    assert!(empty.is_empty() && empty.hot_files() == 0);
    check(&empty);
}

#[test]
fn the_file_table_has_24_bytes_and_a_bit_for_each_file() {
    let mut system = system(50, config());
    let empty = system.tables.bytes();
    for object in 0..8 {
        ask(&mut system, object, 100, 0);
    }
    assert_eq!(system.tables.bytes() - empty, 8 * 24 + 1);
}
