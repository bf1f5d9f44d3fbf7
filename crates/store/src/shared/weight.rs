//! The division of new objects among stores. The functions are pure.

/// If a store needs more than this number of seconds to write its backlog, its share is smaller than its
/// capacity. A shorter backlog is normal, because a new object waits until it is old enough to be written
/// ([`StoreOptions::flush_age`](crate::StoreOptions::flush_age), by default one second).
const BACKLOG: f64 = 2.0;
/// Shares change in steps of this part (1/n), so that most groups stay on their stores.
const STEP: f64 = 8.0;

/// Returns the share of a store: its capacity, or less if the store is too slow for the objects that it
/// gets.
///
/// `waits` bytes wait for a store that writes `speed` bytes per second (0: not known). A store with a
/// backlog of more than two seconds gets proportionally less, down to an eighth. So its queue reaches a
/// stable length and does not fill up; a full queue would drop objects while another store is idle.
/// Without a backlog, the share is the capacity.
pub(crate) fn share(capacity: u32, waits: u64, speed: u64) -> f64 {
    let whole = f64::from(capacity.max(1));
    if speed == 0 {
        return whole;
    }
    let behind = waits as f64 / speed as f64;
    let part = (BACKLOG / behind.max(BACKLOG) * STEP).round().max(1.0) / STEP;
    whole * part
}

/// Returns the number of bytes that may wait for one of several stores before new objects go to the other
/// stores. `pending` is the number of bytes that may wait for all stores.
///
/// While more bytes arrive than the stores can write, about half of `pending` waits, because fills (fetches
/// of objects from origins) pause beyond that. Each store gets the part `speed` / `all` of that half, so that
/// each store always has something to write. `all` is the sum of the speeds of the stores. If `all` is 0
/// because the speed of a store is not known, a store leaves a quarter of `pending` to the other stores.
pub(crate) fn room(pending: u64, speed: u64, all: u64) -> u64 {
    if all == 0 {
        return pending / 4 * 3;
    }
    let part = u128::from(pending / 2) * u128::from(speed) / u128::from(all);
    u64::try_from(part).unwrap_or(pending)
}

/// Returns the speed of a store after it wrote `bytes` in `nanos`: an average over about eight writes.
pub(crate) fn speed(before: u64, bytes: u64, nanos: u128) -> u64 {
    let seconds = (nanos as f64 / 1e9).max(1e-6);
    let now = bytes as f64 / seconds;
    let mixed = match before {
        0 => now,
        before => before as f64 * 0.875 + now * 0.125,
    };
    mixed.max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_decides_until_a_store_falls_behind() {
        assert_eq!(share(100, 1 << 30, 0), 100.0, "nothing is known yet");
        assert_eq!(share(100, 0, 1 << 20), 100.0);
        assert_eq!(share(100, 2 << 20, 1 << 20), 100.0, "two seconds");
        assert_eq!(share(100, 4 << 20, 1 << 20), 50.0);
        assert_eq!(share(100, 1 << 40, 1 << 20), 12.5, "it is never left out");
        assert_eq!(share(0, 0, 0), 1.0);
    }

    #[test]
    fn small_changes_of_the_backlog_move_nothing() {
        let shares = (40..44).map(|waits| share(1000, waits << 18, 1 << 21));
        let mut shares: Vec<_> = shares.map(|s| s as u64).collect();
        shares.dedup();
        assert_eq!(shares.len(), 1);
    }

    #[test]
    fn speeds_follow_within_some_writes() {
        let mut known = speed(0, 1 << 20, 1_000_000_000);
        assert_eq!(known, 1 << 20);
        for _ in 0..40 {
            known = speed(known, 1 << 20, 10_000_000_000);
        }
        assert!((100_000..120_000).contains(&known), "{known}");
    }

    /// Four stores have the same capacity, and more bytes arrive than they can write: each store writes
    /// as much as it can.
    #[test]
    fn stores_of_any_speed_are_kept_busy() {
        const PENDING: u64 = 16_000_000;
        let speeds = [1_000_000_u64, 2_000_000, 4_000_000, 8_000_000];
        let (mut waits, mut written) = ([0_u64; 4], [0_u64; 4]);
        let mut random = foxy_base::Rng::new(1);
        for turn in 0..2_000 {
            // The fills (fetches of objects from origins) pause while half of `PENDING` waits.
            while waits.iter().sum::<u64>() < PENDING / 2 {
                let all = speeds.iter().sum();
                let has_room = |n: &usize| waits[*n] < room(PENDING, speeds[*n], all);
                let able: Vec<usize> = (0..4).filter(has_room).collect();
                let shares = able.iter().map(|n| share(100, waits[*n], speeds[*n]));
                let mut at =
                    random.below(1 << 20) as f64 / f64::from(1 << 20) * shares.clone().sum::<f64>();
                let chosen = able.iter().zip(shares).find(|(_, share)| {
                    at -= share;
                    at < 0.0
                });
                waits[*chosen.map_or(&able[0], |(n, _)| n)] += 64 << 10;
            }
            for n in 0..4 {
                // A turn takes 50 ms; only the turns after the first minute are counted.
                let able = waits[n].min(speeds[n] / 20);
                waits[n] -= able;
                written[n] += if turn < 1_200 { 0 } else { able };
            }
        }
        for (written, speed) in written.iter().zip(speeds) {
            let part = *written as f64 / (speed * 40) as f64;
            assert!(part > 0.95, "{part}");
        }
    }

    #[test]
    fn without_speeds_a_quarter_is_left_to_others() {
        assert_eq!(room(1000, 0, 0), 750);
        assert_eq!(room(1000, 5, 5), 500);
        assert_eq!(room(u64::MAX, u64::MAX, 1), u64::MAX, "no sum, no panic");
    }

    /// Two stores have the same capacity, and one store is too slow for its half of the arriving bytes. The
    /// queue of the slow store stays bounded, and the fast store takes the rest.
    #[test]
    fn the_queue_of_a_slow_store_settles() {
        let (speeds, mut waits) = ([1_000_000_u64, 50_000_000], [0_u64, 0]);
        for _ in 0..2_000 {
            let shares = [0, 1].map(|n| share(100, waits[n], speeds[n]));
            let all: f64 = shares.iter().sum();
            for n in [0, 1] {
                // 5 MB/s arrive, in steps of 100 ms.
                waits[n] += (500_000.0 * shares[n] / all) as u64;
                waits[n] = waits[n].saturating_sub(speeds[n] / 10);
            }
        }
        assert!(waits[0] < 20_000_000, "{waits:?}");
        assert!(waits[1] < 1_000_000, "{waits:?}");
    }
}
