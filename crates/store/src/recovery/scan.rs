//! The contents of a segment, found by searching for its clusters.

use std::io;

use foxy_base::rule;
use foxy_format::{BLOCK, ClusterHeader, Entry, UNIT, chain_sum};

use super::chain::Seen;
use crate::interface::add;
use crate::shared::StoreShared;

/// The contents of a segment.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The sequence number of the segment's incarnation.
    pub(crate) sequence: u64,
    /// All entries, in order of writing.
    pub(crate) entries: Vec<Entry>,
    /// The end of the last cluster, in units.
    pub(crate) end_units: u32,
    /// The clusters of the segment, in the order of their places.
    pub(crate) clusters: Vec<Seen>,
}

/// Reads a whole segment and returns every cluster of one incarnation: of `sequence`, or of the newest
/// incarnation found. Returns `None` if no `sequence` is given and the segment contains no cluster.
///
/// # Errors
/// An error if the segment cannot be read in three attempts.
///
/// A torn or damaged cluster does not end the scan: the writer writes several clusters at the same time, so a
/// later cluster may be valid. Each cluster contains its place and its incarnation, so bytes of earlier
/// incarnations, of other places and of bodies are not taken for clusters. [`super::chain`] finds out which
/// clusters are missing, and why.
pub(crate) fn scan_segment(
    store: &StoreShared,
    index: u32,
    sequence: Option<u64>,
) -> io::Result<Option<Scan>> {
    let bytes = read_segment(store, index)?;
    let Some(wanted) = sequence.or_else(|| newest_incarnation(store, index, &bytes)) else {
        return Ok(None);
    };
    let scan = search(store, index, wanted, &bytes);
    if rule!(
        "scan: where a cluster is missing the device is asked again",
        hides_something(store, index, &scan),
        false
    ) {
        let bytes = read_segment(store, index)?;
        return Ok(Some(search(store, index, wanted, &bytes)));
    }
    Ok(Some(scan))
}

/// Returns whether a second read shows the beginning of a cluster where the first read showed none. Clusters
/// follow each other without gaps. So the first cluster that a faulty read hides begins where a valid cluster
/// ends, or where the segment begins. (If a torn cluster begins there, the segment is read a second time
/// although the first read was right.)
fn hides_something(store: &StoreShared, index: u32, scan: &Scan) -> bool {
    let geometry = store.space.geometry();
    let ends = scan.clusters.iter().map(|seen| seen.end);
    let mut begins = scan.clusters.iter().map(|seen| seen.at).peekable();
    let mut free = [0].into_iter().chain(ends).filter(|end| {
        while begins.next_if(|at| at < end).is_some() {}
        begins.peek() != Some(end)
    });
    free.any(|end| {
        let at = u64::from(end) * UNIT;
        let mut block = [0; BLOCK as usize];
        at < u64::from(geometry.segment_bytes)
            && (store
                .disk
                .read_at(geometry.segment_at(index) + at, &mut block))
            .is_ok()
            && ClusterHeader::claimed(&block).is_some_and(|header| {
                header.sequence == scan.sequence
                    && is_own(store, index, &header)
                    && header.offset_units == end
            })
    })
}

/// Returns every cluster of the incarnation `wanted` in the bytes of a segment.
fn search(store: &StoreShared, index: u32, wanted: u64, bytes: &[u8]) -> Scan {
    let mut scan = Scan {
        sequence: wanted,
        entries: Vec::new(),
        end_units: 0,
        clusters: Vec::new(),
    };
    let mut at = 0;
    while at < bytes.len() as u64 {
        match cluster_at(store, index, bytes, at) {
            Some((header, mut entries))
                if rule!(
                    "scan: a cluster of an earlier incarnation is not valid",
                    header.sequence == wanted,
                    true
                ) =>
            {
                scan.end_units = header.offset_units + header.len_units;
                scan.clusters.push(Seen {
                    at: header.offset_units,
                    end: scan.end_units,
                    sum: chain_sum(&bytes[at as usize..]).unwrap_or_default(),
                    link: header.link,
                });
                at += u64::from(header.len_units) * UNIT;
                scan.entries.append(&mut entries);
            }
            // The bytes of clusters of earlier incarnations are searched as well: a cluster of this
            // incarnation may begin inside such a cluster.
            _ => {
                at += rule!(
                    "scan: clusters of earlier incarnations are searched through, not jumped over",
                    BLOCK,
                    cluster_at(store, index, bytes, at)
                        .map_or(BLOCK, |(header, _)| u64::from(header.len_units) * UNIT)
                );
            }
        }
    }
    scan
}

/// Reads all bytes of a segment. A segment contains many records, so a failed read is tried again.
fn read_segment(store: &StoreShared, index: u32) -> io::Result<Vec<u8>> {
    let geometry = store.space.geometry();
    let mut bytes = vec![0; geometry.segment_bytes as usize];
    add(&store.counters.load_scans, 1);
    let mut attempt = || {
        add(&store.counters.load_bytes, bytes.len() as u64);
        store.disk.read_at(geometry.segment_at(index), &mut bytes)
    };
    let read = rule!(
        "scan: a segment is lost at the third attempt to read it, not at the first",
        attempt().or_else(|_| attempt()).or_else(|_| attempt()),
        attempt()
    );
    if let Err(error) = read {
        tracing::warn!(store = %store.disk.describe(), index, %error, "segment cannot be read; its contents are lost");
        add(&store.counters.read_errors, 1);
        return Err(error);
    }
    Ok(bytes)
}

fn newest_incarnation(store: &StoreShared, index: u32, bytes: &[u8]) -> Option<u64> {
    let places = (0..bytes.len() as u64).step_by(BLOCK as usize);
    places
        .filter_map(|at| cluster_at(store, index, bytes, at))
        .map(|(header, _)| header.sequence)
        .max()
}

/// Returns the cluster at byte `at` of a segment, if it is valid and names this place as its own.
fn cluster_at(
    store: &StoreShared,
    index: u32,
    bytes: &[u8],
    at: u64,
) -> Option<(ClusterHeader, Vec<Entry>)> {
    let decoded = ClusterHeader::decode(
        bytes.get(at as usize..)?,
        store.space.geometry().segment_bytes,
    );
    decoded.ok().filter(|(header, _)| {
        is_own(store, index, header)
            && rule!(
                "scan: a cluster that does not lie where it says is not valid",
                u64::from(header.offset_units) * UNIT == at,
                true
            )
    })
}

/// Returns whether a cluster belongs to this store and segment.
fn is_own(store: &StoreShared, index: u32, header: &ClusterHeader) -> bool {
    rule!(
        "scan: a cluster of another store is not valid",
        header.uuid == store.space.uuid(),
        true
    ) && rule!(
        "scan: a cluster of another segment is not valid",
        header.segment == index && store.space.geometry().segment_of(header.sequence) == index,
        true
    )
}
