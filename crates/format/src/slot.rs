//! The summary slot of a segment: the segment's state, and the list of its contents when it is complete
//! (sealed).

use crate::bytes_io::{Put, Take, check_crc, check_mark};
use crate::entry::decode_entries;
use crate::{ENTRY_BYTES, Entry, FORMAT_VERSION, FormatError, StoreUuid};
use foxy_base::rule;

/// Length of a slot's header in bytes; the entries follow.
pub const SLOT_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FXSM";

/// The state of a segment's incarnation (one use of the segment, until it is reused).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SegmentState {
    /// The segment is being written. Its clusters list its contents, and older contents are dead.
    Open = 1,
    /// The segment is full. The slot lists all its contents.
    Sealed = 2,
    /// The segment is full, but there was no space for the complete summary. Its clusters list its contents.
    SealedOverflow = 3,
    /// The segment is out of use after a fault. Its contents are dead.
    Retired = 4,
}

/// The first bytes of a slot. They can be read without the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// State of the segment.
    pub state: SegmentState,
    /// Identity of the store.
    pub uuid: StoreUuid,
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Sequence number of the segment's incarnation, counted from 1 over the whole store.
    pub sequence: u64,
    /// Number of units of the segment that are filled.
    pub used_units: u32,
    /// Number of entries that follow.
    pub entries: u32,
    /// CRC32C of the entries' bytes.
    pub entries_crc: u32,
    /// Number of the last cluster of this incarnation that was durable when the slot was written
    /// ([`crate::ChainLink`]). 0 means that there is no such cluster, or that the writer of the slot did not
    /// know its number.
    pub last_cluster: u64,
}

/// Number of entries that are encoded at a time.
const SOME: usize = 128;

/// Encodes a summary with `entries` in one piece. Sets the count and the checksum of the entries in the
/// header.
#[must_use]
pub fn encode_slot(header: &SlotHeader, entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![0; SLOT_HEADER_BYTES + entries.len() * ENTRY_BYTES];
    encode_slot_into(header, entries, &mut out, &mut []);
    out
}

/// Encodes a summary like [`encode_slot`], but writes it into `slot`. The part that does not fit into `slot`
/// goes into `rest`, which lies at the end of the segment ([`crate::Geometry::spill_at`]). Bytes behind the
/// summary stay unchanged. The function allocates no memory for the complete summary, because the summary of
/// a segment of small objects has many megabytes.
///
/// # Panics
/// If `slot` and `rest` together are shorter than the summary, or `slot` is shorter than the header.
pub fn encode_slot_into(header: &SlotHeader, entries: &[Entry], slot: &mut [u8], rest: &mut [u8]) {
    let (head, mut here) = slot.split_at_mut(SLOT_HEADER_BYTES);
    let mut rest = Some(rest);
    let mut crc = foxy_base::crc32c(&[]);
    let mut some = Vec::with_capacity(SOME * ENTRY_BYTES);
    for entries in entries.chunks(SOME) {
        some.clear();
        entries.iter().for_each(|entry| entry.encode(&mut some));
        crc = foxy_base::crc32c_append(crc, &some);
        let (first, second) = some.split_at(some.len().min(here.len()));
        let (filled, left) = here.split_at_mut(first.len());
        filled.copy_from_slice(first);
        here = left;
        if !second.is_empty() {
            here = rest.take().unwrap_or_default();
            let (filled, left) = here.split_at_mut(second.len());
            filled.copy_from_slice(second);
            here = left;
        }
    }
    head.copy_from_slice(&header.encode(entries.len() as u32, crc));
}

impl SlotHeader {
    fn encode(&self, entries: u32, entries_crc: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(SLOT_HEADER_BYTES);
        let mut put = Put(&mut out);
        put.bytes(&MAGIC);
        put.u16(FORMAT_VERSION);
        put.u8(self.state as u8);
        put.u8(0);
        put.bytes(&self.uuid.0);
        put.u32(self.segment);
        put.u32(self.used_units);
        put.u64(self.sequence);
        put.u32(entries);
        put.u32(entries_crc);
        put.u48(self.last_cluster);
        put.pad_to(SLOT_HEADER_BYTES - 4);
        let crc = foxy_base::crc32c(&out);
        Put(&mut out).u32(crc);
        out
    }

    /// Reads a slot's header.
    ///
    /// # Errors
    /// `Empty` for zeros (a segment that was never used). Any other error means a damaged slot.
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

/// Reads the entries behind a slot's header. `slot` is the complete summary, including the header.
///
/// # Errors
/// Returned if any part of the table is damaged.
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

#[cfg(test)]
mod tests {
    use foxy_base::KeyHash;

    use super::*;
    use crate::EntryKind;

    fn header() -> SlotHeader {
        SlotHeader {
            state: SegmentState::Sealed,
            uuid: StoreUuid([7; 16]),
            segment: 3,
            sequence: 9,
            used_units: 40,
            entries: 0,
            entries_crc: 0,
            last_cluster: 5,
        }
    }

    /// Wherever the slot ends, both pieces together have the same bytes as a summary in one piece.
    #[test]
    fn a_summary_in_two_pieces_has_the_same_bytes() {
        for count in [0, 1, 2, SOME, SOME + 1, 3 * SOME + 7] {
            let entry = |n: usize| Entry {
                hash: KeyHash(n as u128 * 0x1234_5678_9abc_def1),
                offset_units: n as u32,
                len_units: 1,
                kind: EntryKind::Object,
            };
            let entries: Vec<_> = (0..count).map(entry).collect();
            let whole = encode_slot(&header(), &entries);
            let decoded = SlotHeader::decode(&whole).unwrap();
            assert_eq!(
                decode_slot_entries(&decoded, &whole, 1 << 20).unwrap(),
                entries
            );
            for slot in (SLOT_HEADER_BYTES..whole.len()).step_by(13) {
                let mut first = vec![1; slot];
                let mut rest = vec![1; whole.len() - slot + 3];
                encode_slot_into(&header(), &entries, &mut first, &mut rest);
                let (own, behind) = rest.split_at(whole.len() - slot);
                assert_eq!([&first[..], own].concat(), whole, "{count} in {slot}");
                assert_eq!(behind, [1; 3], "what lies behind stays");
            }
        }
    }
}
