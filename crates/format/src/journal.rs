//! The purge journal: it stores soft purges, and purges of many objects (prefix, host, tag, expression, all).
//! A purge is active as long as it possibly covers a stored object.
//!
//! The journal has two halves of several blocks. The halves are used alternately. A half begins with a
//! snapshot: all active purges, in one or more blocks that are written together in one write. The blocks
//! behind the snapshot contain the purges that were made after it. When a half is full, the other half gets a
//! new snapshot. The half with the newer snapshot is current.
//!
//! In a *doubled* half every block is written twice, so that damage to one block loses no purge.
//! The order is: the snapshot, the snapshot again, then each later block followed by its copy.

use crate::bytes_io::{Put, Take, check_crc, check_mark};
use crate::{BLOCK, FORMAT_VERSION, FormatError, StoreUuid};
use foxy_base::rule;

/// Length of a journal block's header in bytes. Behind it are the notes, one for each purge.
pub const JOURNAL_BLOCK_HEADER_BYTES: usize = 72;
const MAGIC: [u8; 4] = *b"FXPJ";
const NOTE_HEADER: usize = 24;
/// Number of bytes of a block that notes may fill.
pub const JOURNAL_BLOCK_NOTES: usize = BLOCK as usize - JOURNAL_BLOCK_HEADER_BYTES - 4;

/// The scope of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PurgeKind {
    /// All objects.
    All = 1,
    /// One URL with all variants.
    Url = 2,
    /// Keys that begin with the given text.
    Prefix = 3,
    /// One host.
    Host = 4,
    /// Objects that have the tag.
    Tag = 5,
    /// Keys that match the expression.
    Expression = 6,
}

/// One purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeNote {
    /// Scope of the purge.
    pub kind: PurgeKind,
    /// True for a soft purge, which makes objects stale; false for a hard purge, which removes
    /// them.
    pub soft: bool,
    /// Number of the purge. Purges are numbered in the order in which they are made. A purge covers only
    /// records whose [`crate::RecordHead::purge_sequence`] is smaller than this number.
    pub sequence: u64,
    /// Wall time of the purge in milliseconds. It is only displayed to operators.
    pub at: i64,
    /// The partition (key space) to which the purge is limited, at most 255 bytes; empty for all partitions.
    pub partition: Vec<u8>,
    /// URL, prefix, host, tag or expression; empty for a purge of all objects.
    pub text: Vec<u8>,
}

impl PurgeNote {
    /// Number of bytes of [`JOURNAL_BLOCK_NOTES`] that this note needs.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        NOTE_HEADER + self.partition.len() + self.text.len()
    }

    fn encode(&self, put: &mut Put<'_>) -> Result<(), FormatError> {
        let partition = u8::try_from(self.partition.len());
        let text = u16::try_from(self.text.len());
        let (Ok(partition), Ok(text)) = (partition, text) else {
            return Err(FormatError::Invalid("purge text"));
        };
        put.u8(self.kind as u8);
        put.u8(u8::from(self.soft));
        put.u8(partition);
        put.u8(0);
        put.u16(text);
        put.u16(0);
        put.u64(self.sequence);
        put.i64(self.at);
        put.bytes(&self.partition);
        put.bytes(&self.text);
        Ok(())
    }
}

/// A block of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// True if every block of this half is written twice.
    pub doubled: bool,
    /// Identity of the store.
    pub uuid: StoreUuid,
    /// Number of the block; it increases by one with every block written.
    pub sequence: u64,
    /// Sequence of the first block of the snapshot that this block belongs to or follows.
    pub first: u64,
    /// Number of blocks of that snapshot, at least 1.
    pub snapshot: u32,
    /// The highest purge number assigned when the block was written.
    pub seen: u64,
    /// The greater of two purge numbers: the highest number of a retired purge, and the last number that was
    /// taken because a store stopped recording removals. (A purge retires when it covers no stored object any
    /// more.)
    pub retired: u64,
    /// A purge number. A record of this store is dead if its [`crate::RecordHead::purge_sequence`] is below
    /// this number.
    pub floor: u64,
    /// The purges in this block.
    pub notes: Vec<PurgeNote>,
}

impl JournalBlock {
    /// Returns the bytes of the block as they are on disk. Their length is exactly [`BLOCK`] bytes.
    ///
    /// # Errors
    /// `Invalid` if the notes do not fit.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::with_capacity(BLOCK as usize);
        let mut put = Put(&mut out);
        put.bytes(&MAGIC);
        put.u16(FORMAT_VERSION);
        put.u16(u16::from(self.doubled));
        put.bytes(&self.uuid.0);
        put.u64(self.sequence);
        put.u64(self.first);
        put.u32(self.snapshot);
        put.u32(self.notes.len() as u32);
        put.u64(self.seen);
        put.u64(self.retired);
        put.u64(self.floor);
        debug_assert_eq!(put.0.len(), JOURNAL_BLOCK_HEADER_BYTES);
        for note in &self.notes {
            note.encode(&mut put)?;
        }
        if out.len() > BLOCK as usize - 4 {
            return Err(FormatError::Invalid("number of notes"));
        }
        Put(&mut out).pad_to(BLOCK as usize - 4);
        let crc = foxy_base::crc32c(&out);
        Put(&mut out).u32(crc);
        Ok(out)
    }

    /// Reads a block.
    ///
    /// # Errors
    /// `Empty` if the bytes are all zeros. Another error if any part of the block is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = bytes.get(..BLOCK as usize).ok_or(FormatError::Truncated)?;
        let mut take = Take::new(bytes);
        check_mark(&mut take, MAGIC, bytes)?;
        check_crc(bytes, BLOCK as usize - 4)?;
        let doubled = match take.u16()? {
            0 => false,
            1 => true,
            _ => return Err(FormatError::Invalid("reserved field")),
        };
        let (uuid, sequence, first) = (StoreUuid(take.array()?), take.u64()?, take.u64()?);
        let (snapshot, count) = (take.u32()?, take.u32()?);
        let (seen, retired, floor) = (take.u64()?, take.u64()?, take.u64()?);
        if snapshot == 0 || first > sequence {
            return Err(FormatError::Invalid("journal snapshot"));
        }
        let notes = (0..count)
            .map(|_| decode_note(&mut take))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            doubled,
            uuid,
            sequence,
            first,
            snapshot,
            seen,
            retired,
            floor,
            notes,
        })
    }
}

fn decode_note(take: &mut Take<'_>) -> Result<PurgeNote, FormatError> {
    let kind = match take.u8()? {
        1 => PurgeKind::All,
        2 => PurgeKind::Url,
        3 => PurgeKind::Prefix,
        4 => PurgeKind::Host,
        5 => PurgeKind::Tag,
        6 => PurgeKind::Expression,
        _ => return Err(FormatError::Invalid("purge kind")),
    };
    let soft = match take.u8()? {
        0 => false,
        1 => true,
        _ => return Err(FormatError::Invalid("purge softness")),
    };
    let partition = usize::from(take.u8()?);
    take.zeros(1)?;
    let text = usize::from(take.u16()?);
    take.zeros(2)?;
    let (sequence, at) = (take.u64()?, take.i64()?);
    Ok(PurgeNote {
        kind,
        soft,
        sequence,
        at,
        partition: take.bytes(partition)?.to_vec(),
        text: take.bytes(text)?.to_vec(),
    })
}

/// The contents of one half of the journal, and the position of the next write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalHalf {
    /// The newest block of this half, without notes.
    pub newest: JournalBlock,
    /// Number of blocks in use.
    pub blocks: u32,
    /// All purges in this half, in order of writing, up to the first damaged block.
    pub notes: Vec<PurgeNote>,
    /// True if valid blocks lie behind a damaged block. The purges in the damaged block and behind it are not
    /// in `notes`.
    pub holes: bool,
}

/// Reads one half; `None` if its snapshot is not complete (never written, torn or damaged).
#[must_use]
pub fn read_journal_half(half: &[u8], uuid: StoreUuid) -> Option<JournalHalf> {
    let (blocks, _) = half.as_chunks::<{ BLOCK as usize }>();
    let decode = |block: &[u8; BLOCK as usize]| {
        let decoded = JournalBlock::decode(block).ok();
        decoded.filter(|b| {
            rule!(
                "journal: a block of another store is not valid",
                b.uuid == uuid,
                true
            )
        })
    };
    let mut blocks: Vec<_> = blocks.iter().map(decode).collect();
    // Behind the current blocks there may be blocks from an earlier use of this half.
    let newest = blocks.iter().flatten().max_by_key(|block| block.first)?;
    let head = JournalBlock {
        notes: Vec::new(),
        ..newest.clone()
    };
    let mut read = JournalHalf {
        newest: head.clone(),
        blocks: 0,
        notes: Vec::new(),
        holes: false,
    };
    for sequence in head.first.. {
        let places = head.places(sequence);
        let mut follows = None;
        for place in places {
            let block = blocks.get_mut(place).and_then(Option::take);
            let right = |b: &JournalBlock| {
                let this_round = rule!(
                    "journal: a block of a former round is not valid",
                    b.first == head.first,
                    true
                );
                this_round && b.sequence == sequence
            };
            follows = follows.or(block.filter(right));
        }
        let Some(mut block) = follows else {
            // Each block is durable before the next block is written, so a crash can tear only the last
            // block. A valid block behind an invalid block shows damage.
            let mut later = blocks.iter().flatten();
            read.holes = rule!(
                "journal: a whole block behind one that is not is damage",
                later.any(|b| b.first == head.first && b.sequence > sequence),
                false
            );
            break;
        };
        read.notes.append(&mut block.notes);
        read.newest = block;
        read.blocks = places.into_iter().max().map_or(0, |last| last as u32 + 1);
    }
    let whole = rule!(
        "journal: a half without its whole snapshot is not valid",
        read.newest.sequence + 1 >= head.first + u64::from(head.snapshot),
        true
    );
    (whole && read.blocks > 0).then_some(read)
}

impl JournalBlock {
    /// Positions of the block with this sequence and of its copy, counted in blocks from the beginning
    /// of the half. Both positions are equal if blocks are not written twice.
    fn places(&self, sequence: u64) -> [usize; 2] {
        let number = usize::try_from(sequence - self.first).unwrap_or(usize::MAX / 4);
        let number = number.min(usize::MAX / 4);
        match (self.doubled, self.snapshot as usize) {
            (false, _) => [number; 2],
            (true, snapshot) if number < snapshot => [number, number + snapshot],
            (true, _) => [2 * number, 2 * number + 1],
        }
    }
}
