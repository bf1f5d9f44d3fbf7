//! Tests that the right entries of a removal log count as active, in every state in which a crash can leave
//! the log.

use foxy_format::{LogPosition, REMOVAL_BYTES, RemovalEntry, Removed, StoreUuid, read_removals};

fn uuid() -> StoreUuid {
    StoreUuid(*b"golden-store-001")
}

/// A log of `places` places, to which these entries were written in this order. Each pair is the number of an
/// entry and the number of older entries that were active when it was written.
fn ring(places: u64, entries: &[(u64, u32)]) -> Vec<u8> {
    let mut log = vec![0; places as usize * REMOVAL_BYTES];
    for (number, before) in entries.iter().copied() {
        let entry = RemovalEntry {
            number,
            before,
            removed: Removed::Place(LogPosition(number)),
        };
        let at = (number % places) as usize * REMOVAL_BYTES;
        log[at..at + REMOVAL_BYTES].copy_from_slice(&entry.encode(uuid()));
    }
    log
}

fn live(log: &[u8]) -> (Vec<u64>, u64) {
    let (entries, next) = read_removals(log, uuid());
    (entries.iter().map(|e| e.number).collect(), next)
}

#[test]
fn the_removal_log_counts_what_has_no_tombstone_yet() {
    assert_eq!(live(&[0; 400]), (vec![], 1));
    assert_eq!(
        live(&ring(10, &[(1, 0), (2, 1), (3, 2)])),
        (vec![1, 2, 3], 4)
    );
    assert_eq!(
        live(&ring(10, &[(1, 0), (2, 1), (3, 1)])),
        (vec![2, 3], 4),
        "1 is done with"
    );
    let full: Vec<_> = (1..=25).map(|n| (n, 9.min(n as u32 - 1))).collect();
    assert_eq!(live(&ring(10, &full)), ((16..=25).collect(), 26));
    let mut other = uuid();
    other.0[0] ^= 1;
    assert_eq!(
        read_removals(&ring(10, &full), other),
        (vec![], 1),
        "another store's"
    );
}

#[test]
fn lost_and_torn_removals_leave_no_former_round_in_their_place() {
    // Entries 12 to 14 were lost: their places still contain entries 2 to 4 of the round before.
    let numbers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15];
    let log = ring(10, &numbers.map(|n| (n, 8)));
    assert_eq!(live(&log), (vec![7, 8, 9, 10, 11, 15], 16));
    // If an entry claims more earlier entries than a round of the ring has, only the entries of one round
    // count.
    let log = ring(10, &[(2, 0), (15, 1 << 20)]);
    assert_eq!(live(&log), (vec![15], 16));
    // An entry lies at a place that it does not belong to.
    let mut log = ring(10, &[(1, 0), (2, 1), (9, 8)]);
    log.copy_within(9 * REMOVAL_BYTES.., 4 * REMOVAL_BYTES);
    log[9 * REMOVAL_BYTES..].fill(0);
    assert_eq!(live(&log), (vec![1, 2], 3));
    // The newest entry is torn, so the entry before it decides.
    let mut log = ring(10, &[(1, 0), (2, 1), (3, 2)]);
    log[3 * REMOVAL_BYTES + 20] ^= 1;
    assert_eq!(live(&log), (vec![1, 2], 3));
}
