//! `bench store index`: measures the memory that the store's index needs per object, in bytes, as the system
//! counts it. Also measures the time of a lookup, and for comparison the time of plain reads of memory.

use std::hint::black_box;
use std::io;

use foxy_base::{KeyHash, Rng};
use foxy_disk::AlignedBuf;
use foxy_index::{Address, Entry, Index, SizeClass};

use super::Context;
use super::report::{Goal, Section};
use super::system;
use crate::load::cpu;

const MILLION: u64 = 1_000_000;
/// Number of lookups in one run. The report contains the best and the median run, because other processes can
/// make runs slower.
const LOOKUPS: usize = 50_000;
const RUNS: u64 = 15;

/// Measures the memory at every million objects, and the times of lookups at 1 million, at 10 million, and at
/// the end.
pub(super) fn index(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let millions = context
        .objects
        .map_or(context.quick_or(3, 50), |n| n / MILLION);
    let millions = millions.max(1);
    let mut section = Section::new(
        "index",
        format!("the index alone, from 1 to {millions} million"),
    );
    // The index uses pages of the size that the index of the engine uses.
    let index = Index::with_pages(u64::MAX, Some(foxy_store::INDEX_PAGES));
    // Measures an empty index once. So the memory that the measurement itself needs is allocated now, and
    // does not count as memory of the index later.
    let small = Index::with_pages(u64::MAX, Some(foxy_store::INDEX_PAGES));
    times(&mut Section::new("index", String::new()), &small, 1);
    drop(small);
    // Resident memory of the process without the index, which is still empty.
    let base = system::resident().saturating_sub(index.memory_bytes());
    let (mut resident, mut counted) = (Vec::new(), Vec::new());
    for million in 1..=millions {
        let cpu = cpu::of_this_thread();
        for n in (million - 1) * MILLION..million * MILLION {
            let _ = black_box(index.insert(hash(n), entry(n)));
        }
        let took = cpu::of_this_thread().saturating_sub(cpu);
        let len = index.len() as f64;
        let bytes = system::resident().saturating_sub(base) as f64 / len;
        resident.push((million as f64, bytes));
        counted.push((million as f64, index.memory_bytes() as f64 / len));
        if million == 1 || million == 10 || million == millions {
            let ns = took.as_nanos() as f64 / MILLION as f64;
            section.row(format!("insertion at {million} M"), ns, "ns");
            times(&mut section, &index, million);
        }
    }
    let most = resident.iter().map(|p| p.1).fold(0.0, f64::max);
    section
        .row(
            "resident bytes per object, the most at any million",
            most,
            "B",
        )
        .goal(Goal::Most(16.0));
    let stats = index.stats();
    let per_object = stats.dropped as f64 / index.len() as f64;
    section.row("insertions dropped, per object", per_object, "");
    false_hits(&mut section, &index);
    section.curves = vec![("resident".into(), resident), ("counted".into(), counted)];
    section.axes = ("millions of objects", "bytes per object");
    Ok(vec![section])
}

/// Measures the times of a hit and of a miss, and for comparison the memory reads that every index needs. In
/// the first series, each lookup or read waits for the previous lookup or read. In the second series, no
/// lookup waits for another lookup. The lookups of a server are like the lookups of the second series,
/// because they are for different requests. So the goal of 150 ns applies to the second series.
fn times(section: &mut Section, index: &Index, million: u64) {
    let count = million * MILLION;
    let memory = index.memory_bytes();
    let reference = ReferenceMemory::new(memory);
    let mut all = [(); 7].map(|()| Vec::new());
    for run in 0..RUNS {
        // Every run measures hits, misses and plain reads, so that the load of other processes affects all of
        // them equally.
        let mut rng = Rng::new(run << 32 | million);
        let draw = |rng: &mut Rng, bit: u64| -> Vec<KeyHash> {
            (0..LOOKUPS).map(|_| hash(rng.below(count) | bit)).collect()
        };
        let (hits, misses) = (draw(&mut rng, 0), draw(&mut rng, 1 << 40));
        all[0].push(lookups::<true>(index, &hits));
        all[1].push(lookups::<true>(index, &misses));
        all[2].push(reference.chase(&hits, 1, true));
        all[3].push(reference.chase(&hits, 2, true));
        all[4].push(lookups::<false>(index, &hits));
        all[5].push(lookups::<false>(index, &misses));
        all[6].push(reference.chase(&hits, 2, false));
    }
    for ns in &mut all {
        ns.sort_by(f64::total_cmp);
    }
    let [hits, misses, one, two, free_hits, free_misses, free_two] = all;
    let middle = |ns: &[f64]| ns[ns.len() / 2];
    let name = |what: &str| format!("{what} at {million} M");
    for (what, ns) in [("hit", &hits), ("miss", &misses)] {
        section
            .row(
                name(&format!("{what} that waits for the one before")),
                middle(ns),
                "ns",
            )
            .reference("two reads", middle(&two));
    }
    section
        .row(name("hit, best run"), hits[0], "ns")
        .reference("two reads", two[0]);
    section
        .row(
            name("one dependent read of as much memory"),
            middle(&one),
            "ns",
        )
        .reference("two reads", middle(&two));
    for (what, ns) in [("hit", &free_hits), ("miss", &free_misses)] {
        section
            .row(
                name(&format!("{what} that waits for no other")),
                middle(ns),
                "ns",
            )
            .reference("two reads that wait for no other", middle(&free_two))
            .goal(Goal::Most(150.0));
    }
}

/// Returns the nanoseconds per lookup. If `WAITS` is true, the processor cannot start a lookup before it has
/// the result of the previous lookup. Otherwise no lookup needs the result of an earlier lookup.
fn lookups<const WAITS: bool>(index: &Index, hashes: &[KeyHash]) -> f64 {
    // The mask is zero, but the compiler does not know this. So each key depends on `last` (the result of the
    // previous lookup), and the processor waits for `last`.
    let mask = if WAITS { black_box(0) } else { 0 };
    let mut last = 0;
    let cpu = cpu::of_this_thread();
    for hash in hashes {
        let after = if WAITS { last & mask } else { 0 };
        let found = index.lookup(KeyHash(hash.0 ^ u128::from(after) << 64));
        last ^= found.first().map_or(1, |e| e.address.sectors());
    }
    black_box(last);
    cpu::of_this_thread().saturating_sub(cpu).as_nanos() as f64 / hashes.len() as f64
}

/// Memory of the same size as the index, also in huge pages. All of it is returned to the system when the
/// value is dropped. If an allocator kept this memory, it would later count as memory of the index.
struct ReferenceMemory(AlignedBuf);

impl ReferenceMemory {
    fn new(bytes: u64) -> Self {
        let mut memory = AlignedBuf::huge(bytes as usize);
        for (n, byte) in memory.iter_mut().enumerate() {
            *byte = n as u8;
        }
        Self(memory)
    }

    /// Returns the nanoseconds per step. A step makes `reads` (1 or 2) random reads, which do not wait for
    /// each other. If `wait` is true, the processor cannot start a step before it has the results of the
    /// previous step.
    fn chase(&self, hashes: &[KeyHash], reads: usize, wait: bool) -> f64 {
        let nothing = if wait { black_box(0u64) } else { 0 };
        let (words, _) = self.0.as_chunks::<8>();
        // A multiplication computes the position, because a division would take longer.
        let place = |bits: u64| ((u128::from(bits) * words.len() as u128) >> 64) as usize;
        let read = |bits: u64| u64::from_le_bytes(words[place(bits)]);
        let mut last = 0u64;
        let cpu = cpu::of_this_thread();
        for hash in hashes {
            let bits = if wait {
                hash.high() ^ (last & nothing)
            } else {
                hash.high()
            };
            // The result of every read is used. Otherwise the compiler would remove the reads.
            last = last.rotate_left(1) ^ read(bits);
            if reads == 2 {
                last ^= read(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
        }
        black_box(last);
        cpu::of_this_thread().saturating_sub(cpu).as_nanos() as f64 / hashes.len() as f64
    }
}

fn false_hits(section: &mut Section, index: &Index) {
    const MISSES: u64 = 10 * MILLION;
    let found = (0..MISSES).filter(|n| !index.lookup(hash(n | 1 << 41)).is_empty());
    let share = found.count() as f64 / MISSES as f64;
    section
        .row("false hits (a wasted read each) per miss", share, "")
        .goal(Goal::Most(1e-4));
}

fn hash(n: u64) -> KeyHash {
    KeyHash(u128::from(Rng::new(n).next_u64()) << 64)
}

fn entry(n: u64) -> Entry {
    let address = Address::from_sectors(n * 13 % Address::MAX.sectors()).unwrap_or(Address::MAX);
    let class = SizeClass::for_bytes(6000).unwrap_or(SizeClass::MAX);
    Entry::new(address, class)
}
