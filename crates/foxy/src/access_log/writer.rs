//! The log thread. It receives full buffers, writes them, and reopens the file on request.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::datagrams::Datagrams;
use crate::config::LogTarget;

/// Largest number of messages that wait for the thread. Most messages are buffers with lines. If the queue is
/// full, a further buffer is dropped.
const QUEUE: usize = 256;
/// Largest number of empty buffers that are kept for reuse.
const SPARE: usize = 64;

enum Message {
    Lines(Vec<u8>, u64),
    Reopen,
    Stop,
}

/// The counts of lines, and empty buffers for reuse.
#[derive(Debug, Default)]
pub(super) struct Shared {
    spare: Mutex<Vec<Vec<u8>>>,
    dropped: AtomicU64,
    written: AtomicU64,
}

impl Shared {
    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle by which workers and signals use the log thread. It is cheap to clone and never blocks.
#[derive(Clone, Debug)]
pub struct LogHandle {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lines(..) => "Lines",
            Self::Reopen => "Reopen",
            Self::Stop => "Stop",
        })
    }
}

impl LogHandle {
    /// Returns an empty buffer, which may have been used before.
    pub(super) fn empty_buffer(&self) -> Vec<u8> {
        self.shared.spare().pop().unwrap_or_default()
    }

    /// Hands `count` lines to the thread. If the thread does not keep up, the lines are dropped and counted.
    pub(super) fn hand_over(&self, lines: Vec<u8>, count: u64) {
        match self.sender.try_send(Message::Lines(lines, count)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.dropped.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Makes the thread open the file again, after the file was moved away. If the queue is full, this
    /// request is lost, and the operator must send the signal (SIGUSR1) again.
    pub fn reopen(&self) {
        let _ = self.sender.try_send(Message::Reopen);
    }

    /// Returns the number of lines that were dropped because the thread did not keep up or could not write.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }
}

/// The running thread. If this value is dropped without [`finish`](Self::finish), the thread runs until the
/// last handle is dropped.
#[derive(Debug)]
pub struct LogThread {
    handle: LogHandle,
    thread: JoinHandle<()>,
}

impl LogThread {
    /// Returns a handle for a worker.
    #[must_use]
    pub fn handle(&self) -> LogHandle {
        self.handle.clone()
    }

    /// Writes all lines that were handed over, and ends the thread.
    pub fn finish(self) {
        // This call blocks until the queue has a free slot. The thread handles all earlier messages first.
        let _ = self.handle.sender.send(Message::Stop);
        let _ = self.thread.join();
    }
}

/// Opens the target and starts the thread. The thread adds the lines that it writes or drops to the counts in
/// `shared`. Returns `None` if the log is off.
///
/// # Errors
/// An error if the target cannot be opened or the thread cannot be started.
pub(super) fn start_with(
    target: &LogTarget,
    shared: &Arc<Shared>,
) -> io::Result<Option<LogThread>> {
    let output = match target {
        LogTarget::Off => return Ok(None),
        LogTarget::Stdout => Output::Stdout,
        LogTarget::File(path) => Output::File(open(path)?, path.clone()),
        LogTarget::Service(service) => Output::Service(Datagrams::new(service)?),
    };
    let (sender, receiver) = sync_channel(QUEUE);
    let shared = Arc::clone(shared);
    let handle = LogHandle {
        sender,
        shared: Arc::clone(&shared),
    };
    let thread = std::thread::Builder::new()
        .name("foxy-log".to_owned())
        .spawn(move || run(output, &receiver, &shared))?;
    Ok(Some(LogThread { handle, thread }))
}

enum Output {
    Stdout,
    File(File, std::path::PathBuf),
    Service(Datagrams),
}

fn open(path: &Path) -> io::Result<File> {
    // The log shows which client requested which URL, so only the operator's group may read it.
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o640)
        .open(path)
}

fn run(mut output: Output, receiver: &Receiver<Message>, shared: &Shared) {
    let mut failing = false;
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Stop => break,
            Message::Reopen => output.reopen(),
            Message::Lines(mut lines, count) => {
                let (failed, why) = output.write(&lines, count);
                shared.written.fetch_add(count - failed, Ordering::Relaxed);
                shared.dropped.fetch_add(failed, Ordering::Relaxed);
                if let Some(error) = why.as_ref().filter(|_| !failing) {
                    tracing::error!(%error, "the access log cannot be written; its lines are dropped and counted");
                }
                failing = why.is_some();
                lines.clear();
                let mut spare = shared.spare();
                if spare.len() < SPARE {
                    spare.push(lines);
                }
            }
        }
    }
}

impl Output {
    /// Writes `count` lines. Returns the number of lines that were not written, and the error.
    fn write(&mut self, lines: &[u8], count: u64) -> (u64, Option<io::Error>) {
        let written = match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush())
            }
            Self::File(file, _) => file.write_all(lines),
            Self::Service(service) => return service.send(lines),
        };
        match written {
            Ok(()) => (0, None),
            Err(error) => (count, Some(error)),
        }
    }

    fn reopen(&mut self) {
        if let Self::File(file, path) = self {
            match open(path) {
                Ok(new) => *file = new,
                Err(error) => {
                    tracing::error!(%error, path = %path.display(), "the access log cannot be opened anew; the old file is used on");
                }
            }
        }
    }
}
