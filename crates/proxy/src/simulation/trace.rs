//! The trace of a history (one run of the simulation): a hash of all events, and the texts of the last
//! events.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use foxy_base::hash64;
use tokio::time::Instant;

/// Number of events that a failing history prints.
const LAST: usize = 60;

/// The events of a history.
#[derive(Debug)]
pub(super) struct Trace {
    began: Instant,
    hash: Cell<u64>,
    /// True if `FOXY_TRACE` is set. Every event is then printed.
    prints: bool,
    last: RefCell<VecDeque<String>>,
    /// The first breach of a rule that the oracle has found, if there was one.
    wrong: RefCell<Vec<String>>,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            hash: Cell::new(0),
            prints: std::env::var_os("FOXY_TRACE").is_some(),
            last: RefCell::default(),
            wrong: RefCell::default(),
        }
    }

    /// Returns the milliseconds since the history began.
    pub(super) fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub(super) fn note(&self, text: &str) {
        let line = format!("{:>7} {text}", self.now());
        self.hash.set(hash64(self.hash.get(), line.as_bytes()));
        if self.prints {
            println!("{line}");
        }
        let mut last = self.last.borrow_mut();
        if last.len() == LAST {
            last.pop_front();
        }
        last.push_back(line);
    }

    /// Notes a breach of a rule. Only the first breach of a history is reported.
    pub(super) fn wrong(&self, oracle: &str, text: &str) {
        self.note(&format!("WRONG ({oracle}) {text}"));
        if self.wrong.borrow().is_empty() {
            let last = self.last.borrow();
            let events: Vec<_> = last.iter().map(String::as_str).collect();
            let report = format!("{oracle}: {text}\n{}", events.join("\n"));
            self.wrong.borrow_mut().push(report);
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.wrong.borrow().is_empty()
    }

    pub(super) fn first_wrong(&self) -> Option<String> {
        self.wrong.borrow().first().cloned()
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.get()
    }
}
