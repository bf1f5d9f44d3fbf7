//! The commands `run` (one configuration) and `sweep` (every combination of several values).

use std::path::PathBuf;

use super::{
    OutputFormat, bar, details,
    parameters::Parameters,
    stopping,
    systems::{self, SystemParameters},
    threads, with_files,
};
use crate::{
    figure::{Figure, Series},
    report::runs_table,
    run::{RunConfig, RunError, RunResult, SweepOptions, go_on, run, sweep_some},
};

/// Arguments of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    systems: SystemParameters,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
}

impl RunArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        if self.systems.wanted() {
            let configs = self.systems.configs(&self.parameters)?;
            single(&configs)?;
            let options = SweepOptions::default();
            let text = systems::text(&configs, &options, self.form)?.0;
            return go_on().map(|()| text);
        }
        self.systems.check_layouts()?;
        let configs = self.parameters.configs()?;
        let config = single(&configs)?;
        let result = run(config)?;
        let more = if self.form == OutputFormat::Table {
            format!("\n{}", details(&result))
        } else {
            String::new()
        };
        let results = [result];
        Ok(self.form.print(&runs_table(&results), &results[0])? + &more)
    }
}

fn single<T>(configs: &[T]) -> Result<&T, RunError> {
    match configs {
        [config] => Ok(config),
        _ => Err(RunError::Config(format!(
            "run wants one value for each parameter, these make {} runs; use sweep",
            configs.len()
        ))),
    }
}

/// Arguments of `sweep`.
#[derive(Clone, Debug, clap::Args)]
pub struct SweepArgs {
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    systems: SystemParameters,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
    /// Number of parallel runs; if not given, the number of processors
    #[arg(long)]
    threads: Option<usize>,
    /// A file that keeps finished runs: a sweep that was stopped continues from there
    #[arg(long)]
    resume: Option<PathBuf>,
    /// Draw operations per second into STEM.svg and STEM.png
    #[arg(long, value_name = "STEM")]
    figure: Option<PathBuf>,
}

impl SweepArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        if self.systems.wanted() {
            return self.systems_text();
        }
        self.systems.check_layouts()?;
        let configs = self.parameters.configs()?;
        let bar = bar(configs.len() as u64, PROGRESS);
        let tell = |done: usize, _| bar.set_position(done as u64);
        let results = sweep_some(
            &configs,
            &SweepOptions {
                // Runs on real files share one device, so parallel runs would disturb each other.
                threads: if self.parameters.dir.is_some() {
                    1
                } else {
                    threads(self.threads)
                },
                resume: self.resume.clone(),
                progress: Some(&tell),
            },
        )?;
        bar.finish_and_clear();
        let (configs, results) = stopping::finished(&configs, results, self.resume.is_some());
        let text = self.form.print(&runs_table(&results), &results)?;
        match &self.figure {
            Some(stem) => with_files(text, figure(&configs, &results).save(stem)),
            None => Ok(text),
        }
    }
}

const PROGRESS: &str = "{wide_bar} {pos} of {len} runs, {eta} left";

impl SweepArgs {
    fn systems_text(&self) -> Result<String, RunError> {
        let configs = self.systems.configs(&self.parameters)?;
        let bar = bar(configs.len() as u64, PROGRESS);
        let tell = |done: usize, _| bar.set_position(done as u64);
        let options = SweepOptions {
            // Parallel runs on a real device would disturb each other.
            threads: match self.systems.device {
                Some(_) => 1,
                None => threads(self.threads),
            },
            resume: self.resume.clone(),
            progress: Some(&tell),
        };
        let (text, configs, results) = systems::text(&configs, &options, self.form)?;
        bar.finish_and_clear();
        match &self.figure {
            Some(stem) => with_files(text, systems::figure(&configs, &results).save(stem)),
            None => Ok(text),
        }
    }
}

/// A figure of the results. If the utilisation varies, the figure has a curve for each layout over the
/// utilisation. Otherwise it has a bar for each run.
fn figure(configs: &[RunConfig], results: &[RunResult]) -> Figure {
    let plain = Figure {
        title: "Disk operations per second".into(),
        y: "operations per second".into(),
        ..Figure::default()
    };
    let varies = configs
        .windows(2)
        .any(|w| w[0].utilisation.total_cmp(&w[1].utilisation).is_ne());
    if !varies {
        let bars = results.iter().map(|r| (0.0, r.ops_per_s)).collect();
        return Figure {
            labels: results.iter().map(|r| r.layout.clone()).collect(),
            series: vec![Series::new("ours", bars)],
            ..plain
        };
    }
    let mut series: Vec<Series> = Vec::new();
    for (config, result) in configs.iter().zip(results) {
        let point = (100.0 * config.utilisation, result.ops_per_s);
        match series.iter_mut().find(|s| s.name == result.layout) {
            Some(line) => line.points.push(point),
            None => series.push(Series::new(result.layout.clone(), vec![point])),
        }
    }
    Figure {
        x: "space in use, %".into(),
        series,
        ..plain
    }
}
