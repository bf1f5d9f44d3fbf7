//! `foxy reload`: the running Foxy reads its configuration again and lists the changes.

use std::process::ExitCode;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, registry, reload};

use super::args::{ReloadArgs, ServeArgs};
use super::say::say;
use super::{client, failed};
use crate::config::{LogLevel, ThisMachine};
use crate::{Reloaded, Running};

/// Handle that changes the level of messages while Foxy runs.
pub(super) type LevelHandle = reload::Handle<EnvFilter, tracing_subscriber::Registry>;

/// Writes messages to standard error. Colours are used only on a terminal.
pub(super) fn messages(level: &LogLevel) -> LevelHandle {
    use std::io::IsTerminal;
    let (filter, handle) = reload::Layer::new(filter(level));
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // Tests may call this twice in one process. The second call keeps the first subscriber.
    let _ = registry().with(filter).with(layer).try_init();
    handle
}

/// Returns the filter of messages: the value of FOXY_LOG if it is set and valid, or else the level of the
/// configuration. With the level of the configuration, the library for name lookups (hickory) logs only
/// errors, because a failed lookup is reported with the request that it affects.
fn filter(level: &LogLevel) -> EnvFilter {
    EnvFilter::try_from_env("FOXY_LOG").unwrap_or_else(|_| {
        EnvFilter::new(format!(
            "{},hickory_resolver=error,hickory_net=error,hickory_proto=error",
            level.0
        ))
    })
}

/// `foxy reload`: a running Foxy reads its configuration again.
pub(super) fn run(args: &ReloadArgs) -> ExitCode {
    match client::ask(&args.admin, "POST", "/reload") {
        Ok((200, line)) => {
            say!("{}", line.trim());
            ExitCode::SUCCESS
        }
        Ok((_, problems)) => failed(problems.trim()),
        Err(error) => failed(error),
    }
}

/// Reads the configuration again, applies the settings that can change while Foxy runs, and returns a line
/// about them.
///
/// # Errors
/// Returns the mistakes of the configuration, or the reason why it cannot be applied (for example, an address
/// is in use). In this case, no setting has changed.
pub(super) fn reload(
    args: &ServeArgs,
    running: &Running,
    level: &LevelHandle,
) -> Result<String, Vec<String>> {
    // Programs that rotate logs can send SIGHUP after they have moved the log file. So the log is opened anew
    // even if the configuration has mistakes.
    if let Some(log) = running.log() {
        log.reopen();
    }
    let new = args.configuration(&ThisMachine).map_err(|problems| {
        let lines = problems.into_iter().map(|problem| problem.to_string());
        lines.collect::<Vec<_>>()
    })?;
    let reloaded = running
        .reload(&new)
        .map_err(|error| vec![error.to_string()])?;
    // This fails only if the subscriber no longer exists. Then there are no messages to filter.
    let _ = level.reload(filter(&new.log.level));
    Ok(describe(&reloaded))
}

/// Returns the outcome as a line.
fn describe(reloaded: &Reloaded) -> String {
    let mut line = match &reloaded.applied[..] {
        [] => "reloaded: nothing changed".to_owned(),
        applied => format!("reloaded: {}", applied.join(", ")),
    };
    if !reloaded.waiting.is_empty() {
        line.push_str("; changed but not in effect before a restart: ");
        line.push_str(&reloaded.waiting.join(", "));
    }
    line
}

/// Writes the outcome to the log.
pub(super) fn report(outcome: &Result<String, Vec<String>>) {
    match outcome {
        Ok(line) => tracing::info!("{line}"),
        Err(problems) => {
            for problem in problems {
                tracing::error!("{problem}");
            }
            tracing::error!("the configuration was not reloaded; the old one stays in use");
        }
    }
}
