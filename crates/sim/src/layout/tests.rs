//! One test suite for every layout. No two live objects overlap; a read finds the written data; space
//! accounting is exact; and a run gives the same result every time.

use std::collections::HashMap;

use foxy_base::Rng;
use proptest::prelude::*;

use super::{
    fake::{FakeFiles, Seen},
    spec::LayoutSizes,
    *,
};

const SPECS: [LayoutSpec; 13] = [
    LayoutSpec::Simple,
    LayoutSpec::Squid,
    LayoutSpec::MultipleDirs,
    LayoutSpec::Buddy(256),
    LayoutSpec::Buddy(4),
    LayoutSpec::Stream,
    LayoutSpec::Packetizer,
    LayoutSpec::Lazy(10),
    LayoutSpec::Lazy(1),
    LayoutSpec::Loc(1),
    LayoutSpec::Loc(4),
    LayoutSpec::LazyLoc(4),
    LayoutSpec::LazyLoc(32),
];

struct Live {
    size: u64,
    /// Expected write counts of the object's blocks, in order: a block contains the object when it has been
    /// written this number of times. `None` until the object is placed.
    targets: Option<Vec<u32>>,
}

struct Harness {
    layout: Box<dyn Layout>,
    files: FakeFiles,
    live: HashMap<u64, Live>,
    /// For each block, the write count that was last expected for it. An entry stays when its object is
    /// deleted.
    targets: HashMap<(u32, u64), u32>,
    spec: LayoutSpec,
}

fn sizes(bytes: u64) -> LayoutSizes {
    LayoutSizes {
        page: 4096,
        buffer: 16 << 10,
        ..LayoutSizes::of(bytes)
    }
}

impl Harness {
    fn new(spec: LayoutSpec, bytes: u64) -> Self {
        let files = FakeFiles::new();
        let layout = spec.build(files.clone(), sizes(bytes), &[]).unwrap();
        Self {
            layout,
            files,
            live: HashMap::new(),
            targets: HashMap::new(),
            spec,
        }
    }

    /// The blocks that an object occupies: (file, block).
    fn blocks(&self, object: u64) -> Option<Vec<(u32, u64)>> {
        Self::blocks_of(&*self.layout, &self.files, &self.live, object)
    }

    fn blocks_of(
        layout: &dyn Layout,
        files: &FakeFiles,
        live: &HashMap<u64, Live>,
        object: u64,
    ) -> Option<Vec<(u32, u64)>> {
        let seen = files.seen.borrow();
        match layout.place(object)? {
            Place::Buffer => None,
            Place::Own { dir, name } => {
                let (file, size) = seen.file(dir, name).unwrap();
                assert_eq!(size, live[&object].size);
                Some(Seen::blocks(0, size).map(|b| (file, b)).collect())
            }
            Place::Shared { file, ranges } => Some(
                ranges
                    .iter()
                    .flat_map(|(at, len)| Seen::blocks(*at, *len))
                    .map(|b| (file.0, b))
                    .collect(),
            ),
        }
    }

    fn write(&mut self, object: u64, size: u64, server: u32) {
        let counts = self.files.seen.borrow().written.clone();
        match self.layout.write(object, size, server) {
            Ok(()) => {
                self.live.insert(
                    object,
                    Live {
                        size: size.max(1),
                        targets: None,
                    },
                );
            }
            Err(error) => assert_eq!(error, LayoutError::Full, "{}", self.spec),
        }
        self.settle(&counts);
    }

    /// Sets the `targets` of each newly placed object. `counts` are the numbers of writes before the call
    /// that placed the objects. Removes objects that the layout had to drop.
    fn settle(&mut self, counts: &HashMap<(u32, u64), u32>) {
        let layout = &self.layout;
        self.live
            .retain(|object, _| layout.place(*object).is_some());
        let placed: Vec<_> = self
            .live
            .iter()
            .filter(|(_, l)| l.targets.is_none())
            .map(|(o, _)| *o)
            .collect();
        for object in placed {
            let targets = &mut self.targets;
            // If a block of a deleted object is allocated again, the old write of the block may still wait in
            // a buffer. The last target includes this write.
            let mut target = |at: (u32, u64)| {
                let before = counts.get(&at).copied().unwrap_or(0);
                let last = targets.entry(at).or_insert(0);
                *last = before.max(*last) + 1;
                *last
            };
            let blocks = Self::blocks_of(&*self.layout, &self.files, &self.live, object);
            let all = blocks.map(|blocks| blocks.into_iter().map(&mut target).collect());
            self.live.get_mut(&object).unwrap().targets = all;
        }
    }

    fn delete(&mut self, object: u64) {
        assert_eq!(self.layout.delete(object), Ok(()), "{}", self.spec);
        self.live.remove(&object);
    }

    /// Checks that a read covers exactly the object's blocks that have left the buffers. Lazy reads
    /// with N > 1 are not checked here, because they can be issued later.
    fn read(&mut self, object: u64) {
        let want = self.blocks(object);
        let written = self.files.seen.borrow().written.clone();
        let targets = self.live[&object].targets.clone();
        self.files.seen.borrow_mut().reads.clear();
        assert_eq!(self.layout.read(object), Ok(()));
        if matches!(self.spec, LayoutSpec::Lazy(n) if n > 1)
            || matches!(self.spec, LayoutSpec::LazyLoc(_))
        {
            return;
        }
        let mut got = self.reads();
        let mut on_disk: Vec<_> = want
            .iter()
            .flatten()
            .zip(targets.iter().flatten())
            .filter(|(at, target)| written.get(*at).copied().unwrap_or(0) >= **target)
            .map(|(at, _)| *at)
            .collect();
        if self.spec == LayoutSpec::Lazy(1) {
            // The pieces of one object are also issued in sorted order.
            got.sort_unstable();
            on_disk.sort_unstable();
        }
        assert_eq!(got, on_disk, "{}", self.spec);
    }

    fn reads(&self) -> Vec<(u32, u64)> {
        let seen = self.files.seen.borrow();
        seen.reads
            .iter()
            .flat_map(|(f, at, len)| Seen::blocks(*at, *len).map(|b| (*f, b)))
            .collect()
    }

    /// Checks space accounting and overlaps.
    fn check(&self, bytes: u64) {
        let stats = self.layout.stats();
        assert_eq!(stats.objects, self.live.len() as u64, "{}", self.spec);
        assert_eq!(
            stats.object_bytes,
            self.live.values().map(|l| l.size).sum::<u64>()
        );
        let mut all: Vec<_> = self
            .live
            .keys()
            .filter_map(|o| self.blocks(*o))
            .flatten()
            .collect();
        let blocks = all.len() as u64;
        all.sort_unstable();
        all.dedup();
        assert_eq!(
            all.len() as u64,
            blocks,
            "two objects in one block: {}",
            self.spec
        );
        if self.spec.is_stream() {
            assert_eq!(stats.allocated_bytes, blocks * BLOCK);
            assert_eq!(stats.capacity, bytes);
            assert_eq!(stats.free_bytes, bytes - blocks * BLOCK);
            assert!(all.iter().all(|(_, b)| *b < bytes / BLOCK));
        }
    }

    /// Checks that every block of every live object was written exactly once since the object was placed.
    fn check_written(&mut self) {
        let counts = self.files.seen.borrow().written.clone();
        self.layout.finish().unwrap();
        self.settle(&counts);
        let seen = self.files.seen.borrow();
        for (object, live) in &self.live {
            let targets = live.targets.as_ref().expect("all is placed");
            for (at, target) in self.blocks(*object).unwrap().iter().zip(targets) {
                assert_eq!(seen.written.get(at), Some(target), "{} {object}", self.spec);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u32),
    Read(usize),
    Delete(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (prop_oneof![6 => 0u64..6_000, 1 => 0u64..60_000], 1u32..9).prop_map(|(s, v)| Step::Write(s, v)),
        3 => any::<usize>().prop_map(Step::Read),
        4 => any::<usize>().prop_map(Step::Delete),
    ]
}

fn pick(live: &HashMap<u64, Live>, n: usize) -> Option<u64> {
    let mut objects: Vec<_> = live.keys().copied().collect();
    objects.sort_unstable();
    (!objects.is_empty()).then(|| objects[n % objects.len()])
}

fn play(spec: LayoutSpec, bytes: u64, steps: &[Step]) -> (LayoutStats, SimTime) {
    let mut harness = Harness::new(spec, bytes);
    for (object, step) in steps.iter().enumerate() {
        match *step {
            Step::Write(size, server) => harness.write(object as u64, size, server),
            Step::Read(n) => {
                if let Some(object) = pick(&harness.live, n) {
                    harness.read(object);
                }
            }
            Step::Delete(n) => {
                if let Some(object) = pick(&harness.live, n) {
                    harness.delete(object);
                }
            }
        }
        harness.check(bytes);
    }
    harness.check_written();
    harness.check(bytes);
    (harness.layout.stats(), harness.layout.now())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn every_layout_keeps_the_promises(blocks in 60u64..500, steps in prop::collection::vec(step(), 1..160)) {
        for spec in SPECS {
            play(spec, blocks * BLOCK, &steps);
        }
    }
}

#[test]
fn a_run_is_the_same_every_time() {
    let mut rng = Rng::new(3);
    let steps: Vec<_> = (0..400)
        .map(|_| match rng.below(3) {
            0 => Step::Read(rng.next_u64() as usize),
            1 => Step::Delete(rng.next_u64() as usize),
            _ => Step::Write(rng.below(9_000), rng.below(9) as u32),
        })
        .collect();
    for spec in SPECS {
        assert_eq!(
            play(spec, 400 * BLOCK, &steps),
            play(spec, 400 * BLOCK, &steps),
            "{spec}"
        );
    }
}

#[test]
fn lazy_reads_cover_all_objects_sorted_and_before_their_deletion() {
    let mut harness = Harness::new(LayoutSpec::Lazy(4), 1 << 20);
    for object in 0..8 {
        harness.write(object, 4096, 1);
    }
    for object in [5, 1, 3] {
        harness.read(object);
    }
    assert!(harness.reads().is_empty());
    harness.read(0);
    let starts: Vec<_> = harness
        .files
        .seen
        .borrow()
        .reads
        .iter()
        .map(|r| r.1 / 4096)
        .collect();
    assert_eq!(starts, [0, 1, 3, 5]);
    harness.read(2);
    harness.delete(2);
    assert_eq!(harness.files.seen.borrow().reads, [(1, 8192, 4096)]);
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    for spec in SPECS {
        let mut layout = spec.build(FakeFiles::new(), sizes(64 << 10), &[]).unwrap();
        assert_eq!(layout.read(1), Err(LayoutError::Missing), "{spec}");
        assert_eq!(layout.delete(1), Err(LayoutError::Missing), "{spec}");
        layout.write(1, 700, 3).unwrap();
        assert_eq!(layout.write(1, 9, 3), Err(LayoutError::Exists), "{spec}");
        assert_eq!(layout.stats().object_bytes, 700, "{spec}");
        layout.delete(1).unwrap();
        assert_eq!(layout.place(1), None);
    }
}

#[test]
fn a_full_file_system_refuses_and_recovers() {
    for spec in [
        LayoutSpec::Simple,
        LayoutSpec::Squid,
        LayoutSpec::MultipleDirs,
        LayoutSpec::Buddy(8),
        LayoutSpec::Buddy(256),
    ] {
        let mut layout = spec.build(FakeFiles::limited(20), sizes(0), &[]).unwrap();
        layout.write(1, 9_000, 1).unwrap();
        assert_eq!(layout.write(2, 9_000, 1), Err(LayoutError::Full), "{spec}");
        layout.delete(1).unwrap();
        assert_eq!(layout.write(2, 9_000, 1), Ok(()), "{spec}");
        assert_eq!(
            (layout.stats().objects, layout.stats().object_bytes),
            (1, 9_000)
        );
    }
}
