//! Samples: one structure of every kind, with the values and bytes that the golden files contain.

use foxy_base::{KeyHash, KeySeed, WallTime, key_hash};
use foxy_format::*;

pub(crate) fn uuid() -> StoreUuid {
    StoreUuid(*b"golden-store-001")
}

pub(crate) fn entries() -> Vec<Entry> {
    let entry = |key: &[u8], offset_units, len_units, kind| Entry {
        hash: key_hash(key),
        offset_units,
        len_units,
        kind,
    };
    vec![
        entry(b"gone", 8, 0, EntryKind::Tombstone),
        Entry {
            hash: KeyHash(u128::from(LogPosition::new(41, 77).0)),
            offset_units: 8,
            len_units: 0,
            kind: EntryKind::RecordTombstone,
        },
        entry(b"forward GET http://example.com/", 9, 3, EntryKind::Object),
        entry(b"head", 12, 1, EntryKind::Head),
        entry(b"fragment", 13, 3, EntryKind::Fragment),
    ]
}

pub(crate) fn geometry() -> Geometry {
    Geometry {
        segment_bytes: 1 << 20,
        segments: 64,
        cluster_bytes: 256 << 10,
        slot_bytes: 8192,
        journal_bytes: 65536,
        removals_bytes: 16384,
        grown: grown(),
    }
}

pub(crate) fn grown() -> [Growth; GROWTHS_MAX] {
    let mut grown = [Growth::default(); GROWTHS_MAX];
    grown[0] = Growth {
        turn: 50,
        first: 40,
    };
    grown[1] = Growth {
        turn: 0x0001_0203_0405,
        first: 48,
    };
    grown
}

pub(crate) fn superblock() -> Superblock {
    Superblock {
        extensions: 0,
        generation: 7,
        uuid: uuid(),
        geometry: geometry(),
        floor: LogPosition::new(3, 5),
        membership: Membership {
            epoch: 40,
            members: 0x1122_3344_5566_7788,
            former: std::array::from_fn(|n| 0x0102_0304_0506_0700 + n as u64),
        },
        quarantine: vec![2, 9, 63],
        seed: KeySeed::default(),
    }
}

/// A superblock with extensions `chain` and `seed`.
pub(crate) fn superblock_seeded() -> Superblock {
    let mut superblock = superblock_chained();
    superblock.set_seed(KeySeed(0x1234_5678_9abc_def0));
    superblock
}

pub(crate) fn slot_header() -> SlotHeader {
    SlotHeader {
        state: SegmentState::Sealed,
        uuid: uuid(),
        segment: 4,
        sequence: 69,
        used_units: 2048,
        entries: 0,
        entries_crc: 0,
        last_cluster: 0,
    }
}

/// A slot with extension `chain`: it names the last cluster of its segment.
pub(crate) fn slot_chained() -> SlotHeader {
    SlotHeader {
        last_cluster: 0x0102_0304_0506,
        ..slot_header()
    }
}

/// A superblock with extension `chain`.
pub(crate) fn superblock_chained() -> Superblock {
    Superblock {
        extensions: EXTENSION_CHAIN,
        ..superblock()
    }
}

pub(crate) fn cluster_header() -> ClusterHeader {
    ClusterHeader {
        uuid: uuid(),
        sequence: 69,
        segment: 4,
        offset_units: 256,
        len_units: 256,
        entries: 5,
        link: ChainLink::default(),
    }
}

/// A cluster with extension `chain`: it has a position in the chain.
pub(crate) fn cluster_chained() -> ClusterHeader {
    ClusterHeader {
        entries: 6,
        link: ChainLink {
            number: 0x0102_0304_0506,
            before: 0xa1b2_c3d4,
            flushed: 0x0102_0304_0506 - 0x0203,
        },
        ..cluster_header()
    }
}

/// The entries that `entries` returns, and an entry for a cluster that was given up (its write failed or was
/// torn).
pub(crate) fn entries_chained() -> Vec<Entry> {
    let given_up = Entry {
        hash: KeyHash(0x0102_0304_0500 << 64 | u128::from(LogPosition::new(68, 512).0)),
        ..entries()[1]
    };
    [vec![given_up], entries()].concat()
}

pub(crate) fn journal() -> JournalBlock {
    let note = |kind, soft, text: &[u8]| PurgeNote {
        kind,
        soft,
        sequence: 9,
        at: 1_700_000_000_000,
        partition: b"forward".to_vec(),
        text: text.to_vec(),
    };
    JournalBlock {
        doubled: false,
        uuid: uuid(),
        sequence: 12,
        first: 10,
        snapshot: 2,
        seen: 9,
        retired: 7,
        floor: 3,
        notes: vec![
            note(PurgeKind::Host, false, b"example.com"),
            note(PurgeKind::All, true, b""),
        ],
    }
}

/// A journal block with extension `chain`, of a half in which every block is written twice.
pub(crate) fn journal_doubled() -> JournalBlock {
    JournalBlock {
        doubled: true,
        ..journal()
    }
}

/// Three entries of a removal log with twelve places.
pub(crate) fn removals() -> Vec<RemovalEntry> {
    let place = LogPosition::new(41, 77);
    let removed = [
        Removed::Place(place),
        Removed::Key(key_hash(b"gone"), place),
        Removed::Nothing,
    ];
    (25..)
        .zip(removed)
        .map(|(number, removed)| RemovalEntry {
            number,
            before: number as u32 - 25,
            removed,
        })
        .collect()
}

pub(crate) fn removal_log() -> Vec<u8> {
    let entries = removals().into_iter();
    entries.flat_map(|e| e.encode(uuid())).collect()
}

pub(crate) fn removals_decode(bytes: &[u8]) -> bool {
    let (places, rest) = bytes.as_chunks::<REMOVAL_BYTES>();
    let decoded = (1..)
        .zip(places)
        .map(|(at, b)| RemovalEntry::decode(b, uuid(), at, 12));
    rest.is_empty() && decoded.collect::<Result<Vec<_>, _>>() == Ok(removals())
}

pub(crate) fn record_head() -> RecordHead {
    RecordHead {
        kind: RecordKind::Object,
        place: RecordPlace {
            uuid: uuid(),
            sequence: 69,
            address_units: 8201,
            seed: KeySeed::default(),
        },
        hash: key_hash(b"forward GET http://example.com/"),
        group: 0x1122_3344_5566_7788,
        version: 99,
        purge_sequence: 8,
        request_time: WallTime(1_700_000_000_001),
        response_time: WallTime(1_700_000_000_150),
        expires: WallTime(1_700_000_060_000),
        nonce: 0xabcd,
        total_length: 600,
        fragment_size: 0,
        fragment: 0,
        status: 200,
        flags: 3,
        rules: std::array::from_fn(|i| i as u8),
    }
}

/// The head record of a large object (it has no body), or a fragment of the object (it has no fields).
pub(crate) fn large_head(kind: RecordKind) -> RecordHead {
    let fragment = if kind == RecordKind::Fragment { 7 } else { 0 };
    let hash = match kind {
        RecordKind::Fragment => fragment_hash(record_head().hash, 99, fragment),
        _ => record_head().hash,
    };
    RecordHead {
        kind,
        hash,
        total_length: 1 << 33,
        fragment_size: 129_024,
        fragment,
        purge_sequence: u64::from(u32::MAX) << 32 | 5,
        expires: WallTime(i64::MAX),
        request_time: WallTime(i64::MIN),
        ..record_head()
    }
}

/// Sections of a record of this kind.
pub(crate) fn parts(kind: RecordKind) -> RecordSections<'static> {
    match kind {
        RecordKind::Object => sections(),
        RecordKind::Head => RecordSections {
            body: b"",
            ..sections()
        },
        RecordKind::Fragment => RecordSections {
            vary: b"",
            tags: b"",
            fields: b"",
            ..sections()
        },
    }
}

pub(crate) const KINDS: [(&str, RecordKind); 3] = [
    ("record", RecordKind::Object),
    ("record-head", RecordKind::Head),
    ("record-fragment", RecordKind::Fragment),
];

pub(crate) fn head_of(kind: RecordKind) -> RecordHead {
    match kind {
        RecordKind::Object => record_head(),
        _ => large_head(kind),
    }
}

pub(crate) const BODY: [u8; 600] = [b'b'; 600];

pub(crate) fn sections() -> RecordSections<'static> {
    RecordSections {
        key: b"forward GET http://example.com/",
        vary: b"accept-language\nde",
        tags: b"t1 t2",
        fields: b"\0\0\0\0",
        body: &BODY,
    }
}

pub(crate) fn record(kind: RecordKind) -> Vec<u8> {
    let mut out = vec![0xff; 4096];
    let (len, _) = encode_record(&head_of(kind), &parts(kind), &mut out).unwrap();
    out.truncate(len);
    out
}

/// Every golden file: its name, its bytes, and a description.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>, String)> {
    let slot = encode_slot(&slot_header(), &entries());
    let cluster = cluster_header().encode(&entries());
    let records = KINDS.map(|(name, kind)| {
        let comment = format!("{:#?}\nits parts are in the test", head_of(kind));
        (name, record(kind), comment)
    });
    let others = vec![
        (
            "superblock",
            superblock().encode(),
            format!("{:#?}", superblock()),
        ),
        (
            "slot",
            slot,
            format!("{:#?}\n{:#?}", slot_header(), entries()),
        ),
        (
            "cluster",
            cluster,
            format!("{:#?}\n{:#?}", cluster_header(), entries()),
        ),
        (
            "journal",
            journal().encode().unwrap(),
            format!("{:#?}", journal()),
        ),
        ("removals", removal_log(), format!("{:#?}", removals())),
        (
            "journal-doubled",
            journal_doubled().encode().unwrap(),
            format!("{:#?}", journal_doubled()),
        ),
        (
            "superblock-chained",
            superblock_chained().encode(),
            format!("{:#?}", superblock_chained()),
        ),
        (
            "superblock-seeded",
            superblock_seeded().encode(),
            format!("{:#?}", superblock_seeded()),
        ),
        (
            "slot-chained",
            encode_slot(&slot_chained(), &entries_chained()),
            format!("{:#?}\n{:#?}", slot_chained(), entries_chained()),
        ),
        (
            "cluster-chained",
            cluster_chained().encode(&entries_chained()),
            format!("{:#?}\n{:#?}", cluster_chained(), entries_chained()),
        ),
    ];
    others.into_iter().chain(records).collect()
}

pub(crate) fn decodes(name: &str, bytes: &[u8]) -> bool {
    match name {
        "superblock" => Superblock::decode(bytes) == Ok(superblock()),
        "superblock-chained" => Superblock::decode(bytes) == Ok(superblock_chained()),
        "superblock-seeded" => Superblock::decode(bytes) == Ok(superblock_seeded()),
        "slot" => slot_decodes(bytes, slot_header(), &entries()),
        "slot-chained" => slot_decodes(bytes, slot_chained(), &entries_chained()),
        "cluster-chained" => {
            ClusterHeader::decode(bytes, 1 << 20) == Ok((cluster_chained(), entries_chained()))
        }
        "cluster" => ClusterHeader::decode(bytes, 1 << 20) == Ok((cluster_header(), entries())),
        name if name.starts_with("record") => {
            parse_record(bytes, &record_head().place).is_ok_and(|(head, layout)| {
                let kind = KINDS.into_iter().find(|(n, _)| *n == name).unwrap().1;
                let s = parts(kind);
                let parts = [
                    (layout.key, s.key),
                    (layout.vary, s.vary),
                    (layout.tags, s.tags),
                    (layout.fields, s.fields),
                    (layout.body, s.body),
                ];
                head == head_of(kind) && parts.into_iter().all(|(r, b)| bytes[r] == *b)
            })
        }
        "removals" => removals_decode(bytes),
        "journal" => JournalBlock::decode(bytes) == Ok(journal()),
        "journal-doubled" => JournalBlock::decode(bytes) == Ok(journal_doubled()),
        _ => panic!("unknown structure {name}"),
    }
}

fn slot_decodes(bytes: &[u8], expected: SlotHeader, entries: &[Entry]) -> bool {
    SlotHeader::decode(bytes).is_ok_and(|header| {
        let expected = SlotHeader {
            entries: header.entries,
            entries_crc: header.entries_crc,
            ..expected
        };
        let table = decode_slot_entries(&header, bytes, 1 << 20);
        header == expected && table.is_ok_and(|table| table == entries)
    })
}
