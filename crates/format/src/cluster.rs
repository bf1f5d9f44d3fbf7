//! The cluster: the unit of writing. It consists of a header, a table of entries, and the records that the
//! entries describe.
//!
//! A store writes its clusters one after another into segments (large regions, usually of 32 MiB). This
//! sequence of clusters is the log of the store. When a segment is reused, its next *incarnation* begins,
//! with a new sequence number. Addresses and lengths in segments are counted in units of 16 bytes.

use crate::bytes_io::{Put, Take, check_mark};
use crate::entry::decode_entries;
use crate::{
    BLOCK, ENTRY_BYTES, Entry, FORMAT_VERSION, FormatError, StoreUuid, UNIT, round_to_unit,
};
use foxy_base::rule;

/// Length of a cluster's header in bytes. The table of entries follows the header. Records begin at the first
/// unit after the table.
pub const CLUSTER_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FXCL";

/// Length in bytes of a header and a table of `entries` entries, rounded up to whole units. The first record
/// of the cluster begins at this offset.
#[must_use]
pub const fn cluster_table_bytes(entries: usize) -> usize {
    round_to_unit((CLUSTER_HEADER_BYTES + entries * ENTRY_BYTES) as u64) as usize
}

/// The link of a cluster in the chain (extension `chain` of the format). The chain consists of all clusters
/// of a store: they are numbered in order of writing, and each contains the checksum of the previous one.
/// Clusters that were written without the extension have zeros here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// Number of the cluster in the store, in order of writing: from 1, below 2^48. 0 means that there is no
    /// link.
    pub number: u64,
    /// Checksum of the cluster with the previous number, as [`chain_sum`] returns it, or [`CHAIN_BEGINS`], or
    /// [`CHAIN_UNKNOWN`].
    pub before: u32,
    /// Number of an earlier cluster. When the cluster with this link was written, the log was durable up to
    /// and including the earlier cluster. 0 means that no such number is known. On disk, the field contains
    /// the distance from this number to [`Self::number`]. A distance of 65,535 or more means that no such
    /// number is known.
    pub flushed: u64,
}

/// A value of [`ChainLink::before`]. It means that the chain begins anew with this cluster. If numbers before
/// this cluster's number are missing, they were never assigned.
pub const CHAIN_BEGINS: u32 = 0;
/// A value of [`ChainLink::before`]. It means that the previous number was assigned, but the writer did not
/// know the checksum of the cluster with that number.
pub const CHAIN_UNKNOWN: u32 = 1;
/// All cluster numbers are below this limit.
const NUMBERS: u64 = 1 << 48;

/// The checksum of a cluster, as the link of the next cluster contains it. `bytes` begin with the cluster's
/// header. The result is never `CHAIN_BEGINS` or `CHAIN_UNKNOWN`. It is `None` if `bytes` are too short.
#[must_use]
pub fn chain_sum(bytes: &[u8]) -> Option<u32> {
    let field = bytes.get(CLUSTER_HEADER_BYTES - 4..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field).max(CHAIN_UNKNOWN + 1))
}

impl ChainLink {
    fn encode(&self, put: &mut Put<'_>) {
        debug_assert!(self.number < NUMBERS && self.flushed <= self.number);
        put.u32(self.before);
        put.u48(self.number);
        let distance = self.number - self.flushed.min(self.number);
        put.u16(u16::try_from(distance).unwrap_or(u16::MAX));
    }

    fn decode(take: &mut Take<'_>) -> Result<Self, FormatError> {
        let (before, number, distance) = (take.u32()?, take.u48()?, take.u16()?);
        let flushed = match distance {
            u16::MAX => rule!(
                "cluster: a flushed number too far back for its field is not known",
                Some(0),
                Some(number.saturating_sub(65_535))
            ),
            distance => number.checked_sub(u64::from(distance)),
        };
        let link = flushed.map(|flushed| Self {
            number,
            before,
            flushed,
        });
        let valid = |link: &Self| match link.number {
            0 => *link == Self::default(),
            number => link.flushed < number,
        };
        link.filter(valid)
            .ok_or(FormatError::Invalid("chain of clusters"))
    }
}

/// The header of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterHeader {
    /// Identity of the store.
    pub uuid: StoreUuid,
    /// Sequence number of the segment's incarnation.
    pub sequence: u64,
    /// Number of the segment.
    pub segment: u32,
    /// Offset of the cluster in the segment, in units; a multiple of a block.
    pub offset_units: u32,
    /// Length of the complete cluster in units; a multiple of a block.
    pub len_units: u32,
    /// Number of entries in the table.
    pub entries: u32,
    /// Position of the cluster in the chain of clusters.
    pub link: ChainLink,
}

impl ClusterHeader {
    /// Encodes header and table, without padding.
    #[must_use]
    pub fn encode(&self, entries: &[Entry]) -> Vec<u8> {
        let mut out = Vec::with_capacity(CLUSTER_HEADER_BYTES + entries.len() * ENTRY_BYTES);
        let mut put = Put(&mut out);
        put.bytes(&MAGIC);
        put.u16(FORMAT_VERSION);
        put.u16(0);
        put.bytes(&self.uuid.0);
        put.u64(self.sequence);
        put.u32(self.segment);
        put.u32(self.offset_units);
        put.u32(self.len_units);
        put.u32(entries.len() as u32);
        self.link.encode(&mut put);
        put.pad_to(CLUSTER_HEADER_BYTES);
        for entry in entries {
            entry.encode(&mut out);
        }
        let crc = crc_of(&out);
        out[CLUSTER_HEADER_BYTES - 4..CLUSTER_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads header and table from `bytes`, which begin at the cluster.
    ///
    /// # Errors
    /// Returned if the header or the table is incomplete or damaged. A table that was written only in part
    /// (torn) has a wrong checksum.
    pub fn decode(bytes: &[u8], segment_bytes: u32) -> Result<(Self, Vec<Entry>), FormatError> {
        let mut take = Take::new(bytes);
        let header = Self::take(&mut take)?;
        let crc = take.u32()?;
        let table = CLUSTER_HEADER_BYTES + header.entries as usize * ENTRY_BYTES;
        let bytes = bytes.get(..table).ok_or(FormatError::Truncated)?;
        if rule!(
            "cluster: the checksum of header and table is compared",
            crc_of(bytes) != crc,
            false
        ) {
            return Err(FormatError::Checksum);
        }
        header.check(table, segment_bytes)?;
        let entries = decode_entries(
            &bytes[CLUSTER_HEADER_BYTES..],
            header.entries,
            segment_bytes,
        )?;
        Ok((header, entries))
    }

    /// The header at the beginning of `bytes`, unverified: its checksum, which also covers the table, is not
    /// compared. `None` if there is no header.
    #[must_use]
    pub fn claimed(bytes: &[u8]) -> Option<Self> {
        Self::take(&mut Take::new(bytes)).ok()
    }

    fn take(take: &mut Take<'_>) -> Result<Self, FormatError> {
        check_mark(take, MAGIC, &[1])?;
        take.zeros(2)?;
        Ok(Self {
            uuid: StoreUuid(take.array()?),
            sequence: take.u64()?,
            segment: take.u32()?,
            offset_units: take.u32()?,
            len_units: take.u32()?,
            entries: take.u32()?,
            link: ChainLink::decode(take)?,
        })
    }

    fn check(&self, table: usize, segment_bytes: u32) -> Result<(), FormatError> {
        let (at, len) = (
            u64::from(self.offset_units) * UNIT,
            u64::from(self.len_units) * UNIT,
        );
        let aligned = at.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK);
        let fits = len >= table as u64 && at + len <= u64::from(segment_bytes);
        if !rule!("cluster: it lies within its segment", aligned && fits, true) {
            return Err(FormatError::Invalid("cluster place"));
        }
        Ok(())
    }
}

/// Checksum of header and table, without the field that contains the checksum.
fn crc_of(bytes: &[u8]) -> u32 {
    let crc = foxy_base::crc32c(&bytes[..CLUSTER_HEADER_BYTES - 4]);
    foxy_base::crc32c_append(crc, &bytes[CLUSTER_HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(link: ChainLink) -> Result<ChainLink, FormatError> {
        let mut bytes = Vec::new();
        link.encode(&mut Put(&mut bytes));
        assert_eq!(bytes.len(), CLUSTER_HEADER_BYTES - 4 - 48);
        ChainLink::decode(&mut Take::new(&bytes))
    }

    /// If the distance to the cluster in [`ChainLink::flushed`] is too large for the field, `flushed` is 0
    /// after decoding. A wrong number could name a cluster that was not durable.
    #[test]
    fn a_flushed_number_far_back_reads_as_not_known() {
        let link = |flushed| ChainLink {
            number: 100_000,
            before: 7,
            flushed,
        };
        for flushed in [100_000 - 1, 100_000 - 65_534] {
            assert_eq!(round(link(flushed)), Ok(link(flushed)));
        }
        for flushed in [100_000 - 65_535, 100_000 - 65_536, 1, 0] {
            assert_eq!(round(link(flushed)), Ok(link(0)));
        }
        assert_eq!(round(ChainLink::default()), Ok(ChainLink::default()));
        // A cluster cannot state that the log is durable up to itself or further.
        assert!(round(link(100_000)).is_err());
        let mut bytes = Vec::new();
        Put(&mut bytes).bytes(&[9, 0, 0, 0, 3, 0, 0, 0, 0, 0, 4, 0]);
        assert!(ChainLink::decode(&mut Take::new(&bytes)).is_err());
    }
}
