//! The record: one cached response as it lies on disk. A large response is stored as several records: a head
//! with everything except the body, and fragments with pieces of the body.
//!
//! A record consists of a header, checksums of the body's blocks, key, Vary values, tags, field block, body,
//! and zeros up to the next unit. One checksum covers everything except the body. It also covers the place of
//! the record, although the place is not written. The place is the store, the incarnation (one use of the
//! segment, until it is reused) and the address. Each 64 KiB block of the body has its own checksum, so that
//! a block can be checked before it is sent. The hash of the key is not written either.

use std::ops::Range;

use crate::bytes_io::Take;
use crate::words::{Words, put_words, words_len, words_max};
use crate::{FormatError, StoreUuid, round_to_unit};
use foxy_base::{KeyHash, KeySeed, WallTime, crc32c, crc32c_append, key_hash, rule};

/// Length of the fixed part of a record's header in bytes: checksum, mark, kind, and the codes of the
/// numbers.
pub const RECORD_HEADER_BYTES: usize = FIXED_BYTES + NUMBERS.div_ceil(2);
/// Length in bytes of the parts of a body that have their own checksums.
pub const BODY_BLOCK_BYTES: usize = 64 << 10;
/// Length in bytes of the rules digest: the facts about the response that the caching rules keep. (It is not
/// a hash.) This crate does not interpret these facts.
pub const RULES_BYTES: usize = 64;
const MAGIC: [u8; 2] = *b"FR";
const FIXED_BYTES: usize = 4 + 2 + 1;
/// Count of the numbers in a header: 12 facts, 5 lengths, and the rules digest in groups of eight bytes.
const NUMBERS: usize = 17 + RULES_BYTES / 8;

/// The content of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A complete response.
    #[default]
    Object = 1,
    /// The head of a large response: everything except the body.
    Head = 2,
    /// A piece of a large response's body.
    Fragment = 3,
}

/// Store, incarnation and position of a record, and the seed of the store's key hashes. The checksum of a
/// record matches only at the place for which the record was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordPlace {
    /// The store.
    pub uuid: StoreUuid,
    /// Sequence number of the segment's incarnation.
    pub sequence: u64,
    /// Offset from the beginning of the store, in units.
    pub address_units: u64,
    /// The store's seed. The checksum does not cover it. A wrong seed is noticed because the key then has
    /// another hash.
    pub seed: KeySeed,
}

/// The fixed fields of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Content of the record.
    pub kind: RecordKind,
    /// Place where the record was written.
    pub place: RecordPlace,
    /// Hash of the key; for a fragment, hash of key, version and number. The hash is not on disk: readers
    /// compute it.
    pub hash: KeyHash,
    /// Hash of the record's group. The objects of a group are placed together.
    pub group: u64,
    /// Unique number of the object version. A fragment has the number of its head.
    pub version: u64,
    /// Number of the newest purge at the time when the request was sent to the origin. A record that is
    /// written again when its segment is reused keeps this number.
    pub purge_sequence: u64,
    /// Time at which the request was sent to the origin.
    pub request_time: WallTime,
    /// Time at which the response was received.
    pub response_time: WallTime,
    /// Time after which no use of the record is permitted.
    pub expires: WallTime,
    /// Random number from which the keys of variants are made; 0 without Vary.
    pub nonce: u64,
    /// Length of the complete body in bytes, over all fragments.
    pub total_length: u64,
    /// Number of body bytes in a full fragment; 0 for complete objects.
    pub fragment_size: u32,
    /// Number of the fragment, from 0; 0 for records that are not fragments.
    pub fragment: u32,
    /// Status code.
    pub status: u16,
    /// Flags of the caller (partial, head only, ...). This crate does not interpret them.
    pub flags: u16,
    /// Facts that the caching rules keep about the response. This crate does not interpret them.
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
    /// Names of the request fields by which the response was selected (Vary), with their values, in the
    /// caller's encoding.
    pub vary: &'a [u8],
    /// Purge tags, in the caller's encoding.
    pub tags: &'a [u8],
    /// Header fields of the response, as a field block (crate `foxy-base`).
    pub fields: &'a [u8],
    /// Body.
    pub body: &'a [u8],
}

/// Positions of the variable parts in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLayout {
    /// Checksums of the body's blocks, 4 bytes each.
    pub sums: Range<usize>,
    /// Full key.
    pub key: Range<usize>,
    /// Names and values of the selecting request fields.
    pub vary: Range<usize>,
    /// Purge tags.
    pub tags: Range<usize>,
    /// Field block.
    pub fields: Range<usize>,
    /// Body.
    pub body: Range<usize>,
}

impl RecordLayout {
    /// Computes the positions of parts with the lengths `lens`, which follow a header of `header` bytes;
    /// `None` if a position overflows.
    fn new(header: usize, lens: [usize; 5]) -> Option<Self> {
        let [key, vary, tags, fields, body] = lens;
        let mut at = header;
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

    /// The layout of a record with this head and these sections.
    #[must_use]
    pub fn of(head: &RecordHead, sections: &RecordSections<'_>) -> Self {
        let header = FIXED_BYTES + words_len(&numbers(head, sections));
        Self::new(header, sections.lengths()).unwrap_or_default()
    }

    /// Length on disk in bytes, in whole units.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        round_to_unit(self.body.end as u64) as usize
    }
}

impl RecordSections<'_> {
    const fn lengths(&self) -> [usize; 5] {
        [
            self.key.len(),
            self.vary.len(),
            self.tags.len(),
            self.fields.len(),
            self.body.len(),
        ]
    }
}

/// The numbers of a header, in their order on disk. All numbers except the first may be encoded as distances
/// from the first.
fn numbers(head: &RecordHead, sections: &RecordSections<'_>) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    numbers[..12].copy_from_slice(&[
        head.response_time.0 as u64,
        head.group,
        head.version,
        head.purge_sequence,
        head.request_time.0 as u64,
        head.expires.0 as u64,
        head.nonce,
        head.total_length.wrapping_sub(sections.body.len() as u64),
        u64::from(head.fragment_size),
        u64::from(head.fragment),
        u64::from(head.status),
        u64::from(head.flags),
    ]);
    for (number, len) in numbers[12..17].iter_mut().zip(sections.lengths()) {
        *number = len as u64;
    }
    let (words, _) = head.rules.as_chunks::<8>();
    for (number, word) in numbers[17..].iter_mut().zip(words) {
        *number = u64::from_le_bytes(*word);
    }
    numbers
}

/// Writes a record to the beginning of `out`, and zeros up to the next unit. Returns the record's length on
/// disk and the positions of its parts; `None` if `out` is too short.
#[must_use]
pub fn encode_record(
    head: &RecordHead,
    sections: &RecordSections<'_>,
    out: &mut [u8],
) -> Option<(usize, RecordLayout)> {
    let mut words = [0; words_max(NUMBERS)];
    let header = put_words(&numbers(head, sections), &mut words);
    let layout = RecordLayout::new(FIXED_BYTES + header, sections.lengths())?;
    let len = layout.disk_bytes();
    let out = out.get_mut(..len)?;
    out[4..6].copy_from_slice(&MAGIC);
    out[6] = head.kind as u8;
    out[FIXED_BYTES..layout.sums.start].copy_from_slice(&words[..header]);
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
    let crc = meta_crc(&head.place, out, &layout);
    out[..4].copy_from_slice(&crc.to_le_bytes());
    Some((len, layout))
}

/// Checksum of the place, the header, and the variable parts before the body. The field that contains the
/// checksum is left out.
fn meta_crc(place: &RecordPlace, record: &[u8], layout: &RecordLayout) -> u32 {
    let mut whose = [0; 32];
    whose[..16].copy_from_slice(&place.uuid.0);
    whose[16..24].copy_from_slice(&place.sequence.to_le_bytes());
    whose[24..].copy_from_slice(&place.address_units.to_le_bytes());
    crc32c_append(crc32c(&whose), &record[4..layout.body.start])
}

/// True if a record may begin here; only its mark is checked. A search for records in read bytes uses this.
#[must_use]
pub fn may_be_record(bytes: &[u8]) -> bool {
    bytes.len() >= RECORD_HEADER_BYTES && bytes[4..6] == MAGIC
}

/// Reads a record from the beginning of `bytes`. Checks everything, including the body, and that the record
/// was written for `place`. The caller must compare hash and key with the hash and key that it looks for.
///
/// # Errors
/// Returned if any part of the record is damaged, or if the record was written for another place. `Truncated`
/// if `bytes` end before the record ends.
pub fn parse_record(
    bytes: &[u8],
    place: &RecordPlace,
) -> Result<(RecordHead, RecordLayout), FormatError> {
    let mut take = Take::new(bytes);
    let stored = take.array::<4>()?;
    if take.array()? != MAGIC {
        return Err(FormatError::Foreign);
    }
    let (mut head, layout) = decode_header(&mut take, bytes.len())?;
    let record = bytes
        .get(..layout.disk_bytes())
        .ok_or(FormatError::Truncated)?;
    let whole = meta_crc(place, record, &layout).to_le_bytes() == stored;
    if !rule!(
        "record: its place, incarnation and store are under its checksum",
        whole,
        true
    ) {
        return Err(FormatError::Checksum);
    }
    let sums = record[layout.sums.clone()].chunks_exact(4);
    let mut blocks = sums.zip(record[layout.body.clone()].chunks(BODY_BLOCK_BYTES));
    let is_bad = |(sum, block): (&[u8], &[u8])| crc32c(block).to_le_bytes() != sum;
    if rule!(
        "record: every 64 KiB of a body are checked, not the first alone",
        blocks.any(is_bad),
        blocks.next().is_some_and(is_bad)
    ) {
        return Err(FormatError::Checksum);
    }
    head.place = *place;
    head.hash = hash_of(place.seed, &head, &record[layout.key.clone()]);
    Ok((head, layout))
}

fn hash_of(seed: KeySeed, head: &RecordHead, key: &[u8]) -> KeyHash {
    let hash = seed.hash(key);
    if head.kind == RecordKind::Fragment {
        fragment_hash(hash, head.version, head.fragment)
    } else {
        hash
    }
}

/// Hash of fragment `n` of version `version` of an object. It hashes 28 bytes without a seed, because nobody
/// can choose these bytes without knowing the head's hash.
#[must_use]
pub fn fragment_hash(head: KeyHash, version: u64, n: u32) -> KeyHash {
    let mut bytes = [0u8; 28];
    bytes[..16].copy_from_slice(&head.to_bytes());
    bytes[16..24].copy_from_slice(&version.to_le_bytes());
    bytes[24..].copy_from_slice(&n.to_le_bytes());
    key_hash(&bytes)
}

/// Decodes a header. `len` is the number of available bytes, counted from the record's beginning.
fn decode_header(
    take: &mut Take<'_>,
    len: usize,
) -> Result<(RecordHead, RecordLayout), FormatError> {
    let mut head = RecordHead {
        kind: match take.u8()? {
            1 => RecordKind::Object,
            2 => RecordKind::Head,
            3 => RecordKind::Fragment,
            _ => return Err(FormatError::Invalid("record kind")),
        },
        ..RecordHead::default()
    };
    let mut words = Words::new(take, NUMBERS)?;
    let mut next = || words.next(take);
    head.response_time = WallTime(next()? as i64);
    (head.group, head.version, head.purge_sequence) = (next()?, next()?, next()?);
    (head.request_time, head.expires) = (WallTime(next()? as i64), WallTime(next()? as i64));
    (head.nonce, head.total_length) = (next()?, next()?);
    (head.fragment_size, head.fragment) = (narrow(next()?)?, narrow(next()?)?);
    (head.status, head.flags) = (narrow(next()?)?, narrow(next()?)?);
    let mut lens = [0usize; 5];
    for len in &mut lens {
        *len = narrow::<u32>(next()?)? as usize;
    }
    let (rules, _) = head.rules.as_chunks_mut::<8>();
    for word in rules {
        *word = next()?.to_le_bytes();
    }
    head.total_length = head.total_length.wrapping_add(lens[4] as u64);
    let header = len - take.len();
    let layout = RecordLayout::new(header, lens).ok_or(FormatError::Invalid("section length"))?;
    Ok((head, layout))
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Result<T, FormatError> {
    T::try_from(number).map_err(|_| FormatError::Invalid("number in a record"))
}
