//! The record: one cached response (or head, or fragment of a large one) as it lies on disk.
//!
//! Header, checksums of the body's blocks, key, Vary values, tags, field block, body, zeros up to
//! the next unit. One checksum covers all but the body; each 64 KiB of the body has its own, so
//! that a block can be checked before it is sent.

use std::ops::Range;

use crate::bytes_io::{Put, Take, check_mark};
use crate::{FORMAT_VERSION, FormatError, StoreUuid, round_to_unit};
use foxy_base::{KeyHash, WallTime, crc32c, crc32c_append};

/// Length of a record's header.
pub const RECORD_HEADER_BYTES: usize = 240;
/// Length of the part of a body that has a checksum of its own.
pub const BODY_BLOCK_BYTES: usize = 64 << 10;
/// Length of the opaque digest of caching rules.
pub const RULES_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FXRC";
const CRC_AT: usize = RECORD_HEADER_BYTES - 4;

/// What a record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A whole response.
    #[default]
    Object = 1,
    /// Head of a large response: everything but the body.
    Head = 2,
    /// A piece of a large response's body.
    Fragment = 3,
}

/// Where and in which life of which store a record was written; compared at every read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordPlace {
    /// The store.
    pub uuid: StoreUuid,
    /// The segment's life.
    pub sequence: u64,
    /// Offset from the beginning of the store, in units.
    pub address_units: u64,
}

/// The fixed fields of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// What it holds.
    pub kind: RecordKind,
    /// Where it was written.
    pub place: RecordPlace,
    /// Hash of the key (of key, version and number for fragments).
    pub hash: KeyHash,
    /// Hash of the group it was placed with.
    pub group: u64,
    /// Unique number of the object version; fragments carry their head's.
    pub version: u64,
    /// Number of the last purge known before the origin was asked; kept by reinsertion.
    pub purge_sequence: u64,
    /// When the request was sent to the origin.
    pub request_time: WallTime,
    /// When the response was received.
    pub response_time: WallTime,
    /// Past every permitted use after this time.
    pub expires: WallTime,
    /// Random number that variants' keys are made with; 0 without Vary.
    pub nonce: u64,
    /// Length of the whole body in bytes, over all fragments.
    pub total_length: u64,
    /// Payload of a full fragment in bytes; 0 for whole objects.
    pub fragment_size: u32,
    /// Which fragment, from 0; 0 for others.
    pub fragment: u32,
    /// Status code.
    pub status: u16,
    /// Meaning is the storer's (partial, head only, ...).
    pub flags: u16,
    /// Digest of the caching rules; opaque here.
    pub rules: [u8; RULES_BYTES],
}

impl Default for RecordHead {
    fn default() -> Self {
        Self {
            kind: RecordKind::Object,
            place: RecordPlace::default(),
            hash: KeyHash(0),
            group: 0,
            version: 0,
            purge_sequence: 0,
            request_time: WallTime(0),
            response_time: WallTime(0),
            expires: WallTime(0),
            nonce: 0,
            total_length: 0,
            fragment_size: 0,
            fragment: 0,
            status: 0,
            flags: 0,
            rules: [0; RULES_BYTES],
        }
    }
}

/// The variable parts of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSections<'a> {
    /// Full key.
    pub key: &'a [u8],
    /// Vary list and selecting values, as the caller writes them.
    pub vary: &'a [u8],
    /// Purge tags, as the caller writes them.
    pub tags: &'a [u8],
    /// Field block.
    pub fields: &'a [u8],
    /// Body.
    pub body: &'a [u8],
}

/// Where the variable parts lie in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLayout {
    /// Checksums of the body's blocks, 4 bytes each.
    pub sums: Range<usize>,
    /// Full key.
    pub key: Range<usize>,
    /// Vary list and values.
    pub vary: Range<usize>,
    /// Purge tags.
    pub tags: Range<usize>,
    /// Field block.
    pub fields: Range<usize>,
    /// Body.
    pub body: Range<usize>,
}

impl RecordLayout {
    /// Lays out sections of these lengths; `None` if they overflow.
    fn new(key: usize, vary: usize, tags: usize, fields: usize, body: usize) -> Option<Self> {
        let mut at = RECORD_HEADER_BYTES;
        let mut next = |len: usize| {
            let start = at;
            at = at.checked_add(len)?;
            Some(start..at)
        };
        Some(Self {
            sums: next(body.div_ceil(BODY_BLOCK_BYTES) * 4)?,
            key: next(key)?,
            vary: next(vary)?,
            tags: next(tags)?,
            fields: next(fields)?,
            body: next(body)?,
        })
    }

    /// The layout of a record with these sections.
    #[must_use]
    pub fn of(sections: &RecordSections<'_>) -> Self {
        Self::new(
            sections.key.len(),
            sections.vary.len(),
            sections.tags.len(),
            sections.fields.len(),
            sections.body.len(),
        )
        .unwrap_or_default()
    }

    /// Length on disk: whole units.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        round_to_unit(self.body.end as u64) as usize
    }
}

/// Writes a record to the beginning of `out` and zeros up to the next unit; returns its length on
/// disk, or `None` if `out` is too short or a section is longer than 4 GiB.
#[must_use]
pub fn encode_record(
    head: &RecordHead,
    sections: &RecordSections<'_>,
    out: &mut [u8],
) -> Option<usize> {
    let layout = RecordLayout::of(sections);
    let len = layout.disk_bytes();
    let out = out.get_mut(..len)?;
    let header = encode_header(head, sections)?;
    out[..CRC_AT].copy_from_slice(&header);
    for (sum, block) in out[layout.sums.clone()]
        .chunks_exact_mut(4)
        .zip(sections.body.chunks(BODY_BLOCK_BYTES))
    {
        sum.copy_from_slice(&crc32c(block).to_le_bytes());
    }
    out[layout.key.clone()].copy_from_slice(sections.key);
    out[layout.vary.clone()].copy_from_slice(sections.vary);
    out[layout.tags.clone()].copy_from_slice(sections.tags);
    out[layout.fields.clone()].copy_from_slice(sections.fields);
    out[layout.body.clone()].copy_from_slice(sections.body);
    out[layout.body.end..].fill(0);
    let crc = meta_crc(out, &layout);
    out[CRC_AT..RECORD_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    Some(len)
}

fn encode_header(head: &RecordHead, sections: &RecordSections<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(RECORD_HEADER_BYTES);
    let mut put = Put(&mut out);
    put.bytes(&MAGIC);
    put.u16(FORMAT_VERSION);
    put.u8(head.kind as u8);
    put.u8(0);
    put.bytes(&head.place.uuid.0);
    put.u64(head.place.sequence);
    put.u64(head.place.address_units);
    put.bytes(&head.hash.to_bytes());
    for v in [head.group, head.version, head.purge_sequence] {
        put.u64(v);
    }
    for v in [head.request_time, head.response_time, head.expires] {
        put.i64(v.0);
    }
    put.u64(head.nonce);
    put.u64(head.total_length);
    put.u32(head.fragment_size);
    put.u32(head.fragment);
    put.u16(head.status);
    put.u16(head.flags);
    for section in [
        sections.key,
        sections.vary,
        sections.tags,
        sections.fields,
        sections.body,
    ] {
        put.u32(u32::try_from(section.len()).ok()?);
    }
    put.bytes(&head.rules);
    put.pad_to(CRC_AT);
    debug_assert_eq!(out.len(), CRC_AT);
    Some(out)
}

/// Checksum of header and variable parts before the body, without the field that holds it.
fn meta_crc(record: &[u8], layout: &RecordLayout) -> u32 {
    let crc = crc32c(&record[..CRC_AT]);
    crc32c_append(crc, &record[RECORD_HEADER_BYTES..layout.body.start])
}

/// Reads a record from the beginning of `bytes` and checks everything, body included. Where it
/// lies (`head.place`) and whose it is (`hash`, key) is for the caller to compare.
///
/// # Errors
/// Any damage is refused as a whole; `Truncated` if `bytes` ends before the record does.
pub fn parse_record(bytes: &[u8]) -> Result<(RecordHead, RecordLayout), FormatError> {
    let mut take = Take::new(bytes);
    check_mark(&mut take, MAGIC, bytes.get(..4).unwrap_or(&[]))?;
    let (head, layout) = decode_header(&mut take)?;
    let record = bytes
        .get(..layout.disk_bytes())
        .ok_or(FormatError::Truncated)?;
    let stored = &record[CRC_AT..RECORD_HEADER_BYTES];
    if meta_crc(record, &layout).to_le_bytes() != stored {
        return Err(FormatError::Checksum);
    }
    let sums = record[layout.sums.clone()].chunks_exact(4);
    let blocks = record[layout.body.clone()].chunks(BODY_BLOCK_BYTES);
    if sums
        .zip(blocks)
        .any(|(sum, block)| crc32c(block).to_le_bytes() != sum)
    {
        return Err(FormatError::Checksum);
    }
    Ok((head, layout))
}

fn decode_header(take: &mut Take<'_>) -> Result<(RecordHead, RecordLayout), FormatError> {
    let kind = match take.u8()? {
        1 => RecordKind::Object,
        2 => RecordKind::Head,
        3 => RecordKind::Fragment,
        _ => return Err(FormatError::Invalid("record kind")),
    };
    take.zeros(1)?;
    let place = RecordPlace {
        uuid: StoreUuid(take.array()?),
        sequence: take.u64()?,
        address_units: take.u64()?,
    };
    let mut head = RecordHead {
        kind,
        place,
        hash: KeyHash::from_bytes(take.array()?),
        ..RecordHead::default()
    };
    (head.group, head.version, head.purge_sequence) = (take.u64()?, take.u64()?, take.u64()?);
    head.request_time = WallTime(take.i64()?);
    head.response_time = WallTime(take.i64()?);
    head.expires = WallTime(take.i64()?);
    (head.nonce, head.total_length) = (take.u64()?, take.u64()?);
    (head.fragment_size, head.fragment) = (take.u32()?, take.u32()?);
    (head.status, head.flags) = (take.u16()?, take.u16()?);
    let mut lens = [0usize; 5];
    for len in &mut lens {
        *len = take.u32()? as usize;
    }
    head.rules = take.array()?;
    take.zeros(CRC_AT - HEADER_USED)?;
    take.u32()?;
    let [key, vary, tags, fields, body] = lens;
    let layout = RecordLayout::new(key, vary, tags, fields, body)
        .ok_or(FormatError::Invalid("section length"))?;
    Ok((head, layout))
}

/// Bytes of the header that carry something, checksum not counted.
const HEADER_USED: usize =
    4 + 2 + 1 + 1 + 16 + 8 + 8 + 16 + 6 * 8 + 2 * 8 + 2 * 4 + 2 * 2 + 5 * 4 + RULES_BYTES;
const _: () = assert!(HEADER_USED <= CRC_AT);
