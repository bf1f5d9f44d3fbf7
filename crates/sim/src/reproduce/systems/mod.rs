//! The cache systems' papers done again: Hummingbird (1999 draft and USENIX 2001) and UCFS (IEEE
//! Trans. Computers 2002), and every system under the same requests.

mod crash;
mod equal;
mod hummingbird;
mod sets;
mod ucfs;

use super::{Claim, Comparison, Conditions, Reproduction};
use crate::{
    figure::{Figure, Series},
    run::{RunError, SweepOptions},
    systems::{Pace, Replay, SystemConfig, SystemResult, SystemSpec, sweep_systems},
};

type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Hummingbird's tables, UCFS' comparisons, all systems side by side, crashes.
pub(super) fn all(
    conditions: &Conditions,
    progress: Progress<'_>,
) -> Result<Reproduction, RunError> {
    let mut out = Reproduction::default();
    hummingbird::all(conditions, progress, &mut out)?;
    sets::all(conditions, progress, &mut out)?;
    ucfs::all(conditions, progress, &mut out)?;
    equal::all(conditions, progress, &mut out)?;
    crash::all(conditions, progress, &mut out)?;
    Ok(out)
}

fn runs(
    conditions: &Conditions,
    progress: Progress<'_>,
    what: &str,
    configs: &[SystemConfig],
) -> Result<Vec<SystemResult>, RunError> {
    let tell = |done, of| progress(what, done, of);
    let options = SweepOptions {
        threads: conditions.threads,
        resume: conditions.resume.clone(),
        progress: Some(&tell),
    };
    sweep_systems(configs, &options)
}

/// Requests, memory and disk divided by the scale; lifetimes are minutes of run time, which
/// shrinks alike.
fn scaled(config: SystemConfig, conditions: &Conditions) -> SystemConfig {
    let scale = conditions.scale.max(1);
    let workload = match config.workload {
        crate::run::Workload::Made(made, requests) => {
            crate::run::Workload::Made(made, (requests / scale).max(1_000))
        }
        log @ crate::run::Workload::Log(_) => log,
    };
    let ram = (config.ram / scale).max(4 << 20);
    SystemConfig {
        workload,
        seed: conditions.seed,
        ram,
        cache_mem: (config.cache_mem / scale).min(ram / 2),
        disk: (config.disk / scale).max(64 << 20),
        life_minutes: config.life_minutes / scale as f64,
        replay: Replay {
            warm_up: config.replay.warm_up / scale,
            ..config.replay
        },
        ..config
    }
}

/// 1 where a published order holds, else 0.
fn holds(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn figure(title: &str, note: &str, x: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure {
        title: title.into(),
        note: note.into(),
        x: x.into(),
        y: y.into(),
        series,
        ..Figure::default()
    }
}

/// Bars, one for each value.
fn bars(name: &str, values: impl Iterator<Item = f64>) -> Series {
    Series::new(name, values.map(|v| (0.0, v)).collect())
}
