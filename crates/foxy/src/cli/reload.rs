//! What Foxy says about itself, and what SIGHUP changes while it runs.

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, registry, reload};

use super::args::ServeArgs;
use crate::Running;
use crate::config::{Config, LogLevel, ThisMachine};

/// Changes the level of messages while Foxy runs.
pub(super) type LevelHandle = reload::Handle<EnvFilter, tracing_subscriber::Registry>;

/// Messages go to standard error, without colours unless a person reads them.
pub(super) fn messages(level: &LogLevel) -> LevelHandle {
    use std::io::IsTerminal;
    let (filter, handle) = reload::Layer::new(filter(level));
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second call (in-process tests) keeps the first subscriber.
    let _ = registry().with(filter).with(layer).try_init();
    handle
}

/// FOXY_LOG if it is set, else the level; the name service is quieter, its trouble is reported
/// with the request it concerns.
fn filter(level: &LogLevel) -> EnvFilter {
    EnvFilter::try_from_env("FOXY_LOG").unwrap_or_else(|_| {
        EnvFilter::new(format!(
            "{},hickory_resolver=error,hickory_net=error,hickory_proto=error",
            level.0
        ))
    })
}

/// Reads the configuration again, applies what can change while running and says what cannot.
pub(super) fn reload(
    args: &ServeArgs,
    current: &mut Config,
    running: &Running,
    level: &LevelHandle,
) {
    if let Some(log) = running.log() {
        log.reopen();
    }
    let new = match args.configuration(&ThisMachine) {
        Ok(new) => new,
        Err(problems) => {
            for problem in problems {
                tracing::error!("{problem}");
            }
            tracing::error!("the configuration was not reloaded; the old one stays in use");
            return;
        }
    };
    if new.log.level != current.log.level {
        // Fails only when the subscriber is gone, and then there is nothing to filter.
        let _ = level.reload(filter(&new.log.level));
        current.log.level = new.log.level.clone();
    }
    if needs_restart(current, &new) {
        tracing::warn!(
            "reloaded: log level and log files; other changes take effect at the next start"
        );
    } else {
        tracing::info!("reloaded");
    }
}

/// Whether anything differs that only a start can change. The printed form has every setting.
fn needs_restart(current: &Config, new: &Config) -> bool {
    let shown = |config: &Config| {
        format!(
            "{:?} {:?}",
            config.proxy,
            (
                &config.listen,
                &config.admin,
                (&config.admin_hosts, &config.admin_token),
                config.memory,
                config.workers,
                &config.sites,
                &config.log,
                config
                    .stores
                    .iter()
                    .map(|store| &store.path)
                    .collect::<Vec<_>>(),
            )
        )
    };
    shown(current) != shown(new)
}
