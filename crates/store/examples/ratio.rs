//! Measures the hit ratio at several write amplifications, and compares it with an exact LRU of the same
//! number of bytes. It also measures the bytes that packing loses. Traces and generated streams are replayed
//! on a store in memory.
//!
//! `cargo run --release -p foxy-store --example ratio [-- STREAM [REQUESTS [DISK-PERCENT]]]`, where
//! STREAM is one of `bu98` (if its file is there), `dec`, `isp`, `all`. With `admission` as a fourth
//! argument, it runs each stream with and without a write budget, and compares the numbers of hits and of
//! written bytes. It fails if the share of the hits that an admission rule loses is greater than the share of
//! the written bytes that it saves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{FieldBlock, FieldBlockBuilder, KeyHash, ManualClock, WallTime, key_hash};
use foxy_disk::{AlignedBuf, Disk, MemDisk};
use foxy_store::{
    AdmissionConfig, AdmissionRule, Engine, EngineConfig, Lookup, NewObject, Object, ObjectMeta,
    OneStoreStats, ReadMiss, ReadPlan, StoreOptions, StoreStats, Writer,
};
use foxy_trace::generate::{SessionConfig, Sessions};
use foxy_trace::{Access, ByteLru, Options, files::Known, open};

#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

/// The number of segments of every store here.
const SEGMENTS: u64 = 128;
/// Bytes per second that clients request.
const RATE: u64 = 20_000_000;
const MEMORY: u64 = 12 << 20;
/// Number of bytes of `MEMORY` for objects that wait to be written. It is so large that no object is dropped.
const PENDING: u64 = 8 << 20;

/// A request: the object, its version and its size in bytes.
#[derive(Clone, Copy)]
struct Asked {
    object: u64,
    version: u32,
    size: u64,
}

fn stream(name: &str, requests: u64) -> Option<Vec<Asked>> {
    let asked = |r: foxy_trace::Request| Asked {
        object: r.object,
        version: r.version,
        size: r.size,
    };
    let sessions = |config: SessionConfig| {
        let config = SessionConfig { requests, ..config };
        Sessions::new(config, 1).take(requests as usize).map(asked)
    };
    Some(match name {
        "dec" => sessions(SessionConfig::dec()).collect(),
        "isp" => sessions(SessionConfig::isp()).collect(),
        "bu98" => {
            let path = Known::Bu98.path().map_err(|e| println!("{e}")).ok()?;
            let reader = open(&path, Options::default()).ok()?;
            reader
                .filter_map(Result::ok)
                .take(requests as usize)
                .map(asked)
                .collect()
        }
        _ => return None,
    })
}

/// Makes header fields as origins send them.
fn head(size: u64) -> FieldBlock {
    let mut fields = FieldBlockBuilder::default();
    let length = size.to_string();
    for (name, value) in [
        ("Date", "Mon, 01 Jan 2024 00:00:00 GMT"),
        ("Server", "Apache"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", length.as_str()),
        ("Last-Modified", "Mon, 01 Jan 2023 00:00:00 GMT"),
        ("ETag", "\"5f3a-5b1e2c3d4e5f6\""),
        ("Cache-Control", "max-age=3600"),
    ] {
        if let Err(error) = fields.push(name.as_bytes(), value.as_bytes()) {
            println!("{error}");
        }
    }
    fields.finish()
}

fn facts(now: WallTime) -> ObjectMeta {
    let mut rules = [0; 64];
    rules[0..6].copy_from_slice(&[1, 2, 0x60, 2, 200, 0]);
    let times = [
        now.0 - 120,
        now.0,
        0,
        now.0 / 1000 * 1000,
        now.0 - 30_000_000_000,
    ];
    for (place, time) in rules[8..48].chunks_exact_mut(8).zip(times) {
        place.copy_from_slice(&time.to_le_bytes());
    }
    rules[48..52].copy_from_slice(&3600u32.to_le_bytes());
    rules[52..60].fill(0xff);
    ObjectMeta {
        request_time: WallTime(now.0 - 120),
        response_time: now,
        expires: WallTime(now.0 + 30 * 86_400_000),
        rules,
        ..ObjectMeta::default()
    }
}

fn key(object: u64) -> Bytes {
    Bytes::from(format!(
        "f G http://www{}.example.com/{object:016x}.html",
        object % 997
    ))
}

struct Replay {
    engine: Arc<Engine>,
    writer: Writer,
    disk: MemDisk,
    clock: Arc<ManualClock>,
    body: Bytes,
    reads: u64,
    read_bytes: u64,
    disk_hits: u64,
}

impl Replay {
    fn new(disk_bytes: u64, options: &StoreOptions, admission: AdmissionConfig) -> Option<Self> {
        let segment = (disk_bytes / SEGMENTS / 4096 * 4096).clamp(64 << 10, 32 << 20);
        let options = StoreOptions {
            segment_bytes: Some(segment as u32),
            cluster_bytes: (segment / 8).clamp(32 << 10, 512 << 10) as u32,
            ..options.clone()
        };
        let slots = segment / 2048 * 24 + 8192;
        let disk = MemDisk::new((segment + slots) * SEGMENTS + (8 << 20), 512, 1);
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_700_000_000)));
        let config = EngineConfig {
            pending_bytes_max: PENDING,
            admission,
            ..EngineConfig::new(MEMORY, 1)
        };
        let engine = Engine::new(config, clock.clone());
        let writer = engine.open_store(Arc::new(disk.clone()), options);
        let writer = writer.map_err(|e| println!("{e}")).ok()?;
        Some(Self {
            engine,
            writer,
            disk,
            clock,
            body: Bytes::from(vec![0x5a; 17 << 20]),
            reads: 0,
            read_bytes: 0,
            disk_hits: 0,
        })
    }

    fn read(
        &mut self,
        lookup: Lookup,
        finish: impl FnOnce(&ReadPlan, AlignedBuf) -> Result<Arc<Object>, ReadMiss>,
    ) -> Option<Arc<Object>> {
        match lookup {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                self.reads += 1;
                self.read_bytes += u64::from(plan.len);
                let mut buf = AlignedBuf::new(plan.len as usize);
                self.disk.read_at(plan.at, &mut buf).ok()?;
                let object = finish(&plan, buf).ok()?;
                self.disk_hits += 1;
                Some(object)
            }
        }
    }

    fn get(&mut self, hash: KeyHash, key: &Bytes) -> Option<Arc<Object>> {
        let engine = self.engine.clone();
        let object = self.read(engine.reads().lookup(hash, key), |plan, buf| {
            engine.reads().finish_read(plan, key, buf)
        })?;
        for n in 0..object.fragment_count() {
            self.read(engine.reads().fragment_lookup(&object, n), |plan, buf| {
                engine.reads().finish_fragment(plan, &object, n, buf)
            })?;
        }
        Some(object)
    }

    /// Requests an object. Returns true for a hit of the requested version.
    fn ask(&mut self, asked: &Asked) -> bool {
        let key = key(asked.object);
        let hash = key_hash(&key);
        let found = self.get(hash, &key);
        let hit = found.is_some_and(|o| {
            o.total_length() == asked.size && u32::from(o.meta().flags) == asked.version & 0xffff
        });
        if !hit {
            let meta = ObjectMeta {
                flags: asked.version as u16,
                ..facts(foxy_base::Clock::wall(&*self.clock))
            };
            let size = (asked.size as usize).min(self.body.len());
            let _ = self.engine.put(NewObject {
                hash,
                key,
                group: asked.object % 997,
                meta,
                vary: Bytes::new(),
                tags: Bytes::new(),
                fields: head(asked.size),
                body: self.body.slice(..size),
            });
        }
        let nanos = asked.size * 1_000_000_000 / RATE + 1000;
        self.clock.advance(Duration::from_nanos(nanos));
        self.writer.turn();
        hit
    }
}

/// Simulates an exact LRU of `bytes` bytes. Returns the hits and hit bytes after the first `warm`
/// requests.
fn lru(stream: &[Asked], bytes: u64, warm: usize) -> (u64, u64) {
    let mut lru = ByteLru::new(bytes);
    let mut versions = std::collections::HashMap::new();
    let (mut hits, mut hit_bytes) = (0, 0);
    for (n, asked) in stream.iter().enumerate() {
        let size = asked.size + 60 + head(asked.size).as_bytes().len() as u64;
        let same = versions.insert(asked.object, asked.version) == Some(asked.version);
        if !same {
            lru.remove(asked.object);
        }
        if lru.access(asked.object, size) == Access::Hit && n >= warm {
            hits += 1;
            hit_bytes += asked.size;
        }
    }
    (hits, hit_bytes)
}

fn line(
    name: &str,
    hits: u64,
    warm: u64,
    replay: &Replay,
    store: &OneStoreStats,
    all: &StoreStats,
) {
    let c = &store.counts;
    let admitted = all.counts.put_bytes.max(1) as f64;
    let device = (c.cluster_bytes + c.meta_bytes) as f64;
    println!(
        "{name:>22}  hits {:6.2} %  WA {:.3}  device/admitted {:.3}  reinserted {:.3}  reads/hit {:.4}  {:5.0} B/read  cluster {} KiB  residency {:?}",
        100.0 * hits as f64 / warm.max(1) as f64,
        device / (device - c.reinserted_bytes as f64),
        device / admitted,
        c.reinserted_bytes as f64 / device,
        replay.reads as f64 / replay.disk_hits.max(1) as f64,
        replay.read_bytes as f64 / replay.reads.max(1) as f64,
        c.cluster_bytes / c.clusters.max(1) / 1024,
        store.residency.map(|r| r.as_secs()),
    );
}

fn shares(all: &StoreStats) {
    let c = &all.stores[0].counts;
    let share = |bytes: u64| bytes as f64 / c.payload_bytes.max(1) as f64;
    println!(
        "{:>22}  record headers {:.4}, padding and cluster ends {:.4}, tables {:.4}, slots {:.4}; mean record {} B",
        "per byte of payload",
        share(c.record_bytes - c.payload_bytes),
        share(c.cluster_bytes - c.record_bytes - c.table_bytes),
        share(c.table_bytes),
        share(c.meta_bytes),
        c.record_bytes / c.records.max(1),
    );
}

/// Prints the cost of packing records in units of several sizes: the bytes that padding loses, as a part of
/// the admitted bytes. Both numbers of bytes are computed from the stream.
fn units(stream: &[Asked]) {
    for unit in [1u64, 8, 16, 64, 512, 4096] {
        let lost: u64 = stream
            .iter()
            .map(|a| a.size + 370)
            .map(|record| record.next_multiple_of(unit) - record)
            .sum();
        let bytes: u64 = stream.iter().map(|a| a.size + 290).sum();
        println!(
            "{:>22}  {:.4} of what is admitted",
            format!("unit {unit}"),
            lost as f64 / bytes as f64
        );
    }
}

fn run(name: &str, requests: u64, percent: u64) {
    let Some(stream) = stream(name, requests) else {
        return;
    };
    let mut distinct = std::collections::HashMap::new();
    for asked in &stream {
        distinct.insert(asked.object, asked.size + 350);
    }
    let disk_bytes = distinct.values().sum::<u64>() * percent / 100;
    let warm = stream.len() / 3;
    println!(
        "{name}: {} requests, {} objects; disk {:.1} MB in {SEGMENTS} segments",
        stream.len(),
        distinct.len(),
        disk_bytes as f64 / 1e6
    );
    units(&stream);
    let (mut yardstick, mut curve) = (0.0, Vec::new());
    for reinsert in [0, 5, 10, 15, 20, 30, 40, 60] {
        let options = StoreOptions {
            reinsert_percent: reinsert,
            ..StoreOptions::default()
        };
        let Some(mut replay) = Replay::new(disk_bytes, &options, AdmissionConfig::default()) else {
            return;
        };
        let mut hits = 0;
        for (n, asked) in stream.iter().enumerate() {
            hits += u64::from(replay.ask(asked) && n >= warm);
        }
        let all = replay.engine.stats();
        let store = &all.stores[0];
        if reinsert == 0 {
            let bytes = u64::from(store.segments) * u64::from(store.segment_bytes);
            let measured = (stream.len() - warm) as u64;
            let (hits, _) = lru(&stream, bytes + all.ram_capacity, warm);
            yardstick = 100.0 * hits as f64 / measured.max(1) as f64;
            println!(
                "{:>22}  hits {:6.2} %  ({} KB of RAM beside the disk)",
                "exact LRU",
                100.0 * hits as f64 / measured as f64,
                all.ram_capacity >> 10
            );
            shares(&all);
        }
        let measured = (stream.len() - warm) as u64;
        line(
            &format!("reinsert {reinsert} %"),
            hits,
            measured,
            &replay,
            store,
            &all,
        );
        let device = (store.counts.cluster_bytes + store.counts.meta_bytes) as f64;
        let amplification = device / (device - store.counts.reinserted_bytes as f64);
        curve.push((amplification, 100.0 * hits as f64 / measured.max(1) as f64));
    }
    for most in [1.15, 1.35] {
        verdict(&curve, yardstick, most);
    }
}

/// Prints the best point of the curve up to a write amplification of `most`, compared with the exact
/// LRU.
fn verdict(curve: &[(f64, f64)], lru: f64, most: f64) {
    let within = curve
        .iter()
        .filter(|(amplification, _)| *amplification <= most);
    let Some((amplification, hits)) = within.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return println!("{:>22}  no point up to WA {most}", "best");
    };
    println!(
        "{:>22}  up to WA {most}: hits {hits:.2} % at WA {amplification:.3}, {:+.2} points beside the exact LRU",
        "best",
        hits - lru
    );
}

/// Returns three numbers: the hits after the first third of the stream, the bytes of written clusters, and
/// the seconds that passed on the clock of the replay.
fn admitted(stream: &[Asked], disk: u64, rule: AdmissionConfig) -> Option<(u64, u64, f64)> {
    let mut replay = Replay::new(disk, &StoreOptions::default(), rule)?;
    let warm = stream.len() / 3;
    let mut hits = 0;
    for (n, asked) in stream.iter().enumerate() {
        hits += u64::from(replay.ask(asked) && n >= warm);
    }
    let seconds = foxy_base::Clock::mono(&*replay.clock).nanos() as f64 / 1e9;
    let bytes = replay.engine.stats().stores[0].counts.cluster_bytes;
    Some((hits, bytes, seconds))
}

/// Tests every admission rule at several write budgets. Returns false if the share of the hits that a rule loses is greater
/// than the share of the written bytes that it saves.
fn admission(name: &str, requests: u64, percent: u64) -> Option<bool> {
    let stream = stream(name, requests)?;
    let mut distinct = std::collections::HashMap::new();
    for asked in &stream {
        distinct.insert(asked.object, asked.size + 350);
    }
    let disk = distinct.values().sum::<u64>() * percent / 100;
    let (all_hits, all_bytes, seconds) = admitted(&stream, disk, AdmissionConfig::default())?;
    let measured = (stream.len() - stream.len() / 3) as f64;
    println!(
        "{name}: all admitted: hits {:.2} %, {:.1} MB written",
        100.0 * all_hits as f64 / measured,
        all_bytes as f64 / 1e6
    );
    let mut sound = true;
    let rules = AdmissionRule::ALL.map(|rule| (rule.name(), rule, u64::MAX));
    let sized = ("size to 64 KiB", AdmissionRule::Anything, 64 << 10);
    for (rule, when_spent, size_max) in rules.into_iter().chain([sized]) {
        for share in [75, 50, 25] {
            let config = AdmissionConfig {
                write_budget: (all_bytes as f64 / seconds) as u64 * share / 100,
                when_spent,
                size_max,
            };
            let (hits, bytes, _) = admitted(&stream, disk, config)?;
            let part = |new: u64, old: u64| 100.0 * (1.0 - new as f64 / old.max(1) as f64);
            let (lost, saved) = (part(hits, all_hits), part(bytes, all_bytes));
            sound &= lost <= saved;
            println!(
                "{rule:>16}, budget {share} %: hits {:6.2} %, lost {lost:5.1} % of them, saved {saved:5.1} % of the bytes{}",
                100.0 * hits as f64 / measured,
                if lost <= saved {
                    ""
                } else {
                    ": LOSES MORE THAN IT SAVES"
                },
            );
        }
    }
    Some(sound)
}

fn main() -> std::process::ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "all".into());
    let requests = args.next().and_then(|n| n.parse().ok()).unwrap_or(400_000);
    let percent = args.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let names = ["bu98", "dec", "isp"];
    let of_admission = args.next().is_some_and(|word| word == "admission");
    let mut sound = true;
    for each in names.iter().filter(|n| name == **n || name == "all") {
        if of_admission {
            sound &= admission(each, requests, percent).unwrap_or(true);
        } else {
            run(each, requests, percent);
        }
    }
    if sound {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}
