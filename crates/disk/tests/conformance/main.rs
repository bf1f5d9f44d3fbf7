//! One set of tests for every kind of disk: ring and pool, direct and buffered, memory with small
//! and large blocks.
//!
//! The folder for files is `FOXY_TEST_DIR`, or the system's folder for temporary files. If a file
//! system refuses direct transfers, the direct variants run buffered (as in production).

#![expect(clippy::unwrap_used, reason = "tests may")]

mod body;
mod opening;
mod waking;

use foxy_disk::{Backend, Completion, Direct, Disk, FileDisk, MemDisk, OpenOptions, Queue};
use std::sync::Arc;
use std::time::Duration;

/// Length of the test disks in bytes.
const LEN: u64 = 4 << 20;
/// Timeout that is long enough for a loaded machine. Tests that pass do not wait so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk, and the values that must outlive it.
struct Setup {
    disk: Arc<dyn Disk>,
    _folder: Option<tempfile::TempDir>,
}

fn folder() -> tempfile::TempDir {
    match std::env::var_os("FOXY_TEST_DIR") {
        Some(place) => tempfile::tempdir_in(place).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

fn file(backend: Backend, direct: Direct) -> Setup {
    let folder = folder();
    let options = OpenOptions {
        create_len: Some(LEN),
        backend,
        direct,
        ..OpenOptions::default()
    };
    let disk = FileDisk::open(folder.path().join("store"), &options).unwrap();
    Setup {
        disk: Arc::new(disk),
        _folder: Some(folder),
    }
}

fn memory(block: u32) -> Setup {
    Setup {
        disk: Arc::new(MemDisk::new(LEN, block, 1)),
        _folder: None,
    }
}

/// A disk with a ring. If the machine forbids rings, this function prints a message, and the disk chooses its
/// queues itself (`Backend::Auto`).
fn ring(direct: Direct) -> Setup {
    let probe = folder();
    let options = OpenOptions {
        create_len: Some(8192),
        backend: Backend::Ring,
        ..OpenOptions::default()
    };
    match FileDisk::open(probe.path().join("probe"), &options) {
        Ok(_) => file(Backend::Ring, direct),
        Err(why) => {
            eprintln!("no ring here, testing the automatic choice: {why}");
            file(Backend::Auto, direct)
        }
    }
}

/// Waits until `count` completions have arrived; returns them sorted by token.
fn finish(queue: &mut dyn Queue, count: usize) -> Vec<Completion> {
    let mut out = Vec::new();
    queue.flush_submissions().unwrap();
    while out.len() < count {
        if queue.reap(&mut out) == 0 {
            assert!(
                queue.wait(PATIENCE).unwrap(),
                "{} of {count} after {PATIENCE:?}",
                out.len()
            );
        }
    }
    assert_eq!(out.len(), count);
    out.sort_by_key(|c| c.token);
    out
}

macro_rules! on_all {
    ($($test:ident),* $(,)?) => {
        on_all!(@ ring_direct, super::ring(super::Direct::Auto), [$($test),*]);
        on_all!(@ ring_buffered, super::ring(super::Direct::No), [$($test),*]);
        on_all!(@ pool_direct, super::file(super::Backend::Pool, super::Direct::Auto), [$($test),*]);
        on_all!(@ pool_buffered, super::file(super::Backend::Pool, super::Direct::No), [$($test),*]);
        on_all!(@ memory_512, super::memory(512), [$($test),*]);
        on_all!(@ memory_4096, super::memory(4096), [$($test),*]);
    };
    (@ $name:ident, $setup:expr, [$($test:ident),*]) => {
        mod $name {
            $(#[test] fn $test() { let setup = $setup; crate::body::$test(&setup.disk); })*
            #[test] fn epoll_wakes() { let setup = $setup; crate::waking::epoll_wakes(&setup.disk); }
            #[cfg(feature = "tokio")]
            #[test] fn tokio_wakes() { let setup = $setup; crate::waking::tokio_wakes(&setup.disk); }
        }
    };
}

on_all!(
    what_is_written_is_read,
    blocking_calls_take_any_range,
    blocking_and_queued_agree,
    many_tokens_come_back_once_each,
    more_than_the_ring_holds,
    submitting_alone_does_nothing,
    one_call_for_many,
    refusals_complete_with_their_buffers,
    reading_past_the_end,
    waiting_without_work_or_news,
    dropped_with_work_in_flight,
    queues_move_to_their_thread,
    several_queues_share_a_disk,
    random_operations_match_a_model,
    growing_keeps_contents,
    cached_writes_are_read_beside_others,
    buffers_come_back,
);
