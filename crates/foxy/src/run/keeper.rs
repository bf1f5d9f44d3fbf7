//! The stores of a running Foxy. Each store has its own thread. Stores can be added and removed on request.

mod opening;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_disk::Disk;
use foxy_store::{
    Duty, DutyError, Engine, GrowError, OpenError, StoreId, StoreOptions, WakeHandle, Writer,
};
use parking_lot::Mutex;

pub use self::opening::Absent;

use super::StartError;
use super::roster::Roster;
use super::stores::open_disk;
use crate::config::StoreConfig;

/// Longest wait for a disk when Foxy ends. Contents that are not written within this time are lost, which a
/// cache permits.
const DRAIN_MAX: Duration = Duration::from_secs(30);
/// Longest wait for a disk when a store is taken out or grows while Foxy runs.
const CLOSE_MAX: Duration = Duration::from_secs(10);
/// Longest wait until nothing uses a closed disk any more.
const LET_GO: Duration = Duration::from_secs(3);
/// Time between two checks whether a closed disk is still in use.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A command for a store's thread. Without a command, the thread calls `Writer::turn` of the store again and
/// again.
enum Command {
    /// Write all waiting contents, and end.
    Drain,
    /// End immediately, as in a crash.
    Abandon,
    /// Take the store out. The answer is true if all waiting contents were written.
    Close(Sender<bool>),
    /// Make the store this many bytes long. The first part of the answer is the store's new number and waker;
    /// it is `None` if the store could not be opened again. The second part is the store's number of
    /// segments, or the error.
    Grow(u64, Sender<Grown>),
}

type Grown = (Option<(StoreId, WakeHandle)>, Result<u32, GrowError>);

/// Reasons why the stores were not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    /// No store has this name.
    #[error("there is no store `{0}`; `foxy store list` shows them, by number and path")]
    Unknown(String),
    /// The file is already open as a store of this Foxy.
    #[error("store {0} is open already")]
    Open(String),
    /// The store has live objects that would be lost.
    #[error(
        "the store still has live objects: `foxy store drain` moves them to the other stores; --now removes it as it is"
    )]
    NotDrained,
    /// The store's thread has ended.
    #[error("the store does not answer; look at the log")]
    Ended,
    /// The state of the store does not permit the change.
    #[error("{0}")]
    Duty(#[from] DutyError),
    /// The store cannot be opened.
    #[error("{0}")]
    Start(#[from] StartError),
    /// The store cannot grow.
    #[error("{0}")]
    Grow(#[from] GrowError),
}

/// The result of taking a store out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenOut {
    /// True if all waiting contents were written.
    pub(crate) written: bool,
    /// True if the store's file or device is closed.
    pub(crate) closed: bool,
}

/// A store with its thread.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    wake: WakeHandle,
    commands: Sender<Command>,
    thread: JoinHandle<()>,
}

/// The stores and their threads. Dropping this value ends the threads as in a crash.
#[derive(Debug)]
pub(crate) struct StoreKeeper {
    engine: Arc<Engine>,
    options: StoreOptions,
    kept: Mutex<BTreeMap<StoreId, Kept>>,
    /// Stores of the configuration that could not be opened.
    absent: Mutex<Vec<Absent>>,
    /// The list of stores for the next start; `None` if no list is kept.
    roster: Mutex<Option<Roster>>,
    /// The lock that permits only one change at a time.
    changing: Mutex<()>,
}

impl StoreKeeper {
    /// Creates a keeper without stores. It opens stores with these options.
    pub(super) fn new(engine: &Arc<Engine>, options: StoreOptions) -> Self {
        Self {
            engine: Arc::clone(engine),
            options,
            kept: Mutex::default(),
            absent: Mutex::default(),
            roster: Mutex::default(),
            changing: Mutex::default(),
        }
    }

    fn open(&self, disk: Arc<dyn Disk>, config: Option<&StoreConfig>) -> Result<Writer, OpenError> {
        let options = StoreOptions {
            reads: config.map_or(self.options.reads, |store| store.reads),
            ..self.options.clone()
        };
        self.engine.open_store(disk, options)
    }

    /// Starts a store's thread, and adds the store to the list of stores.
    fn keep(&self, writer: Writer, config: Option<&StoreConfig>) -> Result<StoreId, StartError> {
        let path = config.map_or_else(PathBuf::new, |store| store.path.clone());
        let (id, wake) = (writer.store_id(), writer.wake_handle());
        let (commands, received) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("foxy-store-{}", id.0))
            .spawn(move || drive(writer, &received))
            .map_err(|source| StartError::Thread {
                what: "store",
                source,
            })?;
        let kept = Kept {
            path,
            wake,
            commands,
            thread,
        };
        self.kept.lock().insert(id, kept);
        Ok(id)
    }

    /// Adds a store while Foxy runs.
    pub(crate) fn add(&self, config: &StoreConfig) -> Result<StoreId, KeeperError> {
        let _one_at_a_time = self.changing.lock();
        let same = |kept: &Kept| is_same(&kept.path, &config.path);
        if self.kept.lock().values().any(same) {
            return Err(KeeperError::Open(config.path.display().to_string()));
        }
        let opened = self.open(open_disk(config)?, Some(config));
        let mut writer = opened.map_err(StartError::from)?;
        if let Err(error) = self.engine.join(std::slice::from_mut(&mut writer)) {
            writer.close(CLOSE_MAX);
            return Err(StartError::from(error).into());
        }
        let id = self.keep(writer, Some(config))?;
        let path = config.path.display().to_string();
        self.absent.lock().retain(|absent| absent.path != path);
        self.write_roster(None);
        tracing::info!(store = id.0, path, "a store was added");
        Ok(id)
    }

    /// Writes a list of the current stores for the next start, without the store that is `leaving`. Returns
    /// true if the list is durable or need not be written.
    fn write_roster(&self, leaving: Option<StoreId>) -> bool {
        let mut stores = self.engine.stats().stores;
        stores.retain(|store| Some(store.store) != leaving);
        let here: Vec<_> = stores.iter().map(|store| store.uuid).collect();
        let mut roster = self.roster.lock();
        let Some(Err(error)) = roster.as_mut().map(|roster| roster.write(&here)) else {
            return true;
        };
        tracing::warn!(%error, "which stores are here cannot be remembered");
        false
    }

    /// Returns the store with this number or path.
    pub(crate) fn find(&self, name: &str) -> Result<StoreId, KeeperError> {
        let kept = self.kept.lock();
        let by_path = kept
            .iter()
            .find(|(_, kept)| is_same(&kept.path, Path::new(name)));
        let number = name.parse().ok().map(StoreId);
        let by_number = number.filter(|id| kept.contains_key(id));
        by_path
            .map(|(id, _)| *id)
            .or(by_number)
            .ok_or_else(|| KeeperError::Unknown(name.to_owned()))
    }

    /// Returns the path of a store; empty if it has no path.
    pub(crate) fn path(&self, id: StoreId) -> PathBuf {
        let kept = self.kept.lock();
        kept.get(&id)
            .map_or_else(PathBuf::new, |kept| kept.path.clone())
    }

    /// Takes a store out and closes it. Blocks for at most some seconds. The store must be drained, unless
    /// `now` is true.
    pub(crate) fn remove(&self, id: StoreId, now: bool) -> Result<TakenOut, KeeperError> {
        let _one_at_a_time = self.changing.lock();
        let duty = self
            .engine
            .stats()
            .stores
            .into_iter()
            .find(|s| s.store == id);
        let duty = duty.ok_or(DutyError::Unknown)?.duty;
        if !now && duty != Duty::Drained {
            return Err(KeeperError::NotDrained);
        }
        let disk = self
            .engine
            .fleet()
            .disk(id)
            .map(|disk| Arc::downgrade(&disk));
        // Closing a store marks it as out of date on its own disk. If that disk fails, the other stores note
        // on their disks that this store is out of date. If the other stores are absent at the next start,
        // only the list in the state folder shows this. The list is written before the store is closed. So
        // the store begins empty even if Foxy is killed between the two steps.
        self.write_roster(Some(id));
        let (answer, answered) = channel();
        self.command(id, Command::Close(answer))?;
        let written = answered.recv().map_err(|_| KeeperError::Ended)?;
        let kept = self.kept.lock().remove(&id);
        if let Some(kept) = kept {
            tracing::info!(store = id.0, path = %kept.path.display(), written, "a store was taken out");
            join(kept.thread);
        }
        let closed = disk.is_none_or(|disk| is_let_go(&disk));
        Ok(TakenOut { written, closed })
    }

    /// Makes a store this many bytes long. Blocks until the store is open again. Returns its new number, and
    /// its number of segments.
    pub(crate) fn grow(&self, id: StoreId, bytes: u64) -> Result<(StoreId, u32), KeeperError> {
        let _one_at_a_time = self.changing.lock();
        let (answer, answered) = channel();
        self.command(id, Command::Grow(bytes, answer))?;
        let (now, result) = answered.recv().map_err(|_| KeeperError::Ended)?;
        let mut kept = self.kept.lock();
        let old = kept.remove(&id);
        let Some((new, wake)) = now else {
            drop(kept);
            // The store was taken out, but it is not certain that its disk has the mark that the store is out
            // of date. So a list without this store is written to the state folder.
            self.write_roster(None);
            return Err(result.err().map_or(KeeperError::Ended, KeeperError::Grow));
        };
        if let Some(old) = old {
            kept.insert(new, Kept { wake, ..old });
        }
        Ok((new, result?))
    }

    fn command(&self, id: StoreId, command: Command) -> Result<(), KeeperError> {
        let kept = self.kept.lock();
        let kept = kept.get(&id).ok_or(KeeperError::Duty(DutyError::Unknown))?;
        let sent = kept.commands.send(command);
        sent.map_err(|_| KeeperError::Ended)?;
        kept.wake.wake();
        Ok(())
    }

    /// Makes every writer run one iteration of its loop now. A test calls this after it has moved the clock.
    pub(super) fn wake(&self) {
        self.kept.lock().values().for_each(|kept| kept.wake.wake());
    }

    /// Writes all waiting contents, seals the stores, and ends the threads.
    pub(super) fn drain(&self) {
        self.end(|| Command::Drain);
    }

    /// Ends the threads as in a crash. Contents that were not written are lost.
    pub(super) fn abandon(&self) {
        self.end(|| Command::Abandon);
    }

    fn end(&self, command: impl Fn() -> Command) {
        let all = std::mem::take(&mut *self.kept.lock());
        for kept in all.values() {
            // A thread that has ended needs no command.
            let _ = kept.commands.send(command());
            kept.wake.wake();
        }
        for kept in all.into_values() {
            join(kept.thread);
        }
    }
}

impl Drop for StoreKeeper {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a store thread ended badly");
    }
}

/// True if two paths name the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

/// Waits a short time until the disk is not open any more. Returns false if it is still open.
fn is_let_go(disk: &Weak<dyn Disk>) -> bool {
    for _ in 0..LET_GO.as_millis() / POLL_INTERVAL.as_millis() {
        if disk.strong_count() == 0 {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

fn drive(mut writer: Writer, commands: &Receiver<Command>) {
    loop {
        let turn = writer.turn();
        match commands.try_recv() {
            Err(_) => writer.park(turn),
            Ok(Command::Drain) => {
                if !writer.drain(DRAIN_MAX) {
                    tracing::warn!("not everything could be written; the rest is fetched again");
                }
                return;
            }
            Ok(Command::Abandon) => return,
            Ok(Command::Close(answer)) => {
                // The caller may have stopped waiting.
                let _ = answer.send(writer.close(CLOSE_MAX));
                return;
            }
            Ok(Command::Grow(bytes, answer)) => {
                let grown = writer.grow(bytes, CLOSE_MAX);
                let now = grown
                    .writer
                    .as_ref()
                    .map(|w| (w.store_id(), w.wake_handle()));
                let _ = answer.send((now, grown.result));
                match grown.writer {
                    Some(same) => writer = same,
                    None => return,
                }
            }
        }
    }
}
