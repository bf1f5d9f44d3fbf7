//! Every order of a few steps: operations of a user, turns of the writer, and completions of the device.
//!
//! All changes of a key happen under the lock of its shard, so other threads see an operation of a user as
//! one step. Between two steps, only writes, flushes and reads of the disk can end. In these tests the disk
//! holds them back until the test releases them, so there can be a run for each order. After each run the key
//! is looked up four times: immediately, after a kill at that moment, when the writer has come to rest, and
//! after a kill in this state.

use std::time::Duration;

use foxy_disk::MemDisk;

use super::rig::{Rig, object, options};

const MEMORY: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The next operation of the user.
    User,
    /// A turn of the writer, 60 ms later.
    Turn,
    /// The device completes the oldest requested operation.
    First,
    /// The device completes the newest requested operation.
    Last,
}

/// An action of the user, and the content of `k` that a lookup may return from then on.
type Operation = (fn(&Rig), Option<&'static str>);

fn put_two(rig: &Rig) {
    rig.put("k", b"two");
}
fn put_three(rig: &Rig) {
    rig.put("k", b"three");
}
fn supersede(rig: &Rig) {
    rig.supersede("k");
}
fn purge(rig: &Rig) {
    drop(rig.engine.purge(super::rig::hash("k"), b"k"));
}
fn forget(rig: &Rig) {
    rig.engine.context().memory.clear();
}
/// Stores other objects, so that the next segment is needed.
fn others(rig: &Rig) {
    for n in 0..8 {
        rig.engine.put(object(&format!("more {n}"), &[b'm'; 7000]));
    }
}

struct Scene<'a> {
    /// The disk before each run.
    image: &'a MemDisk,
    /// True if each run begins after the contents of the disk were loaded completely.
    loaded: bool,
    operations: &'a [Operation],
    runs: u64,
    hits: u64,
}

impl Scene<'_> {
    /// Tries all orders of the user's operations, `turns` turns of the writer and `completions` completions.
    fn explore(&mut self, turns: usize, completions: usize) {
        let left = [self.operations.len(), turns, completions];
        self.next(&mut Vec::new(), left);
    }

    fn next(&mut self, steps: &mut Vec<Step>, left: [usize; 3]) {
        if left == [0; 3] {
            self.run(steps);
            return;
        }
        let choices = [
            (Step::User, 0),
            (Step::Turn, 1),
            (Step::First, 2),
            (Step::Last, 2),
        ];
        for (step, kind) in choices {
            if left[kind] > 0 {
                let mut left = left;
                left[kind] -= 1;
                steps.push(step);
                self.next(steps, left);
                steps.pop();
            }
        }
    }

    fn run(&mut self, steps: &[Step]) {
        let mut rig = Rig::open(self.image.kill(), MEMORY, 5, options());
        if self.loaded {
            rig.settle();
        }
        rig.engine.context().memory.clear();
        rig.disk.set_step(true);
        let mut operations = self.operations.iter();
        let mut expected = Some("one");
        for step in steps {
            let held = rig.disk.held();
            match step {
                Step::User => {
                    let (operation, gives) = operations.next().unwrap();
                    operation(&rig);
                    expected = *gives;
                }
                Step::Turn => {
                    rig.clock.advance(Duration::from_millis(60));
                    rig.turns(1);
                }
                Step::First => {
                    held.first().map(|op| rig.disk.release(op.id));
                }
                Step::Last => {
                    held.last().map(|op| rig.disk.release(op.id));
                }
            }
        }
        self.check(&rig, expected, steps, "now");
        self.check(&rig.kill(), expected, steps, "after a kill");
        rig.disk.set_step(false);
        rig.settle();
        rig.engine.context().memory.clear();
        self.check(&rig, expected, steps, "at rest");
        self.check(&rig.kill(), expected, steps, "after a kill at rest");
        self.runs += 1;
    }

    /// Checks that a lookup returns the latest version or nothing.
    fn check(&mut self, rig: &Rig, expected: Option<&str>, steps: &[Step], when: &str) {
        let found = rig.text("k");
        self.hits += u64::from(found.is_some());
        assert!(
            found.is_none() || found.as_deref() == expected,
            "{when}: {found:?} in place of {expected:?} after {steps:?}"
        );
    }
}

/// Makes a store with `k` in a sealed segment.
fn sealed() -> Rig {
    let mut rig = Rig::new(8, MEMORY, 3);
    rig.put("k", b"one");
    rig.fill("filler", 30);
    rig
}

fn explore(image: &MemDisk, loaded: bool, all: &[&[Operation]], counts: (usize, usize)) {
    let mut hits = 0;
    for operations in all {
        let mut scene = Scene {
            image,
            loaded,
            operations,
            runs: 0,
            hits: 0,
        };
        scene.explore(counts.0, counts.1);
        println!("{} orders, {} hits", scene.runs, scene.hits);
        assert!(scene.runs > 50, "{}", scene.runs);
        hits += scene.hits;
    }
    assert!(hits > 1000, "{hits}");
}

/// Returns the number of turns and of completions of each run.
fn counts() -> (usize, usize) {
    if super::is_long() { (5, 3) } else { (3, 2) }
}

const WRITTEN: [&[Operation]; 4] = [
    &[(put_two, Some("two")), (supersede, None)],
    &[(put_two, Some("two")), (put_three, Some("three"))],
    &[(put_two, Some("two")), (purge, None)],
    &[(supersede, None), (put_two, Some("two"))],
];

#[test]
fn no_order_of_commits_and_removals_gives_an_old_version() {
    explore(&sealed().disk.kill(), true, &WRITTEN, counts());
}

#[test]
fn no_order_of_loading_and_removals_gives_an_old_version() {
    explore(&sealed().disk.kill(), false, &WRITTEN, counts());
}

/// The segment with `k` is the next one to be reused.
#[test]
fn no_order_of_reuse_and_removals_gives_an_old_version() {
    let mut rig = sealed();
    let mut before = rig.disk.kill();
    for n in 0..2000 {
        if rig.plan("k").is_none() {
            break;
        }
        before = rig.disk.kill();
        rig.put(&format!("next {n}"), &[b'n'; 1500]);
        rig.engine.context().memory.clear();
        rig.settle();
        rig.engine.context().memory.clear();
    }
    assert!(rig.plan("k").is_none(), "it was reused");
    let all: [&[Operation]; 3] = [
        &[(others, Some("one")), (supersede, None)],
        &[(others, Some("one")), (forget, Some("one")), (purge, None)],
        &[(others, Some("one")), (put_two, Some("two"))],
    ];
    explore(&before, true, &all, counts());
}
