//! Runs the stream of operations of `bench store files` over a file system: each object has its own file.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::Context;
use super::harness::{self, keyed};
use super::operations::{Kind, Operation};
use super::system::{self, MemoryLimit, Mounted};

/// Number of threads that work at the same time.
const THREADS: u64 = 8;

/// Runs the stream with one file per object. At the end, everything is durable. Returns the duration in
/// seconds, and whether the system could limit the memory.
pub(super) fn one_file_each(
    context: &Context<'_>,
    all: &[Operation],
    kind: &str,
    memory: u64,
) -> io::Result<(f64, bool)> {
    let mounted = Mounted::new(context.folder, kind, context.size / 2)?;
    for n in 0..256 {
        std::fs::create_dir(mounted.at.join(format!("{n:02x}")))?;
    }
    system::drop_caches();
    let limit = MemoryLimit::new(system::resident() + memory);
    let stock = harness::stock();
    let start = context.clock.mono();
    let work = |thread: u64| {
        // All operations of an object belong to one thread, so they keep their order.
        let own = all.iter().filter(|o| o.object % THREADS == thread);
        own.copied().try_for_each(|o| apply(&mounted.at, &stock, o))
    };
    let work = &work;
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|r| r.unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))))
            .collect()
    });
    results.into_iter().collect::<io::Result<()>>()?;
    let folder = std::fs::File::open(&mounted.at)?;
    rustix::fs::syncfs(&folder)?;
    let seconds = context.clock.mono().since(start).as_secs_f64();
    Ok((seconds, limit.is_some()))
}

fn apply(root: &Path, stock: &Bytes, operation: Operation) -> io::Result<()> {
    let path = place(root, operation.object);
    match operation.kind {
        Kind::Write => {
            let body = harness::body(stock, operation.object, operation.size as usize);
            std::fs::write(path, body)
        }
        Kind::Read => std::fs::read(path).map(drop),
        Kind::Delete => std::fs::remove_file(path),
    }
}

/// Path of an object. Caches with one file per object choose the folder of a file by the hash of its key.
fn place(root: &Path, object: u64) -> PathBuf {
    let (_, hash) = keyed(object);
    root.join(format!("{:02x}", hash.high() >> 56))
        .join(format!("{:016x}", hash.low()))
}
