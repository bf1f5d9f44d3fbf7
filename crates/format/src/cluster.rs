//! The cluster: the unit of writing. A header, a table of entries, then the records.

use crate::bytes_io::{Put, Take, check_mark};
use crate::entry::decode_entries;
use crate::{
    BLOCK, ENTRY_BYTES, Entry, FORMAT_VERSION, FormatError, StoreUuid, UNIT, round_to_unit,
};

/// Length of a cluster's header; the table of entries follows, records begin at the next unit.
pub const CLUSTER_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FXCL";

/// Bytes of header and table with `entries` entries, rounded to whole units: where records begin.
#[must_use]
pub const fn cluster_table_bytes(entries: usize) -> usize {
    round_to_unit((CLUSTER_HEADER_BYTES + entries * ENTRY_BYTES) as u64) as usize
}

/// The header of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterHeader {
    /// Whose store.
    pub uuid: StoreUuid,
    /// Which life of its segment.
    pub sequence: u64,
    /// Which segment.
    pub segment: u32,
    /// Where in the segment, in units; a multiple of a block.
    pub offset_units: u32,
    /// Length of the whole cluster in units; a multiple of a block.
    pub len_units: u32,
    /// Entries in the table.
    pub entries: u32,
}

impl ClusterHeader {
    /// The bytes of header and table, without padding.
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
    /// Anything but a whole header and table is refused; a torn table has a wrong checksum.
    pub fn decode(bytes: &[u8], segment_bytes: u32) -> Result<(Self, Vec<Entry>), FormatError> {
        let mut take = Take::new(bytes);
        check_mark(&mut take, MAGIC, &[1])?;
        take.zeros(2)?;
        let header = Self {
            uuid: StoreUuid(take.array()?),
            sequence: take.u64()?,
            segment: take.u32()?,
            offset_units: take.u32()?,
            len_units: take.u32()?,
            entries: take.u32()?,
        };
        take.zeros(CLUSTER_HEADER_BYTES - 4 - 48)?;
        let crc = take.u32()?;
        let table = CLUSTER_HEADER_BYTES + header.entries as usize * ENTRY_BYTES;
        let bytes = bytes.get(..table).ok_or(FormatError::Truncated)?;
        if crc_of(bytes) != crc {
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

    fn check(&self, table: usize, segment_bytes: u32) -> Result<(), FormatError> {
        let (at, len) = (
            u64::from(self.offset_units) * UNIT,
            u64::from(self.len_units) * UNIT,
        );
        let aligned = at.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK);
        if !aligned || len < table as u64 || at + len > u64::from(segment_bytes) {
            return Err(FormatError::Invalid("cluster place"));
        }
        Ok(())
    }
}

/// Checksum of header and table, leaving out the field that holds it.
fn crc_of(bytes: &[u8]) -> u32 {
    let crc = foxy_base::crc32c(&bytes[..CLUSTER_HEADER_BYTES - 4]);
    foxy_base::crc32c_append(crc, &bytes[CLUSTER_HEADER_BYTES..])
}
