//! Segments in quarantine: the superblock records them, and they are tried again on request.

use foxy_base::rule;

use super::Writer;
use super::trouble::Fault;
use crate::shared::StoreShared;

/// Maximum number of bytes of one write or read.
const PART: usize = 1 << 20;

impl Writer {
    /// Writes new segments in quarantine to the superblock, so that the next start knows them. Tries
    /// quarantined segments again if that was requested. Both happen rarely, and wait for the disk.
    pub(super) fn quarantine_step(&mut self) {
        if self.store.member.take_retry() {
            retry_quarantine(&self.store);
        }
        if let Err(error) = self.superblocks.note_quarantine() {
            self.write_failed(&Fault::write(0, error));
        }
    }
}

/// Tries segments in quarantine again. Their contents are lost: the records become misses.
fn retry_quarantine(store: &StoreShared) {
    let disk = store.disk.describe();
    for segment in store.condition.bad_segments() {
        match rewrite(store, segment) {
            Ok(()) => {
                store.condition.forgive(segment);
                tracing::info!(
                    "{disk}: segment {segment} could be written and read: it is used again"
                );
            }
            Err(error) => {
                tracing::warn!("{disk}: segment {segment} stays in quarantine: {error}");
            }
        }
    }
}

fn rewrite(store: &StoreShared, segment: u32) -> std::io::Result<()> {
    let (disk, geometry) = (&store.disk, store.space.geometry());
    let (begin, len) = (
        geometry.segment_at(segment),
        geometry.segment_bytes as usize,
    );
    let zeros = vec![0; PART.min(len)];
    let mut read = zeros.clone();
    for at in (0..len).step_by(PART) {
        let part = PART.min(len - at);
        disk.write_at(begin + at as u64, &zeros[..part])?;
    }
    disk.flush()?;
    for at in (0..len).step_by(PART) {
        let part = PART.min(len - at);
        disk.read_at(begin + at as u64, &mut read[..part])?;
        if rule!(
            "quarantine: a segment is used again if it reads as it was written",
            read[..part].iter().any(|byte| *byte != 0),
            false
        ) {
            return Err(std::io::Error::other(
                "it reads otherwise than it was written",
            ));
        }
    }
    Ok(())
}
