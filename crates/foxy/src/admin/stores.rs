//! The requests about stores: `GET /stores`, and `POST /stores/add|drain|resume|remove|grow|retry`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::ByteSize;
use foxy_store::{Duty, Engine, OneStoreStats, StoreId};
use serde::{Deserialize, Serialize};

use super::State;
use super::connection::Answer;
use super::query::parameter;
use super::stats::health_name;
use crate::config::one_store;
use crate::run::{Absent, KeeperError, StoreKeeper};

/// Longest time for which a request waits for its change. After this time the request is answered, and the
/// change continues.
const TIME: Duration = Duration::from_secs(12);

/// A store in the list of stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoreLine {
    /// The number of the store in this run; `None` for a store that Foxy could not open.
    pub(crate) store: Option<u16>,
    pub(crate) path: String,
    /// `good`, `slow`, `read-only`, `offline` or `absent`.
    pub(crate) health: String,
    /// The reason why the store does not read and write normally.
    pub(crate) reason: Option<String>,
    /// `serving`, `draining`, `drained` or `leaving`; `none` for a store that Foxy could not open.
    pub(crate) duty: String,
    /// Percentage of the store that a drain has not processed yet. A drain moves the used objects to other
    /// stores.
    pub(crate) left_percent: f64,
    pub(crate) capacity_bytes: u64,
    pub(crate) used_bytes: u64,
    /// True while the index entries of older segments are still being loaded after the store was opened.
    pub(crate) loading: bool,
    /// Percentage of new objects that go to this store now.
    pub(crate) share_percent: f64,
    pub(crate) quarantined_segments: u32,
}

/// The result of a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) store: u16,
    /// A description of the change.
    pub(crate) done: String,
    /// The change to the configuration file that has the same effect at the next start.
    pub(crate) configuration: String,
}

/// Returns the stable name of the duty of a store, such as `serving` or `draining`.
pub(super) const fn duty_name(duty: Duty) -> &'static str {
    match duty {
        Duty::Serving => "serving",
        Duty::Draining => "draining",
        Duty::Drained => "drained",
        Duty::Leaving => "leaving",
    }
}

impl StoreLine {
    /// Returns the line for a store of the configuration that could not be opened.
    fn absent(absent: Absent) -> Self {
        Self {
            store: None,
            path: absent.path,
            health: "absent".to_owned(),
            reason: Some(absent.reason),
            duty: "none".to_owned(),
            left_percent: 0.0,
            capacity_bytes: 0,
            used_bytes: 0,
            loading: false,
            share_percent: 0.0,
            quarantined_segments: 0,
        }
    }
}

/// Answers with all stores: first the open stores, then the stores that could not be opened.
pub(super) fn list(state: &State) -> Answer {
    let stores = state.engine.stats().stores;
    let all: f64 = stores
        .iter()
        .filter(|s| takes_new(s))
        .map(|s| s.share)
        .sum();
    let line = |s: &OneStoreStats| StoreLine {
        store: Some(s.store.0),
        path: state.stores.path(s.store).display().to_string(),
        health: health_name(s.health).to_owned(),
        reason: s.reason.clone(),
        duty: duty_name(s.duty).to_owned(),
        left_percent: (s.left * 1000.0).round() / 10.0,
        capacity_bytes: u64::from(s.segments) * u64::from(s.segment_bytes),
        used_bytes: s.used_bytes,
        loading: s.loading,
        share_percent: match takes_new(s) {
            true => (s.share / all.max(1e-9) * 1000.0).round() / 10.0,
            false => 0.0,
        },
        quarantined_segments: s.quarantined,
    };
    let absent = state.stores.absent().into_iter().map(StoreLine::absent);
    Answer::json(
        200,
        &stores.iter().map(line).chain(absent).collect::<Vec<_>>(),
    )
}

fn takes_new(store: &OneStoreStats) -> bool {
    store.duty == Duty::Serving && store.health == foxy_store::Health::Good
}

/// Carries out a change. The answer is sent after at most `TIME`, even if the change is not complete. The
/// change then continues.
pub(super) async fn change(what: &str, query: &str, state: &State) -> Answer {
    let (engine, keeper) = (Arc::clone(&state.engine), Arc::clone(&state.stores));
    let (what, query) = (what.to_owned(), query.to_owned());
    let work = tokio::task::spawn_blocking(move || {
        let change = Change {
            engine: &engine,
            keeper: &keeper,
            query: &query,
        };
        change.carry_out(&what)
    });
    match tokio::time::timeout(TIME, work).await {
        Err(_) => Answer::text(
            202,
            "it is under way; `foxy store list` shows when it is done",
        ),
        Ok(Err(_)) => Answer::text(500, "the change ended badly; look at the log"),
        Ok(Ok(Ok(changed))) => Answer::json(200, &changed),
        Ok(Ok(Err(problem))) => Answer::text(problem.status, &problem.text),
    }
}

/// The reason why nothing was changed.
struct Problem {
    status: u16,
    text: String,
}

impl Problem {
    fn usage(text: &(impl ToString + ?Sized)) -> Self {
        Self {
            status: 400,
            text: text.to_string(),
        }
    }
}

impl From<KeeperError> for Problem {
    fn from(error: KeeperError) -> Self {
        let status = match error {
            KeeperError::Unknown(_) => 404,
            KeeperError::Ended => 500,
            _ => 409,
        };
        Self {
            status,
            text: error.to_string(),
        }
    }
}

struct Change<'a> {
    engine: &'a Arc<Engine>,
    keeper: &'a StoreKeeper,
    query: &'a str,
}

impl Change<'_> {
    fn carry_out(&self, what: &str) -> Result<Changed, Problem> {
        match what {
            "add" => self.add(),
            "drain" => self.drain(),
            "resume" => self.resume(),
            "remove" => self.remove(),
            "grow" => self.grow(),
            "retry" => self.retry(),
            _ => Err(Problem {
                status: 404,
                text: "stores can: add, drain, resume, remove, grow, retry".to_owned(),
            }),
        }
    }

    fn store(&self) -> Result<(StoreId, String), Problem> {
        let name = parameter(self.query, "store")
            .ok_or_else(|| Problem::usage("say which store: its number or path"))?;
        let id = self.keeper.find(&name)?;
        Ok((id, self.keeper.path(id).display().to_string()))
    }

    fn add(&self) -> Result<Changed, Problem> {
        let path = parameter(self.query, "path")
            .ok_or_else(|| Problem::usage("say the path of the file or device"))?;
        let size = parameter(self.query, "size");
        let config =
            one_store(&path, size.as_deref()).map_err(|problem| Problem::usage(&problem))?;
        let id = self.keeper.add(&config)?;
        let size = size
            .map(|size| format!(", size = \"{size}\""))
            .unwrap_or_default();
        Ok(Changed {
            store: id.0,
            done: format!("{path} takes new objects now; what it holds is being loaded"),
            configuration: format!("add to [[store]]: path = \"{path}\"{size}"),
        })
    }

    fn drain(&self) -> Result<Changed, Problem> {
        let (id, path) = self.store()?;
        self.engine
            .fleet()
            .drain_store(id)
            .map_err(KeeperError::from)?;
        Ok(Changed {
            store: id.0,
            done: format!("{path} takes nothing new; what is wanted moves to the other stores"),
            configuration: "a restart forgets that; take it out when it is drained".to_owned(),
        })
    }

    fn resume(&self) -> Result<Changed, Problem> {
        let (id, path) = self.store()?;
        self.engine
            .fleet()
            .resume_store(id)
            .map_err(KeeperError::from)?;
        Ok(Changed {
            store: id.0,
            done: format!("{path} takes new objects again"),
            configuration: "nothing to change".to_owned(),
        })
    }

    fn remove(&self) -> Result<Changed, Problem> {
        let (id, path) = self.store()?;
        let now = parameter(self.query, "now").is_some_and(|v| matches!(&v[..], "1" | "true"));
        let out = self.keeper.remove(id, now)?;
        let closed = match out.closed {
            true => "is closed",
            false => "is out, and closed when reads under way have ended",
        };
        let written = match out.written {
            true => "",
            false => "; not everything could be written, so it begins empty if it comes back",
        };
        Ok(Changed {
            store: id.0,
            done: format!("{path} {closed}{written}"),
            configuration: format!("take out the [[store]] with path = \"{path}\""),
        })
    }

    fn grow(&self) -> Result<Changed, Problem> {
        let (id, path) = self.store()?;
        let bytes = match parameter(self.query, "size") {
            Some(size) => {
                size.parse::<ByteSize>()
                    .map_err(|problem| Problem::usage(&problem))?
                    .0
            }
            None => device_bytes(Path::new(&path)).ok_or_else(|| {
                Problem::usage("say how long the store shall be, such as size=200GiB")
            })?,
        };
        let (new, segments) = self.keeper.grow(id, bytes)?;
        Ok(Changed {
            store: new.0,
            done: format!(
                "{path} has {segments} segments now, and is number {}",
                new.0
            ),
            configuration: format!(
                "set the size of the [[store]] with path = \"{path}\", if it has one"
            ),
        })
    }

    fn retry(&self) -> Result<Changed, Problem> {
        let (id, path) = self.store()?;
        self.engine
            .fleet()
            .retry_quarantine(id)
            .map_err(KeeperError::from)?;
        Ok(Changed {
            store: id.0,
            done: format!(
                "{path} tries its segments in quarantine; the log tells which are used again"
            ),
            configuration: "nothing to change".to_owned(),
        })
    }
}

/// Returns the length of a block device in bytes.
fn device_bytes(path: &Path) -> Option<u64> {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::FileTypeExt;
    let device = std::fs::metadata(path).ok()?.file_type().is_block_device();
    let mut file = std::fs::File::open(path).ok().filter(|_| device)?;
    file.seek(SeekFrom::End(0)).ok()
}
