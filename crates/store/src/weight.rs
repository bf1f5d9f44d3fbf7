//! How new objects are shared out among stores. A pure decision.

/// Seconds of work that may wait for a store before it gets less than its capacity's share: about
/// as much waits anyway until it is old enough to be written.
const BACKLOG: f64 = 2.0;
/// Shares move in steps of this part, so that most groups stay where they are.
const STEP: f64 = 8.0;

/// The share of a store: its capacity, less if it does not get on with what it is given.
///
/// `waits` bytes are to be written by a store that writes `speed` bytes per second (0: not known).
/// A store behind by more than two seconds gets proportionally less, down to an eighth, so that
/// its queue settles there instead of filling up: then admissions would be dropped while another
/// store idles. Without a backlog the share is the capacity alone.
pub(crate) fn share(capacity: u32, waits: u64, speed: u64) -> f64 {
    let whole = f64::from(capacity.max(1));
    if speed == 0 {
        return whole;
    }
    let behind = waits as f64 / speed as f64;
    let part = (BACKLOG / behind.max(BACKLOG) * STEP).round().max(1.0) / STEP;
    whole * part
}

/// The speed of a store after it wrote `bytes` in `nanos`: an average over about eight writes.
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

    /// Two stores of one capacity, one ten times slower than what comes in: the queue of the slow
    /// one stays bounded, and the fast one takes the rest.
    #[test]
    fn the_queue_of_a_slow_store_settles() {
        let (speeds, mut waits) = ([1_000_000_u64, 50_000_000], [0_u64, 0]);
        for _ in 0..2_000 {
            let shares = [0, 1].map(|n| share(100, waits[n], speeds[n]));
            let all: f64 = shares.iter().sum();
            for n in [0, 1] {
                // 5 MB/s come in, in steps of 100 ms.
                waits[n] += (500_000.0 * shares[n] / all) as u64;
                waits[n] = waits[n].saturating_sub(speeds[n] / 10);
            }
        }
        assert!(waits[0] < 20_000_000, "{waits:?}");
        assert!(waits[1] < 1_000_000, "{waits:?}");
    }
}
