//! Many cache systems under the same requests, in parallel, resumable.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use foxy_trace::{Request, TraceError};

use super::{SystemConfig, SystemResult, run_system};
use crate::run::{RunError, SweepOptions};

/// Streams up to this many requests are kept in memory for all runs that want them.
const KEEP: usize = 8_000_000;

type Stream = Arc<Mutex<Option<Arc<Vec<Request>>>>>;

struct Sweep<'a> {
    configs: &'a [SystemConfig],
    options: &'a SweepOptions<'a>,
    streams: Mutex<HashMap<String, Stream>>,
    results: Mutex<Vec<Option<SystemResult>>>,
    next: AtomicUsize,
}

/// Does all configurations; results come in their order. Streams that several share are made
/// once.
///
/// # Errors
/// The first run that fails; the file of `resume` keeps what was finished.
pub fn sweep_systems(
    configs: &[SystemConfig],
    options: &SweepOptions<'_>,
) -> Result<Vec<SystemResult>, RunError> {
    configs.iter().try_for_each(SystemConfig::check)?;
    let done = match &options.resume {
        Some(path) => load(path)?,
        None => HashMap::new(),
    };
    let sweep = Sweep {
        configs,
        options,
        streams: Mutex::default(),
        results: Mutex::new(configs.iter().map(|c| done.get(&key(c)).cloned()).collect()),
        next: AtomicUsize::new(0),
    };
    let failed = std::thread::scope(|scope| {
        let threads = options.threads.clamp(1, configs.len().max(1));
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| sweep.work())).collect();
        let joined = handles.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.fold(None, |first: Option<RunError>, result| {
            first.or(match result {
                Ok(result) => result.err(),
                Err(_) => Some(RunError::Config("a run ended unexpectedly".into())),
            })
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(lock(&sweep.results).iter().flatten().cloned().collect()),
    }
}

impl Sweep<'_> {
    fn work(&self) -> Result<(), RunError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(config) = self.configs.get(number) else {
                return Ok(());
            };
            if lock(&self.results)[number].is_none() {
                let result = self.one(config).inspect_err(|_| {
                    // The others end with what they are doing.
                    self.next.store(self.configs.len(), Ordering::Relaxed);
                })?;
                self.note(number, result)?;
            }
            if let Some(progress) = self.options.progress {
                let done = lock(&self.results).iter().flatten().count();
                progress(done, self.configs.len());
            }
        }
    }

    fn one(&self, config: &SystemConfig) -> Result<SystemResult, RunError> {
        let name = format!("{} {} {}", config.workload, config.seed, config.largest);
        let stream = lock(&self.streams).entry(name).or_default().clone();
        let kept = {
            let mut slot = lock(&stream);
            match &*slot {
                Some(kept) => kept.clone(),
                None => slot.insert(Arc::new(keep(config)?)).clone(),
            }
        };
        let mut system = config.build()?;
        if kept.len() > KEEP {
            return run_system(&mut *system, config.requests()?, config.replay);
        }
        let requests = kept.iter().map(|r| Ok::<_, TraceError>(*r));
        run_system(&mut *system, requests, config.replay)
    }

    fn note(&self, number: usize, result: SystemResult) -> Result<(), RunError> {
        let mut results = lock(&self.results);
        if let Some(path) = &self.options.resume {
            let key = key(&self.configs[number]);
            let line = serde_json::json!({ "key": key, "system": result });
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            file.and_then(|mut file| writeln!(file, "{line}"))
                .map_err(|source| output(path, source))?;
        }
        results[number] = Some(result);
        Ok(())
    }
}

/// The stream, or one request more than is kept.
fn keep(config: &SystemConfig) -> Result<Vec<Request>, RunError> {
    let requests = config.requests()?.take(KEEP + 1);
    requests.map(|r| r.map_err(RunError::from)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(config: &SystemConfig) -> String {
    format!("{config:?}")
}

fn output(path: &Path, source: std::io::Error) -> RunError {
    RunError::Output {
        path: path.to_owned(),
        source,
    }
}

#[derive(serde::Deserialize)]
struct Line {
    key: String,
    system: SystemResult,
}

/// Finished runs. Lines of other kinds, or cut short by a kill, are skipped.
fn load(path: &Path) -> Result<HashMap<String, SystemResult>, RunError> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        opened => opened.map_err(|source| output(path, source))?,
    };
    let mut done = HashMap::new();
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|source| output(path, source))?;
        if let Ok(line) = serde_json::from_str::<Line>(&line) {
            done.insert(line.key, line.system);
        }
    }
    Ok(done)
}
