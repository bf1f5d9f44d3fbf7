//! With another cache in place of the store, a hit is what that cache says, and once it says so.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use foxy_base::KeyHash;
use foxy_proxy::{Asked, StandIn};
use foxy_scenarios::*;
use tokio::sync::oneshot;

/// What the other cache does when it is asked next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Memory,
    Miss,
    /// A read that is done, well or not, after a while.
    Read(bool),
    /// A disk that ended.
    Gone,
}

const WHILE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Other {
    next: Mutex<Next>,
    kept: Mutex<Vec<(KeyHash, u64)>>,
}

impl StandIn for Other {
    fn ask(&self, _key: KeyHash, _group: u64, _bytes: u64) -> Asked {
        let (told, done) = oneshot::channel();
        match *self.next.lock().unwrap() {
            Next::Memory => Asked::Memory,
            Next::Miss => Asked::Miss,
            Next::Gone => Asked::Disk(done),
            Next::Read(well) => {
                thread::spawn(move || {
                    thread::sleep(WHILE);
                    told.send(well)
                });
                Asked::Disk(done)
            }
        }
    }

    fn keep(&self, key: KeyHash, _group: u64, bytes: u64) {
        self.kept.lock().unwrap().push((key, bytes));
    }
}

#[test]
fn story() {
    let other = Arc::new(Other {
        next: Mutex::new(Next::Memory),
        kept: Mutex::default(),
    });
    let scene = Scene::with().stand_in(other.clone()).begin();
    let get = |next| {
        *other.next.lock().unwrap() = next;
        scene.get("/a")
    };
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    get(Next::Memory).miss().says("hello");
    get(Next::Memory).hit().says("hello");
    let begun = Instant::now();
    get(Next::Read(true)).hit().says("hello");
    assert!(
        begun.elapsed() >= WHILE,
        "answered before the bytes were there"
    );
    scene.origin.was_asked(1);
    for next in [Next::Miss, Next::Read(false), Next::Gone] {
        get(next).miss().says("hello");
    }
    scene.origin.was_asked(4);
    let kept = other.kept.lock().unwrap();
    assert_eq!(kept.len(), 4, "each time that it was fetched");
    assert!(kept.iter().all(|k| *k == kept[0] && k.1 == 5), "{kept:?}");
}
