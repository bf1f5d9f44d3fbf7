//! Many configurations, in parallel, resumable.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{OpStream, RunConfig, RunError, RunResult, run_ops};

/// How to sweep.
#[derive(Default)]
pub struct SweepOptions<'a> {
    /// Threads; 0: one.
    pub threads: usize,
    /// A file of one JSON line per finished run. Runs that it has are not done again.
    pub resume: Option<PathBuf>,
    /// Called after each run with the number done and their total; may come from any thread.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// Does all configurations; results come in their order. Operations that several
/// configurations share are made once.
///
/// # Errors
/// The first run that fails; the file of `resume` keeps what was finished.
pub fn sweep(
    configs: &[RunConfig],
    options: &SweepOptions<'_>,
) -> Result<Vec<RunResult>, RunError> {
    let done = options
        .resume
        .as_deref()
        .map(load)
        .transpose()?
        .unwrap_or_default();
    let sweep = Sweep {
        configs,
        options,
        keys: configs.iter().map(key).collect(),
        streams: Mutex::default(),
        results: Mutex::new(vec![None; configs.len()]),
        next: AtomicUsize::new(0),
        log: Mutex::new(options.resume.as_deref().map(append).transpose()?),
    };
    for (key, slot) in sweep.keys.iter().zip(lock(&sweep.results).iter_mut()) {
        *slot = done.get(key).cloned();
    }
    let failed = std::thread::scope(|scope| {
        let threads = options.threads.clamp(1, configs.len().max(1));
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| sweep.work())).collect();
        handles
            .into_iter()
            .map(|h| h.join())
            .fold(None, |first, joined| {
                first.or(match joined {
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

type Stream = Arc<Mutex<Option<Arc<OpStream>>>>;

struct Sweep<'a> {
    configs: &'a [RunConfig],
    options: &'a SweepOptions<'a>,
    keys: Vec<String>,
    /// By the key of the operations.
    streams: Mutex<HashMap<String, Stream>>,
    results: Mutex<Vec<Option<RunResult>>>,
    next: AtomicUsize,
    log: Mutex<Option<File>>,
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

    fn one(&self, config: &RunConfig) -> Result<RunResult, RunError> {
        let stream = lock(&self.streams)
            .entry(OpStream::key(config))
            .or_default()
            .clone();
        let ops = {
            let mut slot = lock(&stream);
            match &*slot {
                Some(ops) => ops.clone(),
                None => slot.insert(Arc::new(OpStream::make(config)?)).clone(),
            }
        };
        run_ops(config, &ops)
    }

    fn note(&self, number: usize, result: RunResult) -> Result<(), RunError> {
        if let Some(file) = &mut *lock(&self.log) {
            let line = serde_json::json!({ "key": self.keys[number], "result": result });
            writeln!(file, "{line}").map_err(|source| self.output(source))?;
        }
        lock(&self.results)[number] = Some(result);
        Ok(())
    }

    fn output(&self, source: std::io::Error) -> RunError {
        RunError::Output {
            path: self.options.resume.clone().unwrap_or_default(),
            source,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn key(config: &RunConfig) -> String {
    serde_json::to_string(config).unwrap_or_default()
}

fn append(path: &Path) -> Result<File, RunError> {
    let open = OpenOptions::new().create(true).append(true).open(path);
    open.map_err(|source| RunError::Output {
        path: path.to_owned(),
        source,
    })
}

#[derive(serde::Deserialize)]
struct Line {
    key: String,
    result: RunResult,
}

/// Finished runs. A line that was cut short by a kill is skipped.
fn load(path: &Path) -> Result<HashMap<String, RunResult>, RunError> {
    let fail = |source| RunError::Output {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        opened => opened.map_err(fail)?,
    };
    let mut done = HashMap::new();
    for line in BufReader::new(file).lines() {
        if let Ok(line) = serde_json::from_str::<Line>(&line.map_err(fail)?) {
            done.insert(line.key, line.result);
        }
    }
    Ok(done)
}
