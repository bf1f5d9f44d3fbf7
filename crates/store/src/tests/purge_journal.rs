//! The purge journal while its writer has other work to do: the ticket of a purge ends as durable only after
//! the write that contains the purge.

use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};

use super::purges::purge;
use super::rig::{Rig, geometry};
use crate::*;

const MEMORY: u64 = 512 << 10;

fn begin(rig: &Rig, tag: &str) -> (u64, SyncTicket) {
    let purge = purge(PurgeKind::Tag, tag, false);
    rig.engine
        .purges()
        .purge_many(&purge, Places::Reserved)
        .unwrap()
}

/// Returns true if the purge would survive a power cut now.
fn survives(rig: &Rig, number: u64) -> bool {
    let again = rig.crash_unloaded(Keep::Nothing);
    again.engine.purges().purge_status(number).is_some()
}

#[test]
fn turns_while_a_journal_write_is_under_way_leave_its_tickets_alone() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.settle();
    rig.disk.set_step(true);
    let (first, ticket) = begin(&rig, "one");
    rig.turns(1);
    assert_eq!(rig.disk.held().len(), 1, "its write");
    rig.turns(3);
    assert_eq!(ticket.outcome(), None, "neither done nor failed");
    // A second write waits for the first write, and must not take the completion of the first write for
    // its own.
    let (second, other) = begin(&rig, "two");
    rig.turns(3);
    for _ in 0..20 {
        for (number, ticket) in [(first, &ticket), (second, &other)] {
            match ticket.outcome() {
                None => {}
                Some(outcome) => {
                    assert_eq!(outcome, Durable::Yes);
                    assert!(survives(&rig, number), "acknowledged before it is durable");
                }
            }
        }
        if let Some(op) = rig.disk.held().first() {
            rig.disk.release(op.id);
        }
        rig.turns(2);
    }
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    assert_eq!(other.outcome(), Some(Durable::Yes));
}

#[test]
fn purges_beside_other_writes_are_all_acknowledged_but_not_early() {
    let mut acknowledged = 0;
    for seed in 0..6 {
        let mut rig = Rig::new(16, MEMORY, seed);
        let mut rng = Rng::new(seed);
        let mut waiting: Vec<(u64, SyncTicket)> = Vec::new();
        rig.disk.set_step(true);
        for step in 0..1500 {
            match rng.below(10) {
                0 => waiting.push(begin(&rig, &format!("tag {}", step % 40))),
                1..4 => {
                    rig.put(&format!("key {}", rng.below(50)), &[b'x'; 1500]);
                }
                4..7 => {
                    let held = rig.disk.held();
                    if !held.is_empty() {
                        let at = rng.below(held.len() as u64) as usize;
                        rig.disk.release(held[at].id);
                    }
                }
                _ => {
                    let time = rng.below(30);
                    rig.clock.advance(Duration::from_millis(time));
                    rig.turns(1);
                }
            }
            waiting.retain(|(number, ticket)| {
                let Some(outcome) = ticket.outcome() else {
                    return true;
                };
                assert_eq!(outcome, Durable::Yes, "the disk is healthy");
                acknowledged += 1;
                if rng.below(20) == 0 {
                    let merged = rig
                        .engine
                        .purges()
                        .purge_status(*number)
                        .unwrap()
                        .merged_into;
                    assert!(merged.is_some() || survives(&rig, *number));
                }
                false
            });
        }
        rig.disk.set_step(false);
        rig.settle();
        for (_, ticket) in waiting {
            assert_eq!(ticket.outcome(), Some(Durable::Yes));
        }
    }
    assert!(acknowledged > 300, "{acknowledged}");
}

/// The device reports that it wrote the block, but did not write it. The ticket of this purge must not end as
/// durable. Later purges are durable.
#[test]
fn a_journal_write_that_was_lost_is_not_acknowledged() {
    for fault in [Fault::Lost, Fault::Misdirected(8192), Fault::BitRot(3)] {
        let mut rig = Rig::new(16, MEMORY, 5);
        rig.settle();
        let geometry = geometry(&rig.engine);
        let journal = geometry.journal_at()..geometry.removals_at();
        let lost = FaultRule::new(OpClass::Write, fault)
            .within(journal)
            .times(1);
        rig.disk.set_faults(FaultPlan::none().and(lost));
        let (number, ticket) = begin(&rig, "one");
        rig.turns(10);
        assert_eq!(ticket.outcome(), Some(Durable::Failed));
        assert!(rig.counts().write_errors > 0);
        // The write is tried again after a pause.
        rig.clock.advance(Duration::from_secs(1));
        rig.turns(10);
        rig.settle();
        assert!(survives(&rig, number), "it was written again all the same");
        let (number, ticket) = begin(&rig, "two");
        rig.settle();
        assert_eq!(ticket.outcome(), Some(Durable::Yes));
        assert!(survives(&rig, number));
    }
}

/// If the disk does not complete a journal write, the ticket of `Engine::sync` does not end.
#[test]
fn a_ticket_for_everything_waits_for_the_purges_of_many() {
    let mut rig = Rig::new(16, 1 << 20, 41);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    let geometry = geometry(&rig.engine);
    let journal = geometry.journal_at()..geometry.removals_at();
    let stuck = FaultRule::new(OpClass::Write, Fault::Stuck).within(journal);
    rig.disk.set_faults(FaultPlan::from(stuck.times(1)));
    begin(&rig, "t");
    let ticket = rig.engine.sync();
    for _ in 0..40 {
        rig.clock.advance(Duration::from_millis(100));
        rig.turns(2);
    }
    assert_eq!(ticket.outcome(), None);
    rig.disk.unstick();
    rig.turns(10);
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
}
