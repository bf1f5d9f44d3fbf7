//! The parts of a reproduction, done one after the other; finished ones are kept on disk.

use std::path::Path;

use foxy_base::hash64;
use serde::{Deserialize, Serialize};

use super::{Conditions, Reproduction, Section};
use crate::run::RunError;

/// Hears of progress: what is being done, how many steps are finished, of how many.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// A part: what it is called and how it is done.
#[derive(Clone, Copy)]
pub struct Part {
    /// A word to ask for it by.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The publication and what was measured there, in two or three sentences.
    pub about: &'static str,
    /// Does it.
    pub run: fn(&Conditions, Progress<'_>) -> Result<Section, RunError>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    section: Section,
}

/// Does `parts` one after the other. After each part, `after` is called with everything finished so
/// far, so that finished parts survive an interruption. With a folder, finished parts are kept in
/// its file `parts/ID.json` and not done again by the same build. If it is stopped early, it
/// returns the finished parts.
///
/// # Errors
/// Those of the parts, of `after`, and of the folder.
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
                // What is finished is the result.
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
    // Under another name first: a kill in between leaves the old file or the new one.
    let new = file.with_extension("new");
    std::fs::write(&new, text).map_err(fail)?;
    std::fs::rename(&new, file).map_err(fail)
}

/// Tells builds apart: results of other models must not be taken for those of this one.
#[must_use]
pub fn fingerprint() -> u64 {
    let program = std::env::current_exe().and_then(std::fs::read);
    program.map_or(0, |bytes| hash64(0x0f0c, &bytes))
}
