//! Tests that the page about the format agrees with the code.

use std::path::PathBuf;

use foxy_format::*;

use crate::samples::record;

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
    // The rows "| offset | length | field |" of a table must cover the structure without gaps or
    // overlaps.
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
    // The order of the numbers is checked against the bytes of a record.
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
            // The request time is 149 ms before the response time, so its zigzag code is 297.
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
