//! Tests with absurd parameters and random calls: sizes are right, space is freed, and runs are repeatable.

use foxy_base::Rng;
use proptest::prelude::*;

use super::{super::*, fs};
use crate::model::{Drive, SimTime};

#[test]
fn absurd_parameters_make_a_small_file_system_not_a_crash() {
    let zero = SimTime::ZERO;
    let config = FsConfig {
        bytes: 1,
        page_cache: 0,
        block_cache: 0,
        block: 0,
        fragment: 0,
        group: 0,
        bytes_per_inode: 0,
        min_free: f64::NAN,
        max_contig: 0,
        max_per_group: 0,
        name_bytes: 0,
        name_cache: 0,
        inode_cache: 0,
        update_every: zero,
        update_age: zero,
        ..FsConfig::xfs(0)
    };
    let mut fs = fs(config);
    let root = fs.root();
    for name in 0..1_000 {
        let Ok(file) = fs.create(root, name) else {
            break;
        };
        let _ = fs.write(file, name * 700, 1_000);
        fs.close(file);
    }
    fs.sync();
    let params = crate::model::drive::DiskParams {
        rpm: 0.0,
        heads: 0,
        zones: Vec::new(),
        ..Drive::disk_params("hdd20t").unwrap()
    };
    let mut drive = Drive::disk(params);
    assert!(drive.serve(zero, crate::model::Request::write(0, 4_096)) > zero);
}

/// Makes random calls. Compares the size of each file with the size that a program would expect.
fn storm(seed: u64, config: FsConfig) -> (SimTime, u64) {
    let mut fs = fs(config);
    let root = fs.root();
    let dirs: Vec<_> = (0..3).map(|name| fs.mkdir(root, name).unwrap()).collect();
    let mut rng = Rng::new(seed);
    let mut expected = std::collections::BTreeMap::new();
    let mut last = fs.now();
    for _ in 0..400 {
        let (dir, name) = (rng.below(3) as usize, rng.below(40));
        let (offset, len) = (rng.below(30_000), rng.below(40_000));
        let key = (dir, name);
        match rng.below(5) {
            0 => {
                let new = !expected.contains_key(&key);
                assert_eq!(fs.create(dirs[dir], name).is_ok(), new);
                expected.entry(key).or_insert(0);
            }
            1 => assert_eq!(
                fs.delete(dirs[dir], name).is_ok(),
                expected.remove(&key).is_some()
            ),
            op => {
                let Some(size) = expected.get_mut(&key) else {
                    continue;
                };
                let file = fs.open(dirs[dir], name).unwrap();
                if op == 2 {
                    fs.write(file, offset, len).unwrap();
                    *size = if len == 0 {
                        *size
                    } else {
                        (offset + len).max(*size)
                    };
                }
                assert_eq!(fs.size(file), *size);
                assert_eq!(
                    fs.read(file, offset, len).unwrap(),
                    size.saturating_sub(offset).min(len)
                );
                fs.close(file);
            }
        }
        assert!(fs.now() >= last);
        last = fs.now();
        if rng.chance(0.02) {
            fs.advance(SimTime::from_secs(7.0));
        }
    }
    for (dir, name) in expected.keys() {
        fs.delete(dirs[*dir], *name).unwrap();
    }
    fs.sync();
    assert_eq!(fs.counters().requests(), fs.counters().drive.requests());
    (fs.now(), fs.available())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn sizes_hold_space_returns_and_runs_repeat(seed in any::<u64>(), mode in 0..4u8) {
        let pages = 512 << 10;
        let config = match mode {
            0 => FsConfig::ufs(pages),
            1 => FsConfig::ffs_async(pages),
            2 => FsConfig::ffs_soft(pages),
            _ => FsConfig::xfs(pages),
        };
        let config = FsConfig { name_cache: 16, inode_cache: 16, block_cache: 64 << 10, ..config };
        let (end, free) = storm(seed, config.clone());
        prop_assert_eq!((end, free), storm(seed, config.clone()));
        let empty = {
            let mut fs = fs(config.clone());
            let root = fs.root();
            (0..3).for_each(|name| assert!(fs.mkdir(root, name).is_ok()));
            fs.available()
        };
        // Directories do not shrink, so each of the three directories may keep one block.
        prop_assert!(free <= empty && empty - free <= 3 * config.block);
    }
}
