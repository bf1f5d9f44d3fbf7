//! Repeats the experiments of the papers on cache systems: Hummingbird (1999 draft and USENIX 2001) and UCFS
//! (IEEE Trans. Computers 2002). A further part compares every system under the same requests.

mod crash;
mod equal;
mod hummingbird;
mod sets;
#[cfg(test)]
mod tests;
mod ucfs;

pub(super) use crash::CRASH;
pub(super) use equal::EQUAL;
pub(super) use hummingbird::HUMMINGBIRD;
pub(super) use sets::SETS;
pub(super) use ucfs::UCFS;

use super::{Claim, Comparison, Conditions, Part, Progress, Section, section::figure};
use crate::{
    figure::{Figure, Series},
    run::RunError,
    systems::{Pace, Replay, SystemConfig, SystemResult, SystemSpec},
};

fn runs(
    conditions: &Conditions,
    progress: Progress<'_>,
    what: &str,
    configs: &[SystemConfig],
) -> Result<Vec<SystemResult>, RunError> {
    let tell = |done, of| progress(what, done, of);
    crate::run::sweep(configs, &conditions.options(&tell))
}

/// Divides requests, memory and disk by the scale. Lifetimes are minutes of run time, which shrinks in
/// proportion to the number of requests. So lifetimes are divided too.
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

/// Returns 1 if a published order of systems holds, and otherwise 0, because a claim can compare only
/// numbers.
fn holds(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// A series of bars, one for each value.
fn bars(name: &str, values: impl Iterator<Item = f64>) -> Series {
    Series::new(name, values.map(|v| (0.0, v)).collect())
}

/// Adds a figure. Its note is also its caption.
fn draw(out: &mut Section, (stem, figure): (&str, Figure)) {
    let caption = figure.note.clone();
    out.draw(stem, &caption, figure);
}
