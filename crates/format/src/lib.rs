//! The bytes that a store keeps on disk: encoders and decoders without I/O.
//!
//! A store collects new records in clusters and writes the clusters into segments, which it reuses in turn.
//! Each segment has a slot; when the segment is complete, the slot lists its contents. Superblocks, purge
//! journal and removal log lie at the beginning of the store. The slots follow, and then the segments. When a
//! store grows, the slots and segments in the added space lie behind them.
//!
//! All integers are little-endian. Every structure has a CRC32C, and every structure except the entries of
//! the removal log has a magic number. A structure that can be read without another structure also has a
//! format version. Decoding trusts no byte and never panics. The layout is shown in `docs/disk-format.md`,
//! and tests ensure that this page, the golden bytes in `golden/` and this crate agree.

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
pub use superblock::{FORMER_MAX, Membership, QUARANTINE_MAX, SUPERBLOCK_BYTES, Superblock};

/// Version of the format read and written by this code. The format is frozen; `docs/disk-format.md`
/// explains what that means. (Version 0 was in use before the first release.)
pub const FORMAT_VERSION: u16 = 1;

/// Extension `chain`: clusters are numbered, and each contains the checksum of the previous
/// cluster. See [`ChainLink`].
pub const EXTENSION_CHAIN: u16 = 1;

/// Extension `seed`: keys are hashed with a seed, which the superblock contains.
pub const EXTENSION_SEED: u16 = 2;

/// The extensions of the format that this code knows, one bit each.
pub const EXTENSIONS: u16 = EXTENSION_CHAIN | EXTENSION_SEED;

/// The unit of addresses and of the packing of records, in bytes. The measurements behind this length are in
/// `docs/decisions`.
pub const UNIT: u64 = 16;

/// Alignment of superblocks, slots, segments and clusters, in bytes.
pub const BLOCK: u64 = 4096;

/// Converts `bytes` to units, rounded up.
#[must_use]
pub const fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// Rounds `bytes` up to whole units.
#[must_use]
pub const fn round_to_unit(bytes: u64) -> u64 {
    units(bytes) * UNIT
}

/// Rounds `bytes` up to whole blocks.
#[must_use]
pub const fn round_to_block(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}

/// True if a table of a store (journal, slot or cluster) may begin with this block. Only the magic
/// number is checked.
#[must_use]
pub fn may_be_table(block: &[u8]) -> bool {
    [*b"FXPJ", *b"FXSM", *b"FXCL"].contains(block.first_chunk().unwrap_or(&[0; 4]))
}
