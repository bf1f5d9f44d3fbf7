//! Tests that nothing is allocated twice, that all space can be freed, and that allocations are
//! near each other.

use foxy_base::Rng;

use super::*;

fn groups() -> Groups {
    let config = FsConfig {
        group: 1 << 20,
        min_free: 0.0,
        ..FsConfig::ufs(1 << 20)
    };
    Groups::new(&config, 8 << 20)
}

#[test]
fn no_fragment_is_given_twice_and_all_come_back() {
    let mut groups = groups();
    let all = groups.available();
    let mut rng = Rng::new(5);
    let mut owned = vec![false; 8 << 10];
    let mut live: Vec<(u32, u32)> = Vec::new();
    for _ in 0..20_000 {
        let want = 1 + rng.below(8) as u32;
        if rng.chance(0.55) {
            let Some(at) = groups.allocate_fragments(rng.below(8 << 10) as u32, want) else {
                continue;
            };
            for owner in &mut owned[at as usize..(at + want) as usize] {
                assert!(!std::mem::replace(owner, true));
            }
            live.push((at, want));
        } else if !live.is_empty() {
            let (at, count) = live.swap_remove(rng.below(live.len() as u64) as usize);
            groups.free(at, count);
            owned[at as usize..(at + count) as usize].fill(false);
        }
        let used: u64 = live.iter().map(|(_, n)| u64::from(*n)).sum();
        assert_eq!(groups.available(), all - used);
    }
    live.iter().for_each(|(at, count)| groups.free(*at, *count));
    assert_eq!(groups.available(), all);
    let blocks = std::iter::from_fn(|| groups.allocate_block(0)).count() as u64;
    assert_eq!(blocks * 8, all);
}

#[test]
fn files_grow_contiguously_and_tails_share_blocks() {
    let mut groups = groups();
    let first = groups.allocate_block(groups.first_data(2)).unwrap();
    assert_eq!(first, groups.first_data(2));
    assert_eq!(groups.allocate_block(first + 8), Some(first + 8));
    let tail = groups.allocate_fragments(first, 3).unwrap();
    assert_eq!(groups.allocate_fragments(first, 5), Some(tail + 3));
    groups.free(tail + 3, 5);
    assert!(groups.extend(tail, 3, 8));
    assert!(!groups.extend(first, 8, 9));
}

#[test]
fn inodes_stay_in_their_group_until_it_is_full() {
    let mut groups = groups();
    let per_group = groups.inodes;
    for i in 0..per_group {
        assert_eq!(groups.allocate_inode(3), Some(3 * per_group + i));
    }
    assert_eq!(
        groups.allocate_inode(3).map(|i| groups.of_inode(i)),
        Some(4)
    );
    groups.free_inode(3 * per_group + 70);
    assert_eq!(groups.allocate_inode(3), Some(3 * per_group + 70));
    let spread: std::collections::BTreeSet<_> =
        (0..8).map(|_| groups.group_for_directory()).collect();
    assert!(spread.len() >= 6, "{spread:?}");
}
