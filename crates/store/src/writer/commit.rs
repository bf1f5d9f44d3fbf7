//! Clusters whose write has ended: their records are entered into the index or, after a failure, given
//! up.

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::LogPosition;

use super::Writer;
use super::flight::Cluster;
use super::trouble::Fault;
use crate::interface::Spot;
use crate::shared::Removal;

impl Writer {
    /// Handles the end of the write of a cluster, successful or not.
    pub(super) fn cluster_done(
        &mut self,
        number: u64,
        result: std::io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        let Some(cluster) = self.flight.end(number, buf) else {
            return;
        };
        self.log.cluster_ended(cluster.sequence);
        match result {
            Ok(()) => {
                self.store.condition.wrote_well();
                self.flight.measure(&cluster, self.now);
                let again = self.reuse.reinserter();
                self.objects
                    .commit_all(&cluster.records, |ticket| again.replaces(ticket));
                self.log.chain_mut().complete(&cluster.given_up);
            }
            Err(error) => self.cluster_failed(cluster, error),
        }
    }

    /// Informs the removal log of the removals that durable clusters confirm. Releases the removals of an
    /// earlier run when all of them are confirmed.
    pub(crate) fn settle_removals(&mut self) {
        let open = rule!(
            "removal log: an entry is active until its tombstone is confirmed",
            self.log.chain().first_removal(),
            None
        );
        let waiting = [
            open,
            rule!(
                "removal log: an entry is active while its removal waits for a cluster",
                self.gather.first_removal(),
                None
            ),
        ];
        let waiting = waiting.into_iter().flatten().min();
        if self.store.removals_settled(waiting) {
            self.store.let_go();
            self.store.removals_settled(waiting);
        }
    }

    /// Drops the records of a failed cluster and puts its removals back. Records that reached the disk
    /// in spite of the error become dead, so that they do not return.
    fn cluster_failed(&mut self, cluster: Cluster, error: std::io::Error) {
        let first = self.store.space.geometry().segment_at(cluster.segment);
        let offset = (cluster.range.start - first) / foxy_format::UNIT;
        let at = LogPosition::new(cluster.sequence, offset as u32);
        rule!(
            "chain: the number of a cluster that could not be written is given up",
            self.log.chain_mut().failed(cluster.number, at),
            ()
        );
        rule!(
            "write: removals of a cluster that failed are written again",
            self.gather.removals_again(cluster.removals, self.now),
            ()
        );
        let places = cluster
            .records
            .iter()
            .map(|w| self.store.space.position(Spot::of(&w.entry)));
        let places: Vec<_> = places.flatten().map(Removal::Place).collect();
        rule!(
            "write: records of a cluster that failed become dead",
            self.store.remove_all(&places),
            ()
        );
        for written in &cluster.records {
            self.objects.forget(written.hash, written.ticket);
        }
        self.write_failed(&Fault::write(cluster.range.start, error));
    }

    /// Handles a failed write or flush: the waiting tickets end as failed, and the store may become
    /// read-only.
    pub(super) fn write_failed(&mut self, fault: &Fault) {
        self.tickets.fail();
        self.trouble.failed(fault, self.now);
    }
}
