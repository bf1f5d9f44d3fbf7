//! Opening the stores, and the one thread that drives each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_disk::{Disk, FileDisk, OpenOptions};
use foxy_store::{Engine, StoreOptions, WakeHandle, Writer};

use super::StartError;
use crate::config::StoreConfig;

/// Longest wait for a disk at the end; then the rest is given up (it is a cache).
const DRAIN_MAX: Duration = Duration::from_secs(30);

const RUN: u8 = 0;
const DRAIN: u8 = 1;
const ABANDON: u8 = 2;

/// Opens the file or device of a store.
pub(super) fn open_disk(store: &StoreConfig) -> Result<Arc<dyn Disk>, StartError> {
    if let Some(folder) = store
        .path
        .parent()
        .filter(|folder| *folder != Path::new(""))
    {
        make_folder(&store.path, folder)?;
    }
    let metadata = std::fs::metadata(&store.path).ok();
    let holds_something = metadata
        .as_ref()
        .is_some_and(|m| m.is_file() && m.len() > 0);
    // What has contents is not made longer before it is known to be ours.
    let create_len = (!holds_something).then_some(store.size);
    let disk = FileDisk::open(
        &store.path,
        &OpenOptions {
            create_len,
            ..OpenOptions::default()
        },
    )?;
    if holds_something && store.size_given && disk.len() != store.size {
        tracing::warn!(
            path = %store.path.display(),
            has = disk.len(),
            configured = store.size,
            "the store keeps the size it has; remove the file to make it anew"
        );
    }
    let report = disk.report();
    if let Some(reason) = &report.ring_refused {
        tracing::info!(path = %store.path.display(), reason, "io_uring is not available, threads are used");
    }
    if let Some(reason) = &report.direct_refused {
        tracing::info!(path = %store.path.display(), reason, "direct I/O is not available");
    }
    if report.sparse {
        tracing::warn!(path = %store.path.display(), "the file system did not reserve the space");
    }
    Ok(Arc::new(disk))
}

/// Makes the folders of a new store, for this user alone: a cache holds what people read.
fn make_folder(path: &Path, folder: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| StartError::Folder {
            path: path.display().to_string(),
            source,
        })
}

/// The threads that drive the stores.
#[derive(Debug, Default)]
pub(super) struct StoreThreads {
    command: Arc<AtomicU8>,
    wakes: Vec<WakeHandle>,
    threads: Vec<JoinHandle<()>>,
}

impl StoreThreads {
    /// Opens a store on `disk` and starts its thread.
    pub(super) fn open(
        &mut self,
        engine: &Arc<Engine>,
        disk: Arc<dyn Disk>,
        options: StoreOptions,
    ) -> Result<(), StartError> {
        let writer = engine.open_store(disk, options)?;
        self.wakes.push(writer.wake_handle());
        let command = Arc::clone(&self.command);
        let thread = std::thread::Builder::new()
            .name(format!("foxy-store-{}", self.threads.len()))
            .spawn(move || drive(writer, &command))
            .map_err(|source| StartError::Thread {
                what: "store",
                source,
            })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Makes every writer take a turn now (a test has moved the clock).
    pub(super) fn wake(&self) {
        self.wakes.iter().for_each(WakeHandle::wake);
    }

    /// Writes everything out, seals, and ends the threads.
    pub(super) fn drain(&mut self) {
        self.end(DRAIN);
    }

    /// Ends the threads as a crash would: what was not written is lost.
    pub(super) fn abandon(&mut self) {
        self.end(ABANDON);
    }

    fn end(&mut self, command: u8) {
        self.command.store(command, Ordering::Release);
        self.wake();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a store thread ended badly");
            }
        }
    }
}

impl Drop for StoreThreads {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn drive(mut writer: Writer, command: &AtomicU8) {
    loop {
        let turn = writer.turn();
        match command.load(Ordering::Acquire) {
            DRAIN => {
                if !writer.drain(DRAIN_MAX) {
                    tracing::warn!("not everything could be written; the rest is fetched again");
                }
                return;
            }
            ABANDON => return,
            _ => writer.park(turn),
        }
    }
}

const _: () = assert!(RUN == 0, "the default of the command is to run");
