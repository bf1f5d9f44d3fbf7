//! Tests of the library's rules, of its space accounting, and of its state after crashes.

use std::collections::HashMap;

use foxy_base::Rng;

use super::*;
use crate::model::{Drive, Schedule};

const KB: u64 = 1 << 10;

fn config() -> HummingbirdConfig {
    HummingbirdConfig {
        cluster: 16 * KB,
        cluster_life: None,
        logs: LogConfig {
            reserved: 8 << 20,
            hot: 16,
            deletes: 1,
            ..LogConfig::default()
        },
        ..HummingbirdConfig::published(256 * KB, 1.0)
    }
}

fn library(clusters: u64, config: HummingbirdConfig) -> Hummingbird {
    let drive = Drive::named("st118202fc").unwrap();
    let bytes = config.logs.reserved + clusters * config.cluster;
    Hummingbird::new(Raw::partition(drive, Schedule::CLook, 0, bytes), config)
}

/// Reads a file and ends the read.
fn read(library: &mut Hummingbird, name: u64) -> Result<Contents, HummingbirdError> {
    let found = library.read_file(name)?;
    library.done_read_file(name)?;
    Ok(found)
}

/// Checks that every cluster is free or has files, that every file is at the place in its metadata, and that
/// memory is within its limit.
fn check(library: &Hummingbird) {
    let mut taken = 0;
    for cluster in 0..library.clusters.count() {
        let entry = library.clusters.get(cluster);
        let live: Vec<_> = entry.files.iter().filter(|f| **f != files::NONE).collect();
        if live.is_empty() {
            continue;
        }
        taken += 1 + entry.span;
        assert!(!library.clusters.free.is_free(cluster));
        for file in live {
            assert!(library.files.get(*file).clusters.contains(&cluster));
        }
    }
    assert_eq!(taken + library.free_clusters(), library.clusters.count());
    for file in library.files.numbers() {
        let entry = library.files.get(file);
        assert!(entry.unpacked.is_some() || !entry.clusters.is_empty());
        assert_eq!(entry.readers, 0);
        for cluster in &entry.clusters {
            assert!(library.clusters.get(*cluster).files.contains(&file));
        }
    }
    assert!(library.memory_used() <= library.config.memory);
    assert!((0..library.clusters.count()).all(|c| library.clusters.get(c).pins == 0));
}

#[test]
fn a_random_client_finds_what_it_wrote_or_nothing() {
    for placement in [Placement::Closest, Placement::PreviousWrite, Placement::Log] {
        let config = HummingbirdConfig {
            placement,
            cluster_life: Some(SimTime::from_secs(2.0)),
            daemon_every: 50,
            ..config()
        };
        let mut library = library(150, config);
        let mut rng = Rng::new(11);
        let mut written: HashMap<u64, (u64, u32)> = HashMap::new();
        let (mut hits, mut version) = (0, 0);
        for step in 0..6_000 {
            let name = (rng.unit().powi(3) * 900.0) as u64;
            match read(&mut library, name) {
                Ok(found) => {
                    assert_eq!(written.get(&name), Some(&(found.size, found.version)));
                    hits += 1;
                    if rng.chance(0.1) {
                        library.delete_file(name).unwrap();
                        assert_eq!(library.read_file(name), Err(HummingbirdError::NotFound));
                        written.remove(&name);
                    }
                }
                Err(HummingbirdError::NotFound) => {
                    version += 1;
                    let size = 1 + rng.below(6_000);
                    library.write_file(name, size, version).unwrap();
                    written.insert(name, (size, version));
                    let _ = library.collocate_files(name / 10 * 10, name);
                }
                Err(error) => panic!("{error}"),
            }
            library.tick().unwrap();
            if step % 500 == 0 {
                check(&library);
            }
        }
        check(&library);
        assert!(hits > 1_000, "{placement:?}: {hits}");
        assert!(library.counts().prefetch_hits > 0 && library.counts().cluster_reads > 0);
        assert_eq!(placement == Placement::Log, library.free_clusters() == 0);
    }
}

#[test]
fn what_belongs_together_is_packed_together() {
    let mut library = library(100, config());
    for name in 0..8 {
        library.write_file(name, 3_000, 1).unwrap();
    }
    library.collocate_files(0, 6).unwrap();
    library.collocate_files(0, 7).unwrap();
    library.pack().unwrap();
    let names = |library: &Hummingbird, c: u32| {
        let written = library.disk.peek(c).unwrap();
        written.records.iter().map(|r| r.name).collect::<Vec<_>>()
    };
    let first = library.clusters.last_written;
    assert_eq!(names(&library, first), [0, 6, 7, 1, 2]);
    // This hint names a file that is already in another cluster and is still in memory. So the new cluster
    // gets a replica of the file.
    library.collocate_files(3, 6).unwrap();
    library.pack().unwrap();
    assert_eq!(names(&library, library.clusters.last_written), [3, 6, 4, 5]);
    assert_eq!(library.counts().replicas, 1);
    assert_eq!(
        library.collocate_files(0, 5),
        Err(HummingbirdError::NotFound)
    );
    check(&library);
}

#[test]
fn a_read_brings_the_whole_cluster() {
    let mut library = library(100, config());
    for name in 0..4 {
        library.write_file(name, 3_000, name as u32).unwrap();
    }
    library.pack().unwrap();
    library.shrink_to(0).unwrap();
    assert!(!read(&mut library, 2).unwrap().from_memory);
    let found = read(&mut library, 1).unwrap();
    assert_eq!((found.from_memory, found.version), (true, 1));
    let counts = *library.counts();
    assert_eq!((counts.cluster_reads, counts.prefetched), (1, 3));
    read(&mut library, 1).unwrap();
    assert_eq!(library.counts().prefetch_hits, 1);
}

#[test]
fn calls_refuse_as_the_interface_says() {
    let mut library = library(20, config());
    library.write_file(1, 100, 0).unwrap();
    assert_eq!(library.write_file(1, 9, 0), Err(HummingbirdError::Exists));
    assert_eq!(
        library.write_file(2, 16 * KB, 0),
        Err(HummingbirdError::TooLarge)
    );
    assert_eq!(library.done_read_file(1), Err(HummingbirdError::NotFound));
    library.read_file(1).unwrap();
    library.read_file(1).unwrap();
    assert_eq!(library.delete_file(1), Err(HummingbirdError::Busy));
    library.done_read_file(1).unwrap();
    assert_eq!(library.delete_file(1), Err(HummingbirdError::Busy));
    library.done_read_file(1).unwrap();
    library.delete_file(1).unwrap();
    assert_eq!(library.delete_file(1), Err(HummingbirdError::NotFound));
    let codes =
        [HummingbirdError::NotFound, HummingbirdError::NoCluster].map(HummingbirdError::code);
    assert!(codes.iter().all(|c| *c < 0));
    check(&library);
}

#[test]
fn files_without_memory_leave_it_alone() {
    let mut library = library(20, config());
    library.write_nomem_file(1, 40 * KB, 5).unwrap();
    library.write_nomem_file(2, 100, 6).unwrap();
    assert_eq!((library.memory_used(), library.free_clusters()), (0, 16));
    for _ in 0..2 {
        let found = read(&mut library, 1).unwrap();
        assert_eq!(
            (found.size, found.version, found.from_memory),
            (40 * KB, 5, false)
        );
    }
    assert_eq!(library.memory_used(), 0);
    library.delete_file(1).unwrap();
    check(&library);
    assert_eq!(library.free_clusters(), 19);
    assert_eq!(
        library.write_nomem_file(3, 400 * KB, 0),
        Err(HummingbirdError::NoCluster)
    );
}

#[test]
fn names_with_one_hash_are_told_apart_by_the_disk() {
    let mut seen = HashMap::new();
    let (a, b) = (0u64..)
        .find_map(|n| seen.insert(files::hash(n), n).map(|before| (before, n)))
        .unwrap();
    let mut library = library(50, config());
    library.write_file(a, 100, 1).unwrap();
    library.write_file(b, 200, 2).unwrap();
    library.pack().unwrap();
    library.shrink_to(0).unwrap();
    assert_eq!(read(&mut library, a).unwrap().size, 100);
    library.shrink_to(0).unwrap();
    assert_eq!(read(&mut library, b).unwrap().size, 200);
    library.delete_file(b).unwrap();
    library.shrink_to(0).unwrap();
    assert_eq!(read(&mut library, b), Err(HummingbirdError::NotFound));
    assert_eq!(read(&mut library, a).unwrap().size, 100);
    assert!(library.counts().collisions > 0);
}

#[test]
fn clusters_live_as_long_as_their_files_are_used() {
    let config = HummingbirdConfig {
        cluster_life: Some(SimTime::from_secs(10.0)),
        ..config()
    };
    let mut library = library(20, config);
    library.write_file(1, 100, 0).unwrap();
    library.pack().unwrap();
    library.write_file(2, 100, 0).unwrap();
    library.pack().unwrap();
    library.advance(SimTime::from_secs(8.0));
    read(&mut library, 2).unwrap();
    library.advance(SimTime::from_secs(8.0));
    library.free_disk_space();
    assert_eq!((library.len(), library.free_clusters()), (1, 19));
    assert!(read(&mut library, 2).is_ok());
    library.update_cluster_lifetime(None);
    library.update_file_lifetime(Some(SimTime::from_secs(1.0)));
    library.advance(SimTime::from_secs(2.0));
    library.free_disk_space();
    assert!(library.is_empty());
    check(&library);
}

#[test]
fn one_daemon_runs_in_a_second_that_has_idle_time() {
    // In this test only the fourth daemon writes to the logs. So a higher `log_bytes` shows that each daemon
    // has run once more.
    let mut library = library(64, config());
    for name in 0..40 {
        library.write_file(name, 8_000, 0).unwrap();
    }
    read(&mut library, 0).unwrap();
    let start = library.now();
    let mut logs = library.log_bytes();
    let mut writes = Vec::new();
    for tenth in 1..=160u64 {
        library
            .idle(start + SimTime::from_millis(100.0 * tenth as f64))
            .unwrap();
        if library.log_bytes() != logs {
            logs = library.log_bytes();
            writes.push(tenth);
        }
    }
    assert!((3..=5).contains(&writes.len()), "{writes:?}");
    let apart = writes.windows(2).map(|w| w[1] - w[0]);
    assert!(
        apart.clone().all(|tenths| (30..=50).contains(&tenths)),
        "{writes:?}"
    );
}

#[test]
fn without_a_free_cluster_it_says_so() {
    let mut library = library(10, config());
    let failed = (0..1_000).find_map(|name| library.write_file(name, 4_000, 0).err());
    assert_eq!(failed, Some(HummingbirdError::NoCluster));
    check(&library);
}

/// A start after a crash finds the newest version of each packed file, and no file that was deleted before
/// the last flush of the log. The space accounting is right.
#[test]
fn a_crash_keeps_what_was_packed_and_forgets_what_was_deleted() {
    let mut library = library(400, config());
    let mut rng = Rng::new(4);
    let (mut latest, mut gone) = (HashMap::new(), Vec::new());
    for version in 0..1_500u32 {
        let name = rng.below(700);
        if read(&mut library, name).is_ok() {
            library.delete_file(name).unwrap();
            latest.remove(&name);
            gone.push(name);
        }
        if rng.chance(0.9) {
            library
                .write_file(name, 1 + rng.below(3_000), version)
                .unwrap();
            latest.insert(name, version);
        }
        if version % 300 == 0 {
            library.sync_logs().unwrap();
            library.write_mappings().unwrap();
        }
    }
    let packed = library
        .files
        .numbers()
        .filter(|n| library.files.get(*n).unpacked.is_none())
        .count();
    let (mut after, report) = Hummingbird::recover(library.crash(), config()).unwrap();
    assert!(report.hot > 0 && report.files > 0 && report.serving_s > 0.0);
    after.finish_scan().unwrap();
    check(&after);
    let mut back = 0;
    for name in 0..700 {
        if let Ok(found) = read(&mut after, name) {
            assert_eq!(latest.get(&name), Some(&found.version), "{name}");
            back += 1;
        }
    }
    assert!(back >= packed * 9 / 10, "{back} of {packed}");
    assert!(!gone.is_empty());
    after.write_file(10_000, 50, 0).unwrap();
    check(&after);
}

#[test]
fn a_shutdown_keeps_all_of_it() {
    let mut library = library(400, config());
    for name in 0..200 {
        library.write_file(name, 1 + name * 7, name as u32).unwrap();
    }
    let image = library.shutdown().unwrap();
    let (mut after, report) = Hummingbird::recover(image, config()).unwrap();
    assert_eq!(report.files, 200);
    for name in 0..200 {
        let found = read(&mut after, name).unwrap();
        assert_eq!((found.size, found.version), (1 + name * 7, name as u32));
    }
}
