//! The bytes on disk do not change by accident: golden files decode to what their comments say,
//! encode to the same bytes again, and every flipped byte is refused.
//!
//! `FOXY_WRITE_GOLDEN=1` writes them anew; look at the difference before committing it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::path::PathBuf;

use foxy_base::{KeyHash, WallTime, key_hash};
use foxy_format::*;

fn uuid() -> StoreUuid {
    StoreUuid(*b"golden-store-001")
}

fn entries() -> Vec<Entry> {
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
            kind: EntryKind::Void,
        },
        entry(b"forward GET http://example.com/", 9, 3, EntryKind::Object),
        entry(b"head", 12, 1, EntryKind::Head),
        entry(b"fragment", 13, 3, EntryKind::Fragment),
    ]
}

fn geometry() -> Geometry {
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

fn grown() -> [Growth; GROWTHS_MAX] {
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

fn superblock() -> Superblock {
    Superblock {
        generation: 7,
        uuid: uuid(),
        geometry: geometry(),
        floor: LogPosition::new(3, 5),
        company: Company {
            epoch: 40,
            members: 0x1122_3344_5566_7788,
            former: std::array::from_fn(|n| 0x0102_0304_0506_0700 + n as u64),
        },
        quarantine: vec![2, 9, 63],
    }
}

fn slot_header() -> SlotHeader {
    SlotHeader {
        state: SegmentState::Sealed,
        uuid: uuid(),
        segment: 4,
        sequence: 69,
        used_units: 2048,
        entries: 0,
        entries_crc: 0,
    }
}

fn cluster_header() -> ClusterHeader {
    ClusterHeader {
        uuid: uuid(),
        sequence: 69,
        segment: 4,
        offset_units: 256,
        len_units: 256,
        entries: 5,
    }
}

fn journal() -> JournalBlock {
    let note = |kind, soft, text: &[u8]| PurgeNote {
        kind,
        soft,
        sequence: 9,
        at: 1_700_000_000_000,
        partition: b"forward".to_vec(),
        text: text.to_vec(),
    };
    JournalBlock {
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

/// Three entries of a log with places for twelve.
fn removals() -> Vec<RemovalEntry> {
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

fn removal_log() -> Vec<u8> {
    let entries = removals().into_iter();
    entries.flat_map(|e| e.encode(uuid())).collect()
}

fn removals_decode(bytes: &[u8]) -> bool {
    let (places, rest) = bytes.as_chunks::<REMOVAL_BYTES>();
    let decoded = (1..)
        .zip(places)
        .map(|(at, b)| RemovalEntry::decode(b, uuid(), at, 12));
    rest.is_empty() && decoded.collect::<Result<Vec<_>, _>>() == Ok(removals())
}

fn record_head() -> RecordHead {
    RecordHead {
        kind: RecordKind::Object,
        place: RecordPlace {
            uuid: uuid(),
            sequence: 69,
            address_units: 8201,
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

/// Part of a large object: its head has no body, and a fragment no fields.
fn large_head(kind: RecordKind) -> RecordHead {
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

/// What a record of this kind carries.
fn parts(kind: RecordKind) -> RecordSections<'static> {
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

const KINDS: [(&str, RecordKind); 3] = [
    ("record", RecordKind::Object),
    ("record-head", RecordKind::Head),
    ("record-fragment", RecordKind::Fragment),
];

fn head_of(kind: RecordKind) -> RecordHead {
    match kind {
        RecordKind::Object => record_head(),
        _ => large_head(kind),
    }
}

const BODY: [u8; 600] = [b'b'; 600];

fn sections() -> RecordSections<'static> {
    RecordSections {
        key: b"forward GET http://example.com/",
        vary: b"accept-language\nde",
        tags: b"t1 t2",
        fields: b"\0\0\0\0",
        body: &BODY,
    }
}

fn record(kind: RecordKind) -> Vec<u8> {
    let mut out = vec![0xff; 4096];
    let (len, _) = encode_record(&head_of(kind), &parts(kind), &mut out).unwrap();
    out.truncate(len);
    out
}

/// Every golden file: name, bytes, what it is.
fn all() -> Vec<(&'static str, Vec<u8>, String)> {
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
    ];
    others.into_iter().chain(records).collect()
}

fn decodes(name: &str, bytes: &[u8]) -> bool {
    match name {
        "superblock" => Superblock::decode(bytes).is_ok_and(|s| s == superblock()),
        "slot" => SlotHeader::decode(bytes).is_ok_and(|header| {
            let expected = SlotHeader {
                entries: header.entries,
                entries_crc: header.entries_crc,
                ..slot_header()
            };
            header == expected && decode_slot_entries(&header, bytes, 1 << 20) == Ok(entries())
        }),
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
        _ => panic!("unknown structure {name}"),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/v1")
}

fn hex(bytes: &[u8], comment: &str) -> String {
    let mut text = comment
        .lines()
        .fold(String::new(), |text, line| text + "# " + line + "\n");
    // Zeros to the end are left out; the length tells.
    let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    let _ = writeln!(text, "length {}", bytes.len());
    for (n, line) in bytes[..used].chunks(16).enumerate() {
        let digits: Vec<_> = line.iter().map(|b| format!("{b:02x}")).collect();
        let _ = writeln!(text, "{:04x}: {}", n * 16, digits.join(" "));
    }
    text
}

fn unhex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut length = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        match line.split_once(": ") {
            Some((_, digits)) => bytes.extend(
                digits
                    .split(' ')
                    .map(|d| u8::from_str_radix(d, 16).unwrap()),
            ),
            None => length = line.strip_prefix("length ").unwrap().parse().unwrap(),
        }
    }
    bytes.resize(length, 0);
    bytes
}

#[test]
fn golden_bytes_decode_and_encode_to_themselves() {
    for (name, bytes, comment) in all() {
        let path = folder().join(format!("{name}.hex"));
        if std::env::var_os("FOXY_WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, hex(&bytes, &comment)).unwrap();
        }
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let golden = unhex(&text);
        assert!(
            decodes(name, &golden),
            "{name}: the golden bytes decode to something else"
        );
        assert!(
            golden == bytes,
            "{name}: the bytes on disk have changed; that needs a new format version"
        );
    }
}

#[test]
fn every_flipped_byte_and_every_truncation_is_refused() {
    for (name, bytes, _) in all() {
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // Zeros behind a record's body fill up its last unit: nobody reads them.
                let kind = KINDS.into_iter().find(|(n, _)| *n == name);
                let padding = kind.is_some_and(|(_, kind)| {
                    at >= RecordLayout::of(&head_of(kind), &parts(kind)).body.end
                });
                assert!(
                    !decodes(name, &damaged) || padding,
                    "{name}: byte {at} flipped by {flip:#x}"
                );
            }
            assert!(!decodes(name, &bytes[..at]), "{name} cut at {at}");
        }
    }
}

#[test]
fn each_refusal_has_its_reason() {
    let whole = superblock().encode();
    assert_eq!(Superblock::decode(&[0; 4096]), Err(FormatError::Empty));
    assert_eq!(Superblock::decode(&[7; 4096]), Err(FormatError::Foreign));
    assert_eq!(
        Superblock::decode(&whole[..100]),
        Err(FormatError::Truncated)
    );
    let mut newer = whole.clone();
    newer[4] = 9;
    assert_eq!(
        Superblock::decode(&newer),
        Err(FormatError::Newer(9)),
        "before the checksum is looked at"
    );
    let mut older = whole.clone();
    older[4] = 0;
    assert_eq!(Superblock::decode(&older), Err(FormatError::Older(0)));
    let mut extended = whole.clone();
    extended[7] = 0x80;
    let crc = foxy_base::crc32c(&extended[..SUPERBLOCK_BYTES - 4]);
    assert_eq!(
        Superblock::decode(&extended),
        Err(FormatError::Checksum),
        "a flipped bit is no extension"
    );
    extended[SUPERBLOCK_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(
        Superblock::decode(&extended),
        Err(FormatError::Extended(0x8000))
    );
    let mut damaged = whole;
    damaged[20] ^= 1;
    assert_eq!(Superblock::decode(&damaged), Err(FormatError::Checksum));
}

#[test]
fn geometry_fits_and_does_not_overlap() {
    for total in [512 << 10, 4 << 20, 1 << 30, 8u64 << 40] {
        let segment = (total / 256).clamp(64 << 10, 32 << 20) as u32;
        let g = Geometry::fit(total, segment, (segment / 2).min(512 << 10), 2048).unwrap();
        assert!(g.total_bytes() <= total && g.segments >= 4, "{g:?}");
        assert!(
            total - g.total_bytes() < u64::from(segment) + u64::from(g.slot_bytes),
            "space is wasted: {g:?}"
        );
        assert_eq!(g.slot_at(g.segments), g.segment_at(0));
        assert_eq!(
            (g.segment_of(1), g.segment_of(u64::from(g.segments) + 1)),
            (0, 0)
        );
    }
    assert!(Geometry::fit(100 << 10, 64 << 10, 16 << 10, 2048).is_err());
    assert!(
        Geometry {
            cluster_bytes: 1 << 20,
            ..geometry()
        }
        .check()
        .is_err()
    );
}

#[test]
fn the_page_on_the_format_agrees_with_the_code() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/disk-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sizes = [
        ("format version", u64::from(FORMAT_VERSION)),
        ("unit", UNIT),
        ("block", BLOCK),
        ("superblock", SUPERBLOCK_BYTES as u64),
        ("slot header", SLOT_HEADER_BYTES as u64),
        ("cluster header", CLUSTER_HEADER_BYTES as u64),
        ("entry", ENTRY_BYTES as u64),
        ("record header", RECORD_HEADER_BYTES as u64),
        ("body block", BODY_BLOCK_BYTES as u64),
        ("rules digest", RULES_BYTES as u64),
        ("removal log entry", REMOVAL_BYTES as u64),
        ("journal block header", JOURNAL_BLOCK_HEADER_BYTES as u64),
    ];
    for (name, value) in sizes {
        assert!(
            page.contains(&format!("| {name} | {value} |")),
            "docs/disk-format.md: {name} is {value} now"
        );
    }
    // Each field table row "| offset | length | field |" must tile its structure.
    for (title, length) in [
        ("## Superblock", SUPERBLOCK_BYTES),
        ("## Summary slot", SLOT_HEADER_BYTES),
        ("## Cluster", CLUSTER_HEADER_BYTES),
        ("## Entry", ENTRY_BYTES),
        ("## Record", RECORD_HEADER_BYTES),
        ("## Purge journal", JOURNAL_BLOCK_HEADER_BYTES),
        ("## Removal log", REMOVAL_BYTES),
    ] {
        let section = page
            .split(title)
            .nth(1)
            .unwrap_or_else(|| panic!("{title} is missing"));
        let section = section.split("\n## ").next().unwrap();
        let mut at = 0;
        for row in section.lines().filter_map(field_row) {
            assert_eq!(row.0, at, "{title}: a gap or an overlap before {}", row.2);
            at += row.1;
        }
        assert_eq!(at, length, "{title}: fields do not add up");
    }
    // And the order of the numbers, held by the bytes themselves.
    let record = record(RecordKind::Object);
    let section = page.split("## Record").nth(1).unwrap();
    let rows: Vec<_> = section.lines().filter_map(number_row).collect();
    let mut at = RECORD_HEADER_BYTES;
    for (n, name) in rows.iter().enumerate() {
        let code = record[7 + n / 2] >> (n % 2 * 4) & 15;
        let len = usize::from(if code > 10 { code - 10 } else { code % 9 });
        let bytes = &record[at..at + len];
        at += len;
        let expected: &[u8] = match *name {
            name if name.starts_with("response time") => &1_700_000_000_150u64.to_le_bytes()[..6],
            "object version" => &[99],
            name if name.starts_with("purge sequence") => &[8],
            // 149 ms before the response: zigzag 297.
            "request time" => &[0x29, 0x01],
            name if name.starts_with("nonce") => &[0xcd, 0xab],
            "status" => &[200],
            "key length" => &[31],
            "body length" => &[0x58, 0x02],
            _ => continue,
        };
        assert_eq!(bytes, expected, "{name}");
    }
    assert_eq!(rows.len(), 18, "the digest has one row for eight numbers");
}

fn number_row(line: &str) -> Option<&str> {
    let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
    let number = cells.next()?;
    let name = cells.next()?;
    let numbered = number.split(' ').next()?.parse::<u32>().is_ok();
    (numbered && cells.next().is_none()).then_some(name)
}

fn field_row(line: &str) -> Option<(usize, usize, &str)> {
    let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
    let (at, len) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    Some((at, len, cells.next()?))
}
