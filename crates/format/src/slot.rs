//! The summary slot of a segment: its state and, once sealed, everything in it.

use crate::bytes_io::{Put, Take, check_crc, check_mark};
use crate::entry::decode_entries;
use crate::{ENTRY_BYTES, Entry, FORMAT_VERSION, FormatError, StoreUuid};
use foxy_base::rule;

/// Length of a slot's header; the entries follow.
pub const SLOT_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FXSM";

/// The state of a segment's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SegmentState {
    /// Being written: its clusters list its contents, and nothing older counts.
    Open = 1,
    /// Full; the slot lists everything in it.
    Sealed = 2,
    /// Full; there was no room for all of the summary, so its clusters list its contents.
    SealedOverflow = 3,
    /// Taken out of use after a fault; nothing in it counts.
    Retired = 4,
}

/// The first bytes of a slot; can be read without the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// State of the segment.
    pub state: SegmentState,
    /// Identity of the store.
    pub uuid: StoreUuid,
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Its life, counted from 1 over the whole store.
    pub sequence: u64,
    /// Units of the segment that are filled.
    pub used_units: u32,
    /// Entries that follow.
    pub entries: u32,
    /// CRC32C of the entries' bytes.
    pub entries_crc: u32,
    /// Number of the last cluster of this life that was durable when the slot was written
    /// ([`crate::ChainLink`]); 0: none, or not known.
    pub last_cluster: u64,
}

/// The bytes of a summary with `entries`. Bytes that do not fit into the slot lie at the end of the
/// segment ([`crate::Geometry::spill_at`]). Sets the header's count and checksum of entries.
#[must_use]
pub fn encode_slot(header: &SlotHeader, entries: &[Entry]) -> Vec<u8> {
    let mut table = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        entry.encode(&mut table);
    }
    let mut out = Vec::with_capacity(SLOT_HEADER_BYTES + table.len());
    let mut put = Put(&mut out);
    put.bytes(&MAGIC);
    put.u16(FORMAT_VERSION);
    put.u8(header.state as u8);
    put.u8(0);
    put.bytes(&header.uuid.0);
    put.u32(header.segment);
    put.u32(header.used_units);
    put.u64(header.sequence);
    put.u32(entries.len() as u32);
    put.u32(foxy_base::crc32c(&table));
    put.u48(header.last_cluster);
    put.pad_to(SLOT_HEADER_BYTES - 4);
    let crc = foxy_base::crc32c(&out);
    Put(&mut out).u32(crc);
    out.extend_from_slice(&table);
    out
}

impl SlotHeader {
    /// Reads a slot's header.
    ///
    /// # Errors
    /// `Empty` for zeros (a segment never used); any other means a damaged slot.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = bytes
            .get(..SLOT_HEADER_BYTES)
            .ok_or(FormatError::Truncated)?;
        let mut take = Take::new(bytes);
        check_mark(&mut take, MAGIC, bytes)?;
        check_crc(bytes, SLOT_HEADER_BYTES - 4)?;
        let state = match take.u8()? {
            1 => SegmentState::Open,
            2 => SegmentState::Sealed,
            3 => SegmentState::SealedOverflow,
            4 => SegmentState::Retired,
            _ => return Err(FormatError::Invalid("segment state")),
        };
        take.zeros(1)?;
        let uuid = StoreUuid(take.array()?);
        let (segment, used_units, sequence) = (take.u32()?, take.u32()?, take.u64()?);
        let (entries, entries_crc) = (take.u32()?, take.u32()?);
        let last_cluster = take.u48()?;
        take.zeros(SLOT_HEADER_BYTES - 4 - 54)?;
        Ok(Self {
            state,
            uuid,
            segment,
            sequence,
            used_units,
            entries,
            entries_crc,
            last_cluster,
        })
    }
}

/// Reads the entries behind a slot's header; `slot` is the whole summary, header included.
///
/// # Errors
/// A damaged table is refused as a whole.
pub fn decode_slot_entries(
    header: &SlotHeader,
    slot: &[u8],
    segment_bytes: u32,
) -> Result<Vec<Entry>, FormatError> {
    let table = slot
        .get(SLOT_HEADER_BYTES..)
        .ok_or(FormatError::Truncated)?;
    let len = (header.entries as usize)
        .checked_mul(ENTRY_BYTES)
        .ok_or(FormatError::Truncated)?;
    let bytes = table.get(..len).ok_or(FormatError::Truncated)?;
    if rule!(
        "slot: the checksum of its entries is compared",
        foxy_base::crc32c(bytes) != header.entries_crc,
        false
    ) {
        return Err(FormatError::Checksum);
    }
    decode_entries(bytes, header.entries, segment_bytes)
}
