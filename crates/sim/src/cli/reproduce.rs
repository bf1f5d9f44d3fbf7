//! The command `reproduce`, which repeats the published experiments.

use std::path::{Path, PathBuf};

use super::{OutputFormat, bar, saved, threads};
use crate::{
    reproduce::{Conditions, PARTS, Part, Reproduction, run_parts},
    run::RunError,
};

/// Arguments of `reproduce`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReproduceArgs {
    /// Folder for the page `index.html`, tables, JSON and figures. Finished results stay there. After Ctrl-C,
    /// the same command continues with the unfinished parts
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Run only these parts; `--list` shows their names
    #[arg(long, value_delimiter = ',')]
    parts: Vec<String>,
    /// Show the names of the parts and end
    #[arg(long)]
    list: bool,
    /// Write docs/reproduction.md and its figures; another folder may be given
    #[arg(long, value_name = "DOCS", num_args = 0..=1, default_missing_value = "docs")]
    write_docs: Option<PathBuf>,
    /// Seed of the generated stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Divide memory, disk and operations by this number, for a quick check
    #[arg(long, default_value_t = 1)]
    scale: u64,
    /// Number of parallel runs; if not given, the number of processors
    #[arg(long)]
    threads: Option<usize>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
}

impl ReproduceArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        if self.list {
            return Ok(list());
        }
        if !(1..=1000).contains(&self.scale) {
            return Err(RunError::Config("scale must be from 1 to 1000".into()));
        }
        let parts = self.chosen()?;
        if let Some(docs) = &self.write_docs {
            self.check_docs(docs)?;
        }
        let conditions = Conditions {
            seed: self.seed,
            scale: self.scale,
            threads: threads(self.threads),
            resume: self.out.as_deref().map(runs_file).transpose()?,
            ..Conditions::default()
        };
        let bar = bar(1, "{msg:46} {wide_bar} {pos} of {len}, {elapsed}");
        let tell = |what: &str, done: usize, of: usize| {
            bar.set_message(what.to_owned());
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        };
        let mut files = Vec::new();
        let mut after = |all: &Reproduction| {
            if let Some(folder) = &self.out {
                files = all.save(folder)?;
            }
            Ok(())
        };
        let done = run_parts(&parts, &conditions, self.out.as_deref(), &tell, &mut after)?;
        bar.finish_and_clear();
        if done.sections.len() < parts.len() {
            let how = if self.out.is_some() {
                "the same command goes on with the next"
            } else {
                "--out FOLDER would keep them"
            };
            let (done, all) = (done.sections.len(), parts.len());
            eprintln!("stopped: {done} of {all} parts are finished; {how}");
        }
        let mut text = match self.form {
            OutputFormat::Table => done.text(),
            form => form.print(&done.table(), &done)?,
        };
        if let Some(docs) = &self.write_docs
            && done.sections.len() == parts.len()
        {
            files.extend(done.write_docs(docs)?);
        }
        if self.form == OutputFormat::Table {
            text += &saved(&files);
        }
        Ok(text)
    }

    fn chosen(&self) -> Result<Vec<Part>, RunError> {
        if self.parts.is_empty() {
            return Ok(PARTS.to_vec());
        }
        let find = |id: &String| {
            PARTS.iter().find(|p| p.id == id).copied().ok_or_else(|| {
                RunError::Config(format!("part `{id}` is not known; there are\n{}", list()))
            })
        };
        self.parts.iter().map(find).collect()
    }

    /// Checks that the page of `--write-docs` will contain all parts under the published conditions, and that
    /// `docs` is a folder.
    fn check_docs(&self, docs: &Path) -> Result<(), RunError> {
        let bad = |text: String| Err(RunError::Config(text));
        if self.scale > 1 || !self.parts.is_empty() {
            return bad("--write-docs goes without --scale and --parts".into());
        }
        if !docs.is_dir() {
            let docs = docs.display();
            return bad(format!(
                "--write-docs: {docs} is not a folder; give the one of the documentation"
            ));
        }
        Ok(())
    }
}

/// File that keeps finished runs of layouts. Its name identifies the build, so that runs of other builds are
/// not used.
fn runs_file(folder: &Path) -> Result<PathBuf, RunError> {
    let runs = folder.join("runs");
    std::fs::create_dir_all(&runs).map_err(|source| RunError::Output {
        path: runs.clone(),
        source,
    })?;
    let build = crate::reproduce::fingerprint();
    Ok(runs.join(format!("{build:016x}.jsonl")))
}

fn list() -> String {
    PARTS
        .iter()
        .map(|part| format!("{:<12} {}\n", part.id, part.title))
        .collect()
}
