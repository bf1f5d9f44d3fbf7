//! The purge journal: two halves of blocks, each with a sequence and notes of purges.
//!
//! In this version purges of single URLs are tombstones in the log; the journal is for purges of
//! many (prefix, host, tag, expression, all), whose notes are defined here.

use crate::bytes_io::{Put, Take, check_crc, check_mark};
use crate::{BLOCK, FORMAT_VERSION, FormatError, StoreUuid};

/// Length of a journal block's header; the notes follow.
pub const JOURNAL_BLOCK_HEADER_BYTES: usize = 40;
const MAGIC: [u8; 4] = *b"FXPJ";
const NOTE_HEADER: usize = 20;
const MAX_TEXT: usize = BLOCK as usize - JOURNAL_BLOCK_HEADER_BYTES - NOTE_HEADER - 4;

/// What a purge covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PurgeKind {
    /// Everything.
    All = 1,
    /// One URL with all variants.
    Url = 2,
    /// Keys that begin with the text.
    Prefix = 3,
    /// One host.
    Host = 4,
    /// Objects that carry the tag.
    Tag = 5,
    /// Keys that match the expression.
    Expression = 6,
}

/// One purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeNote {
    /// What it covers.
    pub kind: PurgeKind,
    /// A soft purge makes stale, a hard one removes.
    pub soft: bool,
    /// Its number; records fetched under a smaller one are covered.
    pub sequence: u64,
    /// Wall time in milliseconds, for people.
    pub at: i64,
    /// URL, prefix, host, tag or expression; at most about 4,000 bytes.
    pub text: Vec<u8>,
}

/// A block of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// Whose store.
    pub uuid: StoreUuid,
    /// Goes up by one with every block written.
    pub sequence: u64,
    /// The purges.
    pub notes: Vec<PurgeNote>,
}

impl JournalBlock {
    /// The bytes on disk: one [`BLOCK`].
    ///
    /// # Errors
    /// `Invalid` if the notes do not fit.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::with_capacity(BLOCK as usize);
        let mut put = Put(&mut out);
        put.bytes(&MAGIC);
        put.u16(FORMAT_VERSION);
        put.u16(0);
        put.bytes(&self.uuid.0);
        put.u64(self.sequence);
        put.u32(self.notes.len() as u32);
        put.u32(0);
        for note in &self.notes {
            if note.text.len() > MAX_TEXT {
                return Err(FormatError::Invalid("purge text"));
            }
            put.u8(note.kind as u8);
            put.u8(u8::from(note.soft));
            put.u16(note.text.len() as u16);
            put.u64(note.sequence);
            put.i64(note.at);
            put.bytes(&note.text);
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
    /// `Empty` for zeros; a damaged block is refused as a whole.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = bytes.get(..BLOCK as usize).ok_or(FormatError::Truncated)?;
        let mut take = Take::new(bytes);
        check_mark(&mut take, MAGIC, bytes)?;
        check_crc(bytes, BLOCK as usize - 4)?;
        take.zeros(2)?;
        let (uuid, sequence, count) = (StoreUuid(take.array()?), take.u64()?, take.u32()?);
        take.zeros(4)?;
        let notes = (0..count)
            .map(|_| decode_note(&mut take))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            uuid,
            sequence,
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
    let len = usize::from(take.u16()?);
    let (sequence, at) = (take.u64()?, take.i64()?);
    let text = take.bytes(len)?.to_vec();
    Ok(PurgeNote {
        kind,
        soft,
        sequence,
        at,
        text,
    })
}
