//! Tests of valid structures that do not belong to the place where they are read. Other tests here check that
//! gaps in a journal half, and damage in a later block of a body, are found.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use foxy_base::{KeyHash, crc32c};
use foxy_format::{
    BLOCK, BODY_BLOCK_BYTES, ChainLink, ClusterHeader, Entry, EntryKind, FormatError, JournalBlock,
    PurgeKind, PurgeNote, RecordHead, RecordSections, SLOT_HEADER_BYTES, SegmentState, SlotHeader,
    StoreUuid, encode_record, encode_slot, parse_record, read_journal_half,
};

const OWN: StoreUuid = StoreUuid([1; 16]);
const OTHER: StoreUuid = StoreUuid([2; 16]);
const SEGMENT: u32 = 64 << 10;

/// A journal block with the number `sequence`. It contains one purge, which has the same number.
fn block(uuid: StoreUuid, sequence: u64, first: u64, snapshot: u32) -> Vec<u8> {
    let note = PurgeNote {
        kind: PurgeKind::Host,
        soft: false,
        sequence,
        at: 0,
        partition: Vec::new(),
        text: b"a.test".to_vec(),
    };
    let block = JournalBlock {
        doubled: false,
        uuid,
        sequence,
        first,
        snapshot,
        seen: sequence,
        retired: 0,
        floor: 0,
        notes: vec![note],
    };
    block.encode().unwrap()
}

/// The numbers of the purges in a half that consists of these blocks, and whether the half has holes.
fn purges(blocks: &[Vec<u8>]) -> Option<(Vec<u64>, bool)> {
    let half = read_journal_half(&blocks.concat(), OWN)?;
    let numbers = half.notes.iter().map(|note| note.sequence).collect();
    Some((numbers, half.holes))
}

#[test]
fn journal_blocks_of_another_store_or_round_are_not_valid() {
    let own = block(OWN, 10, 10, 1);
    let next = block(OWN, 11, 10, 1);
    assert_eq!(
        purges(&[own.clone(), next]),
        Some((vec![10, 11], false)),
        "as it should be"
    );
    let foreign = block(OTHER, 11, 10, 1);
    assert_eq!(purges(&[own.clone(), foreign]), Some((vec![10], false)));
    let former = block(OWN, 11, 4, 1);
    assert_eq!(purges(&[own, former]), Some((vec![10], false)));
}

#[test]
fn a_journal_half_is_valid_with_its_whole_snapshot_and_says_what_is_missing() {
    let zeros = vec![0; BLOCK as usize];
    let two = [block(OWN, 10, 10, 2), block(OWN, 11, 10, 2)];
    assert_eq!(purges(&two), Some((vec![10, 11], false)));
    assert_eq!(purges(&[two[0].clone(), zeros.clone()]), None);
    let behind = [block(OWN, 10, 10, 1), zeros.clone(), block(OWN, 12, 10, 1)];
    assert_eq!(purges(&behind), Some((vec![10], true)));
    assert_eq!(purges(&[zeros]), None);
}

fn cluster(offset_units: u32, len_units: u32, entries: &[Entry]) -> Vec<u8> {
    let header = ClusterHeader {
        uuid: OWN,
        sequence: 1,
        segment: 0,
        offset_units,
        len_units,
        entries: entries.len() as u32,
        link: ChainLink::default(),
    };
    header.encode(entries)
}

fn entry(offset_units: u32, len_units: u32) -> Entry {
    Entry {
        hash: KeyHash(7),
        offset_units,
        len_units,
        kind: EntryKind::Object,
    }
}

#[test]
fn clusters_and_records_lie_within_their_segment() {
    let units = SEGMENT / 16;
    let decode = |bytes: &[u8]| ClusterHeader::decode(bytes, SEGMENT).map(|_| ());
    assert_eq!(decode(&cluster(units - 512, 512, &[])), Ok(()));
    let place = Err(FormatError::Invalid("cluster place"));
    assert_eq!(decode(&cluster(units - 256, 512, &[])), place, "too long");
    assert_eq!(decode(&cluster(1, 256, &[])), place, "no block begins here");
    let many = vec![entry(16, 16); 200];
    assert_eq!(decode(&cluster(0, 256, &many)), place, "longer table");
    let within = entry(units - 16, 16);
    assert_eq!(decode(&cluster(0, 512, &[within])), Ok(()));
    let behind = entry(units - 15, 16);
    let wrong = Err(FormatError::Invalid("entry place"));
    assert_eq!(decode(&cluster(0, 512, &[behind])), wrong);
}

#[test]
fn a_reserved_byte_with_a_meaning_is_refused() {
    let header = SlotHeader {
        state: SegmentState::Sealed,
        uuid: OWN,
        segment: 0,
        sequence: 1,
        used_units: 0,
        entries: 0,
        entries_crc: 0,
        last_cluster: 0,
    };
    let mut bytes = encode_slot(&header, &[]);
    assert!(SlotHeader::decode(&bytes).is_ok());
    bytes[7] = 1;
    let crc = crc32c(&bytes[..SLOT_HEADER_BYTES - 4]).to_le_bytes();
    bytes[SLOT_HEADER_BYTES - 4..SLOT_HEADER_BYTES].copy_from_slice(&crc);
    let wrong = FormatError::Invalid("reserved field");
    assert_eq!(SlotHeader::decode(&bytes), Err(wrong));
}

#[test]
fn every_block_of_a_long_body_is_checked() {
    let body = vec![b'b'; 3 * BODY_BLOCK_BYTES - 100];
    let sections = RecordSections {
        key: b"key",
        body: &body,
        ..RecordSections::default()
    };
    let mut record = vec![0; body.len() + 4096];
    let head = RecordHead::default();
    let (len, layout) = encode_record(&head, &sections, &mut record).unwrap();
    record.truncate(len);
    assert!(parse_record(&record, &head.place).is_ok());
    for block in 0..3 {
        let mut bad = record.clone();
        bad[layout.body.start + block * BODY_BLOCK_BYTES + 5] ^= 1;
        let refused = parse_record(&bad, &head.place).map(|_| ());
        assert_eq!(refused, Err(FormatError::Checksum), "block {block}");
    }
}
