//! Many jobs of one kind, in parallel. A sweep can be interrupted and resumed.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::{Serialize, de::DeserializeOwned};

use super::{OpStream, RunConfig, RunError, RunResult, run_ops, stop};

/// Options of a sweep.
#[derive(Default)]
pub struct SweepOptions<'a> {
    /// Number of threads; 0 means 1.
    pub threads: usize,
    /// A file with one JSON line per finished run. Runs in this file are not repeated.
    pub resume: Option<PathBuf>,
    /// Called after each run with the number of finished runs and the number of all runs. The call may come
    /// from any thread.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// One of the many jobs of a sweep.
pub trait Job: Sync {
    /// Input of a job. Several jobs may share one input.
    type Input: Send + Sync;
    /// Result of a job.
    type Output: Clone + Send + Serialize + DeserializeOwned;
    /// Name of the JSON member that contains the result in the file of `resume`. Each kind of job has a
    /// different name.
    const FIELD: &'static str;

    /// Checks the parameters.
    ///
    /// # Errors
    /// Returns an error if a parameter is impossible.
    fn check(&self) -> Result<(), RunError>;
    /// A key for the output: jobs have equal keys only if their outputs are equal.
    fn key(&self) -> String;
    /// A key for the input: jobs have equal keys only if their inputs are equal.
    fn input_key(&self) -> String;
    /// Makes the input.
    ///
    /// # Errors
    /// Returns an error if the input cannot be made.
    fn input(&self) -> Result<Self::Input, RunError>;
    /// Runs the job.
    ///
    /// # Errors
    /// Returns an error if the job failed or was stopped.
    fn output(&self, input: &Self::Input) -> Result<Self::Output, RunError>;
}

impl Job for RunConfig {
    type Input = OpStream;
    type Output = RunResult;
    const FIELD: &'static str = "result";

    fn check(&self) -> Result<(), RunError> {
        Self::check(self)
    }

    fn key(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn input_key(&self) -> String {
        OpStream::key(self)
    }

    fn input(&self) -> Result<OpStream, RunError> {
        OpStream::make(self)
    }

    fn output(&self, input: &OpStream) -> Result<RunResult, RunError> {
        run_ops(self, input)
    }
}

/// Runs all jobs. Results are in the order of the jobs. An input that several jobs share is made once.
///
/// # Errors
/// Returns the error of the first job that fails, or [`RunError::Stopped`]. The file of `resume` keeps the
/// finished runs.
pub fn sweep<J: Job>(jobs: &[J], options: &SweepOptions<'_>) -> Result<Vec<J::Output>, RunError> {
    let results = sweep_some(jobs, options)?;
    let all: Option<Vec<_>> = results.into_iter().collect();
    all.ok_or(RunError::Stopped)
}

/// Runs all jobs as [`sweep`] does. After an early stop, returns the results of the finished jobs.
///
/// # Errors
/// Returns the error of the first job that fails.
pub fn sweep_some<J: Job>(
    jobs: &[J],
    options: &SweepOptions<'_>,
) -> Result<Vec<Option<J::Output>>, RunError> {
    jobs.iter().try_for_each(Job::check)?;
    let done = match &options.resume {
        Some(path) => load::<J>(path)?,
        None => HashMap::new(),
    };
    let results = jobs.iter().map(|job| done.get(&job.key()).cloned());
    let sweep = Sweep {
        jobs,
        options,
        inputs: Mutex::default(),
        results: Mutex::new(results.collect()),
        next: AtomicUsize::new(0),
        log: Mutex::new(options.resume.as_deref().map(append).transpose()?),
    };
    let failed = std::thread::scope(|scope| {
        let threads = options.threads.clamp(1, jobs.len().max(1));
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
        None | Some(RunError::Stopped) => Ok(std::mem::take(&mut *lock(&sweep.results))),
        Some(error) => Err(error),
    }
}

type Shared<T> = Arc<Mutex<Option<Arc<T>>>>;

struct Sweep<'a, J: Job> {
    jobs: &'a [J],
    options: &'a SweepOptions<'a>,
    inputs: Mutex<HashMap<String, Shared<J::Input>>>,
    results: Mutex<Vec<Option<J::Output>>>,
    next: AtomicUsize,
    log: Mutex<Option<File>>,
}

impl<J: Job> Sweep<'_, J> {
    fn work(&self) -> Result<(), RunError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(number) else {
                return Ok(());
            };
            if lock(&self.results)[number].is_none() {
                let result = self.one(job).inspect_err(|_| {
                    // The other threads finish their current jobs and start no more jobs.
                    self.next.store(self.jobs.len(), Ordering::Relaxed);
                })?;
                self.note(number, result)?;
            }
            if let Some(progress) = self.options.progress {
                let done = lock(&self.results).iter().flatten().count();
                progress(done, self.jobs.len());
            }
        }
    }

    fn one(&self, job: &J) -> Result<J::Output, RunError> {
        stop::go_on()?;
        let shared = lock(&self.inputs)
            .entry(job.input_key())
            .or_default()
            .clone();
        let input = {
            let mut slot = lock(&shared);
            match &*slot {
                Some(input) => input.clone(),
                None => slot.insert(Arc::new(job.input()?)).clone(),
            }
        };
        job.output(&input)
    }

    fn note(&self, number: usize, result: J::Output) -> Result<(), RunError> {
        if let Some(file) = &mut *lock(&self.log) {
            let key = self.jobs[number].key();
            let line = serde_json::json!({ "key": key, J::FIELD: result });
            writeln!(file, "{line}").map_err(|source| {
                let path = self.options.resume.clone().unwrap_or_default();
                RunError::Output { path, source }
            })?;
        }
        lock(&self.results)[number] = Some(result);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the file to append lines. If the process was killed earlier, the last line may have no line end.
/// Then a line end is added first, so that the next line is not joined to the truncated line.
fn append(path: &Path) -> Result<File, RunError> {
    let open = || {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        // The last byte can be read only if the file is a regular file.
        if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                writeln!(file)?;
            }
        }
        Ok(file)
    };
    open().map_err(|source| RunError::Output {
        path: path.to_owned(),
        source,
    })
}

/// Reads finished runs. Lines of another kind of job, and lines that were truncated when the process was
/// killed, are skipped.
fn load<J: Job>(path: &Path) -> Result<HashMap<String, J::Output>, RunError> {
    let fail = |source| RunError::Output {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        opened => opened.map_err(fail)?,
    };
    if !file.metadata().map_err(fail)?.is_file() {
        return Ok(HashMap::new());
    }
    let mut done = HashMap::new();
    for line in BufReader::new(file).lines() {
        let Ok(mut line) = serde_json::from_str::<serde_json::Value>(&line.map_err(fail)?) else {
            continue;
        };
        let output = serde_json::from_value(line[J::FIELD].take());
        if let (Some(key), Ok(output)) = (line["key"].as_str(), output) {
            done.insert(key.to_owned(), output);
        }
    }
    Ok(done)
}
