//! A complete store of format version 1, as it was when that version was frozen. A start finds
//! everything that should be found in it, and nothing else.
//!
//! The command `FOXY_WRITE_GOLDEN=1 cargo test -p foxy-store golden` made `golden/v1/store.hex`. Stores of
//! version 1 are in use: if a test fails here, the change must be reverted, and no new file may be made.

#[path = "../../../../golden/read.rs"]
mod frozen;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use foxy_base::key_hash;
use foxy_disk::{Disk, MemDisk};

use super::live_rig::Live;
use super::purges::tagged;
use super::rig::{Rig, object, options};
use crate::*;

const TINY: usize = 400;
const LARGE: &str = "forward GET http://a.test/large";
const PAGE: &str = "forward GET http://a.test/page";
const GERMAN: &str = "forward GET http://a.test/page\n00000000000000ab\nde";
/// The segment in quarantine.
const BAD: u32 = 8;

pub(super) fn path(folder: &str) -> PathBuf {
    frozen::path(env!("CARGO_MANIFEST_DIR"), folder)
}

fn name(n: u32) -> String {
    format!("forward GET http://h{n}.test/object/{n}")
}

/// Makes a content that compresses well, and differs between objects and versions.
fn content(n: u32, version: u32) -> Vec<u8> {
    let mut body = format!("{n}/{version} ").into_bytes();
    body.resize(200 + 500 * n as usize, b'a' + (n % 26) as u8);
    body
}

fn large() -> Vec<u8> {
    (0..15_000).map(|at| b'A' + (at / 1000) as u8).collect()
}

/// Makes a store with objects, variants, a large object, and removals and purges of every kind. The store has
/// grown, was one of two stores, and has reused segments. It has a segment in quarantine, and a removal that
/// is in its removal log only.
fn make() -> MemDisk {
    let mut live = Live::new(&[6, 6], 1);
    live.remove(1);
    live.settle();
    let fill = |live: &mut Live, range: std::ops::Range<u32>| {
        for n in range {
            live.engine
                .put(object(&format!("filler {n}"), &[b'.'; 5000]));
            if n % 8 == 0 {
                live.settle();
            }
        }
        live.settle();
    };
    fill(&mut live, 0..90);
    assert_eq!(live.grow(0, 3).unwrap(), 9);
    live.settle();
    for n in 0..TINY {
        live.engine
            .put(object(&format!("tiny {n}"), n.to_string().as_bytes()));
    }
    live.settle();
    for n in 0..12 {
        let sequence = live.engine.purges().purge_sequence();
        let tags = format!("t{n}, all");
        live.engine
            .put(tagged(&name(n), &content(n, 1), &tags, sequence));
    }
    let mut page = object(PAGE, b"Hello");
    page.vary = Bytes::from_static(b"accept-language\nen");
    page.meta.nonce = 0xab;
    live.engine.put(page);
    live.engine.put(object(GERMAN, b"Hallo"));
    let key = Bytes::from_static(LARGE.as_bytes());
    let mut put = live.engine.put_large(NewLarge {
        hash: key_hash(&key),
        key,
        group: 7,
        meta: ObjectMeta::default(),
        vary: Bytes::new(),
        tags: Bytes::new(),
        fields: foxy_base::FieldBlock::empty(),
        length: None,
    });
    assert!(put.append(&large()));
    assert!(put.finish().admitted.is_visible());
    live.settle();
    let hash = |n: u32| key_hash(name(n).as_bytes());
    live.engine.supersede(hash(0), name(0).as_bytes());
    live.engine.put(object(&name(1), &content(1, 2)));
    drop(live.engine.purge(hash(2), name(2).as_bytes()));
    live.purge(PurgeKind::Tag, "t3", false);
    live.purge(PurgeKind::Url, "http://h4.test/object/4", true);
    live.purge(PurgeKind::Host, "h5.test", false);
    live.purge(PurgeKind::Prefix, "h6.test/obj", false);
    live.purge(PurgeKind::Expression, "/object/7$", false);
    live.settle();
    let store = live.engine.fleet().store(live.id(0)).unwrap();
    assert_eq!(store.space.incarnation(BAD), 0, "nothing is lost by it");
    store.condition.restore_quarantine(&[BAD]);
    live.settle();
    fill(&mut live, 90..100);
    live.engine.supersede(hash(8), name(8).as_bytes());
    live.slots[0].disk.kill()
}

/// Returns the text form that [`frozen::unhex`] reads.
pub(super) fn hex(disk: &MemDisk) -> String {
    let bytes = disk.peek(0, disk.len() as usize);
    let mut text = format!("length {}\n", bytes.len());
    let lines: Vec<_> = bytes.chunks(32).collect();
    let mut n = 0;
    while n < lines.len() {
        let times = lines[n..]
            .iter()
            .take_while(|line| **line == lines[n])
            .count();
        if lines[n].iter().any(|byte| *byte != 0) {
            let digits: String = lines[n].iter().map(|b| format!("{b:02x}")).collect();
            let _ = writeln!(text, "{:x} {times} {digits}", n * 32);
        }
        n += times;
    }
    text
}

/// The store as it was frozen.
fn golden() -> MemDisk {
    if std::env::var_os("FOXY_WRITE_GOLDEN").is_some() {
        std::fs::write(path("v1"), hex(&make())).unwrap();
    }
    read(&path("v1"))
}

pub(super) fn read(path: &Path) -> MemDisk {
    let bytes = frozen::unhex(&std::fs::read_to_string(path).unwrap());
    let disk = MemDisk::new(bytes.len() as u64, 512, 1);
    disk.write_at(0, &bytes).unwrap();
    disk.kill()
}

#[test]
fn a_store_of_version_1_gives_what_is_in_it() {
    let mut rig = Rig::open(golden(), 2 << 20, 9, options());
    rig.settle();
    for n in 0..TINY {
        assert_eq!(rig.text(&format!("tiny {n}")), Some(n.to_string()));
    }
    let found = |n: u32| rig.get(&name(n));
    for n in [0, 2, 3, 5, 6, 7, 8] {
        assert!(found(n).is_none(), "object {n} is removed or purged");
    }
    for (n, version) in [(1, 2), (4, 1), (9, 1), (10, 1), (11, 1)] {
        let object = found(n).unwrap_or_else(|| panic!("object {n} is lost"));
        assert!(object.body() == &content(n, version), "object {n}");
        assert_eq!(object.is_soft_purged(), n == 4, "object {n}");
    }
    let nine = found(9).unwrap();
    assert!(nine.fields().text().ends_with(b"Cache-Tag: t9, all\r\n"));
    let page = rig.get(PAGE).unwrap();
    assert_eq!(
        (page.meta().nonce, &page.vary()[..]),
        (0xab, &b"accept-language\nen"[..])
    );
    assert_eq!(rig.text(GERMAN).unwrap(), "Hallo");
    let head = rig.get(LARGE).unwrap();
    let pieces = (0..3).map(|n| rig.fragment(&head, n).unwrap().body().to_vec());
    assert!(pieces.collect::<Vec<_>>().concat() == large());
    assert_eq!(rig.engine.stats().stores[0].quarantined, 1);
    // The store also continues to work: an object that is stored now is found after a restart, beside
    // the older objects.
    rig.put("new", b"version 1");
    rig.settle();
    let again = rig.kill();
    assert_eq!(again.text("new").as_deref(), Some("version 1"));
    assert!(again.get(&name(11)).unwrap().body() == &content(11, 1));
    assert!(again.get(&name(8)).is_none());
}

#[test]
fn the_tables_of_a_store_of_version_1_say_what_it_has() {
    let found = inspect(&golden()).unwrap();
    let block = &found.superblock;
    let geometry = &block.geometry;
    assert_eq!((geometry.segments, geometry.grown[0].first), (9, 6));
    assert!(geometry.grown[0].turn > 6 && geometry.grown[1].turn == 0);
    assert_eq!(block.quarantine, [BAD]);
    assert!(block.membership.epoch > 0 && block.membership.members != 0);
    assert!(found.superblocks.iter().all(Result::is_ok));
    let notes = found.journal.iter().flatten().map(|half| half.notes.len());
    assert_eq!(notes.max(), Some(5));
    assert_eq!(found.removals, 1);
    let all = |kind: usize| found.segments.iter().map(|s| s.entries[kind]).sum::<u64>();
    for kind in 0..5 {
        assert!(all(kind) > 0, "entries of every kind are listed: {kind}");
    }
    let entries = found
        .segments
        .iter()
        .map(|s| s.entries.iter().sum::<u64>())
        .max();
    let fit =
        (geometry.slot_bytes as usize - foxy_format::SLOT_HEADER_BYTES) / foxy_format::ENTRY_BYTES;
    assert!(
        entries > Some(fit as u64),
        "a summary goes on behind its slot"
    );
    assert!(
        found.segments.iter().any(|s| s.sequence > 9),
        "a second incarnation"
    );
    let clock = foxy_base::ManualClock::new(foxy_base::WallTime::from_secs(1_000_100));
    let whole = verify(
        std::sync::Arc::new(golden()),
        std::sync::Arc::new(clock),
        |_, _| {},
    )
    .unwrap();
    assert!(whole.is_whole() && whole.purged == 4, "{whole:?}");
}

#[test]
fn a_store_of_another_version_is_refused_by_name_and_may_be_formatted() {
    let other = |place: usize, value: u8| {
        let disk = golden();
        for at in [0, 4096] {
            disk.corrupt(at, 4096, |bytes| {
                bytes[place] = value;
                let crc = foxy_base::crc32c(&bytes[..4092]);
                bytes[4092..].copy_from_slice(&crc.to_le_bytes());
            });
        }
        disk
    };
    for (place, value, text) in [
        (4, 0, "from before the first release (format 0)"),
        (4, 2, "was written by a newer Foxy (format 2)"),
        (6, 4, "uses extensions of the format (0x4)"),
    ] {
        let disk = other(place, value);
        let before = disk.peek(0, disk.len() as usize);
        let open = |force_format| {
            let options = StoreOptions {
                force_format,
                ..options()
            };
            Rig::try_open(disk.clone(), 2 << 20, 9, options)
        };
        let refused = open(false).err().unwrap().to_string();
        let looked = inspect(&disk).err().unwrap().to_string();
        for said in [refused, looked] {
            assert!(
                said.contains(text) && said.contains("--force-format"),
                "{said}"
            );
        }
        let after = disk.peek(0, before.len());
        assert!(after == before, "nothing was changed");
        let mut rig = open(true).unwrap();
        rig.settle();
        assert!(rig.get(&name(9)).is_none());
        rig.put("new", b"begins anew");
        rig.settle();
        assert_eq!(rig.kill().text("new").as_deref(), Some("begins anew"));
    }
}
