//! Ctrl-C: the first Ctrl-C lets work end at its next step, so that finished results are shown and kept; the
//! second Ctrl-C ends the process immediately.

use crate::run::stop;

/// Exit code of a command that was stopped: 128 plus the number of the signal, as in shells.
pub(super) const CODE: u8 = 130;

/// Watches for Ctrl-C from now on. If the handler cannot be installed, Ctrl-C ends the process as usual.
pub(super) fn watch() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let Ok(runtime) = runtime else { return };
    // The thread lives as long as the process.
    let watcher = std::thread::Builder::new().name("ctrl-c".into());
    let _ = watcher.spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                eprintln!("stopping; once more ends at once");
                stop();
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(i32::from(CODE));
                }
            }
        });
    });
}

/// Returns the jobs that are finished, with their results. If some jobs are not finished, prints a note
/// to standard error.
pub(super) fn finished<J: Clone, R>(
    jobs: &[J],
    results: Vec<Option<R>>,
    kept: bool,
) -> (Vec<J>, Vec<R>) {
    let pairs = jobs.iter().zip(results);
    let done: (Vec<J>, Vec<R>) = pairs
        .filter_map(|(job, result)| Some((job.clone(), result?)))
        .unzip();
    if done.0.len() < jobs.len() {
        let how = if kept {
            "the same command goes on there"
        } else {
            "--resume FILE would keep them"
        };
        let (done, all) = (done.0.len(), jobs.len());
        eprintln!("stopped: {done} of {all} runs are finished; {how}");
    }
    done
}
