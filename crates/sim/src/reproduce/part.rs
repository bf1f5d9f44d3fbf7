//! The parts of a reproduction, run one after the other. Finished parts are kept on disk.

use std::path::Path;

use foxy_base::hash64;
use serde::{Deserialize, Serialize};

use super::{Conditions, Reproduction, Section};
use crate::run::RunError;

/// Callback for progress: name of the current work, number of finished steps, number of all steps.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// A part, with its name and the function that runs it.
#[derive(Clone, Copy)]
pub struct Part {
    /// Word that selects the part on the command line.
    pub id: &'static str,
    /// Heading of the part.
    pub title: &'static str,
    /// The publication and its measurements, in two or three sentences.
    pub about: &'static str,
    /// Function that runs the part.
    pub run: fn(&Conditions, Progress<'_>) -> Result<Section, RunError>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    section: Section,
}

/// Runs `parts` one after the other. After each part, `after` is called with all sections finished so far. So
/// the caller can save these sections in case the run is interrupted later. If there is a folder, each
/// finished part is kept in its file `parts/ID.json`, and the same build does not run the part again. If the
/// run is stopped early, the function returns the finished parts.
///
/// # Errors
/// Returns the first error of a part, of `after`, or of the folder.
pub fn run_parts(
    parts: &[Part],
    conditions: &Conditions,
    folder: Option<&Path>,
    progress: Progress<'_>,
    after: &mut dyn FnMut(&Reproduction) -> Result<(), RunError>,
) -> Result<Reproduction, RunError> {
    let mut out = Reproduction {
        scale: conditions.scale,
        ..Reproduction::default()
    };
    let build = fingerprint();
    for (number, part) in parts.iter().enumerate() {
        progress(part.title, number, parts.len());
        let key = format!("{build:016x} {} {:?}", part.id, conditions.key());
        let file = folder.map(|f| f.join("parts").join(part.id).with_extension("json"));
        let kept = file.as_deref().and_then(|f| load(f, &key));
        let section = match kept {
            Some(section) => section,
            None => match (part.run)(conditions, progress) {
                // The run was stopped, so the finished parts are the result.
                Err(RunError::Stopped) => return Ok(out),
                done => Section {
                    title: part.title.into(),
                    about: part.about.into(),
                    ..done?
                },
            },
        };
        let kept = Kept { key, section };
        if let Some(file) = &file {
            keep(file, &kept)?;
        }
        out.sections.push(kept.section);
        after(&out)?;
    }
    Ok(out)
}

fn load(file: &Path, key: &str) -> Option<Section> {
    let text = std::fs::read(file).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.key == key).then_some(kept.section)
}

fn keep(file: &Path, kept: &Kept) -> Result<(), RunError> {
    let fail = |source| RunError::Output {
        path: file.to_owned(),
        source,
    };
    let text = serde_json::to_vec(kept).map_err(|e| RunError::Config(e.to_string()))?;
    std::fs::create_dir_all(file.parent().unwrap_or(file)).map_err(fail)?;
    // The file is written under another name and then renamed. So if the process is killed, either the old
    // file or the complete new file exists.
    let new = file.with_extension("new");
    std::fs::write(&new, text).map_err(fail)?;
    std::fs::rename(&new, file).map_err(fail)
}

/// A number that identifies the build, so that results of another build are not taken for results of this
/// build.
#[must_use]
pub fn fingerprint() -> u64 {
    let program = std::env::current_exe().and_then(std::fs::read);
    program.map_or(0, |bytes| hash64(0x0f0c, &bytes))
}
