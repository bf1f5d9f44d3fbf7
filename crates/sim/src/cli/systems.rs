//! The commands `run` and `sweep` for cache systems (`--system`).

use std::path::PathBuf;

use foxy_base::ByteSize;

use super::{OutputFormat, parameters::Parameters, stopping};
use crate::{
    figure::{Figure, Series},
    run::{RunError, SweepOptions, sweep_some},
    systems::{
        Pace, Replay, SystemConfig, SystemResult, SystemSpec, hummingbird::Placement, systems_table,
    },
};

/// Parameters that only cache systems have, not layouts. The lists are combined: there is a run for every
/// combination of their values.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cache systems")]
pub(super) struct SystemParameters {
    /// A cache system instead of levels and a layout: squid, squidm, squidl, squidml, squidmla,
    /// ucfs, hummingbird or foxy (the production store)
    #[arg(long, value_delimiter = ',')]
    pub(super) system: Vec<SystemSpec>,
    /// Pace of requests: throttle (back to back), real[:FACTOR] or fast:SECONDS (longer gaps are cut to this
    /// length)
    #[arg(long, default_value = "throttle")]
    pub(super) pace: Pace,
    /// Number of requests at the start that are played but not counted
    #[arg(long, default_value_t = 0)]
    pub(super) warm_up: u64,
    /// Objects larger than this are left out of the stream; 0: no limit
    #[arg(long, default_value = "64KiB")]
    pub(super) largest: ByteSize,
    /// Squid's own share of the memory, in percent; its file system gets the rest
    #[arg(long, default_value_t = 20)]
    pub(super) cache_mem_percent: u64,
    /// Share of the disk that is used for mapped files, in percent (squidm, squidml, squidmla)
    #[arg(long, default_value_t = 35)]
    pub(super) mapped_percent: u64,
    /// Cluster size of ucfs and hummingbird
    #[arg(long, value_delimiter = ',', default_value = "64KiB")]
    pub(super) cluster: Vec<ByteSize>,
    /// Lifetime of hummingbird's clusters, in minutes of simulated time; 0: no limit
    #[arg(long, value_delimiter = ',', default_value = "60")]
    pub(super) life: Vec<f64>,
    /// Placement of clusters (hummingbird): closest, previous-write or log
    #[arg(long, value_delimiter = ',', default_value = "closest", value_parser = placement)]
    pub(super) placement: Vec<Placement>,
    /// A partition, loop device or file of this machine instead of the modelled drive (ucfs and hummingbird).
    /// A missing file is created. The contents of the device or file are overwritten, so a device or file
    /// whose first MiB contains foreign data is refused. Zeros and data of an earlier run are not foreign
    #[arg(long)]
    pub(super) device: Option<PathBuf>,
}

fn placement(text: &str) -> Result<Placement, String> {
    match text {
        "closest" => Ok(Placement::Closest),
        "previous-write" => Ok(Placement::PreviousWrite),
        "log" => Ok(Placement::Log),
        _ => Err(format!(
            "placement `{text}` is not known; choose closest, previous-write or log"
        )),
    }
}

impl SystemParameters {
    /// True if any cache system is requested.
    pub(super) const fn wanted(&self) -> bool {
        !self.system.is_empty()
    }

    /// Refuses `--device` for runs of layouts: a layout uses the folder `--dir` instead of a device.
    ///
    /// # Errors
    /// Returns an error if `--device` was given.
    pub(super) fn check_layouts(&self) -> Result<(), RunError> {
        match self.device {
            Some(_) => Err(RunError::Config(
                "--device needs --system ucfs or hummingbird; layouts have --dir".into(),
            )),
            None => Ok(()),
        }
    }

    /// Returns every combination of the values. The systems are the outermost loop.
    ///
    /// # Errors
    /// Returns an error if a parameter of a combination is impossible.
    pub(super) fn configs(&self, shared: &Parameters) -> Result<Vec<SystemConfig>, RunError> {
        if self.cache_mem_percent > 100 || self.mapped_percent > 90 {
            let text = "--cache-mem-percent is at most 100, --mapped-percent at most 90";
            return Err(RunError::Config(text.into()));
        }
        let mut configs = Vec::new();
        for spec in &self.system {
            for drive in &shared.drive {
                let files = spec.keeps_files();
                let fs = if files {
                    &shared.fs[..]
                } else {
                    &shared.fs[..1]
                };
                for fs in fs {
                    let base = SystemConfig {
                        workload: shared.workload.clone(),
                        seed: shared.seed,
                        largest: self.largest.bytes(),
                        drive: drive.clone(),
                        device: self.device.clone(),
                        fs: *fs,
                        replay: Replay {
                            pace: self.pace,
                            warm_up: self.warm_up,
                        },
                        mapped: self.mapped_percent as f64 / 100.0,
                        ..SystemConfig::hummingbird(*spec)
                    };
                    self.sizes(shared, &base, &mut configs);
                }
            }
        }
        configs.iter().try_for_each(SystemConfig::check)?;
        Ok(configs)
    }

    fn sizes(&self, shared: &Parameters, base: &SystemConfig, into: &mut Vec<SystemConfig>) {
        for ram in shared.ram.iter().map(|b| b.bytes()) {
            for disk in shared.disk.iter().map(|b| b.bytes()) {
                for cluster in of_clusters(base.spec, &self.cluster) {
                    for life in of_library(base.spec, &self.life) {
                        for placement in of_library(base.spec, &self.placement) {
                            into.push(SystemConfig {
                                ram,
                                cache_mem: ram / 100 * self.cache_mem_percent,
                                disk,
                                cluster: cluster.bytes(),
                                life_minutes: *life,
                                placement: *placement,
                                ..base.clone()
                            });
                        }
                    }
                }
            }
        }
    }
}

/// Returns those values of a cluster parameter with which a sweep runs the system `spec`. Only UCFS and
/// Hummingbird have such a parameter. For any other system only the first value is returned, so that equal
/// runs are not repeated.
fn of_clusters<T>(spec: SystemSpec, list: &[T]) -> &[T] {
    let one = spec.keeps_files() || spec == SystemSpec::Foxy;
    if one {
        &list[..list.len().min(1)]
    } else {
        list
    }
}

/// Does the same as [`of_clusters`] for a parameter that only Hummingbird has.
fn of_library<T>(spec: SystemSpec, list: &[T]) -> &[T] {
    if spec == SystemSpec::Hummingbird {
        list
    } else {
        &list[..list.len().min(1)]
    }
}

/// Runs the systems and prints the table. Also returns the runs that were finished.
pub(super) fn text(
    configs: &[SystemConfig],
    options: &SweepOptions<'_>,
    form: OutputFormat,
) -> Result<(String, Vec<SystemConfig>, Vec<SystemResult>), RunError> {
    let results = sweep_some(configs, options)?;
    let (configs, results) = stopping::finished(configs, results, options.resume.is_some());
    let text = form.print(&systems_table(&configs, &results), &results)?;
    Ok((text, configs, results))
}

/// A figure with a bar for each run.
pub(super) fn figure(configs: &[SystemConfig], results: &[SystemResult]) -> Figure {
    let bars = results.iter().map(|r| (0.0, r.requests_per_s)).collect();
    Figure {
        title: "Requests per second".into(),
        y: "requests per second".into(),
        labels: configs.iter().map(SystemConfig::label).collect(),
        series: vec![Series::new("ours", bars)],
        ..Figure::default()
    }
}
