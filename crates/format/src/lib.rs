//! The bytes that a store keeps on disk: pure encoders and decoders, no I/O.
//!
//! All integers are little-endian. Every structure carries a magic number, a format version where
//! it can be read alone, and a CRC32C; decoding trusts nothing and never panics. The bytes are
//! drawn in `docs/disk-format.md`, and tests tie that page, the golden bytes in `golden/` and this
//! crate together.

mod bytes_io;
mod cluster;
mod entry;
mod error;
mod geometry;
mod journal;
mod record;
mod removals;
mod slot;
mod superblock;
mod words;

pub use cluster::{
    CHAIN_BEGINS, CHAIN_UNKNOWN, CLUSTER_HEADER_BYTES, ChainLink, ClusterHeader, chain_sum,
    cluster_table_bytes,
};
pub use entry::{ENTRY_BYTES, Entry, EntryKind, LogPosition};
pub use error::FormatError;
pub use geometry::{GROWTHS_MAX, Geometry, Growth, StoreUuid};
pub use journal::{
    JOURNAL_BLOCK_HEADER_BYTES, JOURNAL_BLOCK_NOTES, JournalBlock, JournalHalf, PurgeKind,
    PurgeNote, read_journal_half,
};
pub use record::{
    BODY_BLOCK_BYTES, RECORD_HEADER_BYTES, RULES_BYTES, RecordHead, RecordKind, RecordLayout,
    RecordPlace, RecordSections, encode_record, fragment_hash, may_be_record, parse_record,
};
pub use removals::{REMOVAL_BYTES, RemovalEntry, Removed, read_removals};
pub use slot::{
    SLOT_HEADER_BYTES, SegmentState, SlotHeader, decode_slot_entries, encode_slot, encode_slot_into,
};
pub use superblock::{Company, FORMER_MAX, QUARANTINE_MAX, SUPERBLOCK_BYTES, Superblock};

/// Version of the format read and written by this code. Frozen: `docs/disk-format.md` says what
/// that means. (0 was in use before the first release.)
pub const FORMAT_VERSION: u16 = 1;

/// Extension `chain`: clusters are numbered and name the one before, see [`ChainLink`].
pub const EXTENSION_CHAIN: u16 = 1;

/// Extension `seed`: keys are hashed with a seed that the superblock names.
pub const EXTENSION_SEED: u16 = 2;

/// Extensions of the format that this code knows, by bit.
pub const EXTENSIONS: u16 = EXTENSION_CHAIN | EXTENSION_SEED;

/// The unit of addresses and of record packing, in bytes. Measured: `docs/decisions`.
pub const UNIT: u64 = 16;

/// Alignment of superblocks, slots, segments and clusters, in bytes.
pub const BLOCK: u64 = 4096;

/// `bytes` in units, rounded up.
#[must_use]
pub const fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// `bytes` rounded up to whole units.
#[must_use]
pub const fn round_to_unit(bytes: u64) -> u64 {
    units(bytes) * UNIT
}

/// `bytes` rounded up to whole blocks.
#[must_use]
pub const fn round_to_block(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}

/// True if a block may begin with a table of a store: journal, slot or cluster. Judged by its magic
/// number alone.
#[must_use]
pub fn may_be_table(block: &[u8]) -> bool {
    [*b"FXPJ", *b"FXSM", *b"FXCL"].contains(block.first_chunk().unwrap_or(&[0; 4]))
}
