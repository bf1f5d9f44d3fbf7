//! Tests that no change of the code changes the bytes on disk by accident. Golden files must decode to the
//! values in their comments, and these values must encode to the same bytes again. A golden file with a
//! flipped byte must be refused.
//!
//! `FOXY_WRITE_GOLDEN=1` writes the golden files anew; check the difference before you commit them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod page;
mod samples;

use std::fmt::Write as _;
use std::path::PathBuf;

use foxy_format::*;

use samples::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/v1")
}

fn hex(bytes: &[u8], comment: &str) -> String {
    let mut text = comment
        .lines()
        .fold(String::new(), |text, line| text + "# " + line + "\n");
    // Zeros at the end are left out; the length shows how many there are.
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
                // The zeros behind a record's body fill its last unit; no decoder reads them.
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
    let both = |a: &[u8], b: &[u8]| Superblock::decode_both(&[a, b].concat());
    assert_eq!(
        both(&newer, &whole),
        [Err(FormatError::Checksum), Ok(superblock())],
        "a flipped bit is no newer version"
    );
    assert_eq!(
        both(&newer, &newer),
        [const { Err(FormatError::Newer(9)) }; 2]
    );
    let mut real = newer.clone();
    real[100] ^= 1;
    assert_eq!(
        both(&whole, &real),
        [Ok(superblock()), Err(FormatError::Newer(9))]
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
