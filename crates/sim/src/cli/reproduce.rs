//! `reproduce`.

use std::path::PathBuf;

use super::{Form, bar, saved, threads};
use crate::{
    reproduce::{Conditions, usits},
    run::RunError,
};

/// Arguments of `reproduce`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReproduceArgs {
    /// Folder for tables, JSON and figures
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Seed of the generated stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Divide memory, disk and operations by this, for a quick look
    #[arg(long, default_value_t = 1)]
    scale: u64,
    /// Runs side by side; as many as there are processors if not given
    #[arg(long)]
    threads: Option<usize>,
    /// A file that keeps finished runs
    #[arg(long)]
    resume: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    form: Form,
}

impl ReproduceArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        if !(1..=1000).contains(&self.scale) {
            return Err(RunError::Config("scale must be from 1 to 1000".into()));
        }
        let conditions = Conditions {
            seed: self.seed,
            scale: self.scale,
            threads: threads(self.threads),
            resume: self.resume.clone(),
            ..Conditions::default()
        };
        let bar = bar(1, "{msg:16} {wide_bar} {pos} of {len}, {elapsed}");
        let tell = |what: &str, done: usize, of: usize| {
            bar.set_message(what.to_owned());
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        };
        let done = usits(&conditions, &tell)?;
        bar.finish_and_clear();
        let mut text = self.form.print(&done.table(), &done)?;
        if let Some(folder) = &self.out {
            text += &saved(&done.save(folder)?);
        }
        Ok(text)
    }
}
