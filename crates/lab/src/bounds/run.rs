//! The run of one load: a new Foxy process, the load, the watching clients (which measure the latency of
//! other requests), and the results.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::fixture::{Client, Fixture};
use super::load::{self, Load, Outcome, Scale};
use super::loads::{LARGE, LARGE_OBJECTS, SMALL, large, small};
use super::memory::{self, Sampler};
use super::origin::Origin;
use super::row::Row;
use super::sockets::Sockets;
use super::subject::{Limit, Setup, Subject};
use super::watch::{Summary, Watch};
use super::{greedy, objects};
use crate::kit::{Memory, forget_peak, runtime, serve};

/// Time for prepared objects to reach the disk.
const SETTLE: Duration = Duration::from_millis(1500);

/// The origin. It runs on its own thread until this value is dropped.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) origin: Arc<Origin>,
    pub(super) port: u16,
    _stop: oneshot::Sender<()>,
}

impl Backend {
    pub(super) fn start() -> Result<Self, String> {
        let runtime = runtime()?;
        let origin = Arc::new(Origin::default());
        let problem = |error: std::io::Error| format!("the origin has no port: {error}");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let (stop, stopped) = oneshot::channel();
        let responder = Arc::clone(&origin);
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, responder) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self {
            origin,
            port,
            _stop: stop,
        })
    }
}

/// Settings that all loads of a run share.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) backend: Backend,
    pub(super) setup: Setup,
    pub(super) scale: Scale,
    /// A store with many objects, if there is one.
    pub(super) objects: Option<TempDir>,
}

impl Bench {
    /// Runs a load on a new process.
    pub(super) fn row(&self, load: Load, limit: Limit) -> Result<Row, String> {
        let mut row = Row {
            name: load.name().to_owned(),
            budget: limit.bytes(),
            grouped: matches!(limit, Limit::Group(_)),
            ..Row::default()
        };
        let folder = TempDir::new().map_err(|error| format!("no folder: {error}"))?;
        if let Some(objects) = self.objects.as_ref().filter(|_| load.needs_objects()) {
            objects::copy(objects.path(), folder.path())?;
        }
        let begun = Instant::now();
        match Subject::start(&self.setup, limit, folder.path()) {
            Ok(subject) => self.on(subject, (load, limit), begun, &mut row)?,
            // In a control group, a failed start is a result of the measurement: the process may need more
            // memory than the limit permits.
            Err(problem) if row.grouped => row.end = Some(problem),
            Err(problem) => return Err(problem),
        }
        Ok(row)
    }

    /// Starts a second Foxy with the same settings. The greedy client visits it first, and it is not
    /// measured.
    async fn another(&self, load: Load, limit: Limit) -> Result<Another, String> {
        let folder = TempDir::new().map_err(|error| format!("no folder: {error}"))?;
        let subject = Subject::start(&self.setup, limit, folder.path())?;
        let fixture = Fixture::new(subject.proxy(), subject.admin(), &self.backend.origin);
        let fixture = Arc::new(fixture);
        match prepare(&fixture, load).await.pop() {
            Some(problem) => Err(problem),
            None => Ok(Another {
                fixture,
                _subject: subject,
                _folder: folder,
            }),
        }
    }

    fn on(
        &self,
        mut subject: Subject,
        (load, limit): (Load, Limit),
        begun: Instant,
        row: &mut Row,
    ) -> Result<(), String> {
        let pid = subject.child.pid();
        let fixture = Fixture::new(subject.proxy(), subject.admin(), &self.backend.origin);
        let fixture = Arc::new(fixture);
        let runtime = runtime()?;
        let sockets = Sockets::new(subject.port, self.backend.port);
        let sockets = sockets.map_err(|error| format!("no socket diagnosis: {error}"))?;
        if load != Load::Restart {
            row.problems
                .extend(runtime.block_on(prepare(&fixture, load)));
            let memory = Memory::of(pid).unwrap_or_default();
            (row.before, row.peak_before) = (memory.resident, memory.peak);
            forget_peak(pid);
        }
        let other = match load {
            Load::Greedy => Some(runtime.block_on(self.another(load, limit))?),
            _ => None,
        };
        let interval = match load {
            Load::Greedy => memory::RARELY,
            _ => memory::OFTEN,
        };
        let sampler = Sampler::start(pid, sockets, interval);
        let watch = Watch::start(&fixture);
        let loaded = Instant::now();
        let outcome = runtime.block_on(async {
            match (load, &other) {
                (Load::Restart, _) => {
                    Outcome::of(objects::loaded(&fixture, begun, self.scale.time).await)
                }
                (_, Some(other)) => greedy::beside(&fixture, &other.fixture, self.scale).await,
                _ => load::run(load, &fixture, self.scale).await,
            }
        });
        row.took = loaded.elapsed();
        let watched = watch.stop();
        row.peaks = sampler.stop();
        row.watched = Summary::of(&watched.requests);
        row.health = Summary::of(&watched.health);
        if let Some(phases) = &outcome.phases {
            row.notes.extend(greedy::phases(phases, &watched));
        }
        row.own = outcome.own;
        row.others = outcome.others;
        row.notes.extend(outcome.notes);
        row.problems.extend(outcome.problems);
        sleep(self.scale.after);
        row.after = Memory::of(pid).unwrap_or_default().resident;
        row.group_peak = subject.group.as_ref().map(super::group::Group::peak);
        row.end = subject.end();
        Ok(())
    }
}

/// A second Foxy beside the measured Foxy.
#[derive(Debug)]
struct Another {
    fixture: Arc<Fixture>,
    // Fields are dropped in their order: the process must end before its folder is removed.
    _subject: Subject,
    _folder: TempDir,
}

/// Makes Foxy store the objects that the load and the watching clients need. Returns the problems.
async fn prepare(fixture: &Fixture, load: Load) -> Vec<String> {
    let mut problems = Vec::new();
    if load.needs_objects() {
        let loaded = objects::loaded(fixture, Instant::now(), Duration::ZERO).await;
        problems.extend(loaded.err());
    }
    let mut wanted = vec![(small(), SMALL)];
    if load.needs_large() {
        wanted.extend((0..LARGE_OBJECTS).map(|number| (large(number), LARGE)));
    }
    let mut client = Client::new(Ipv4Addr::LOCALHOST, fixture.proxy);
    for (path, size) in wanted {
        if let Err(fault) = client.get(&path, size).await {
            problems.push(format!("{path} was not prepared: {fault}"));
        }
    }
    if load.needs_large() {
        tokio::time::sleep(SETTLE).await;
    }
    problems
}

impl Subject {
    pub(super) fn proxy(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub(super) fn admin(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.admin).into()
    }
}

/// A folder with a store of `count` objects.
pub(super) fn filled(backend: &Backend, setup: &Setup, count: u64) -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| format!("no folder: {error}"))?;
    let path: &Path = folder.path();
    objects::fill(setup, &backend.origin, path, count)?;
    Ok(folder)
}
