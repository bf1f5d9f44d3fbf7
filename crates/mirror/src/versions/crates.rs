//! A file of a sparse index of crates. Lines of hidden versions are marked as yanked, because
//! removed lines would break lock files that name these versions.

use super::edits::{Body, Edits};
use super::json::{MOST, members, only, range_of, string};
use super::{Screening, TOO_MANY, Unreadable, Verdict, time};

pub(super) fn screen(screening: &mut Screening<'_>, text: String) -> Result<Body, Unreadable> {
    let mut edits = Edits::default();
    for line in text.lines() {
        // A line that cannot be read stays, because cargo cannot read it either.
        if let Some(yanking) = yanked(screening, &text, line) {
            edits.replace(yanking.0, yanking.1);
        }
        if edits.count() > MOST {
            return Err(TOO_MANY);
        }
    }
    Ok(Body::new(text, edits))
}

/// Returns the edit that marks a line as yanked: the range to replace, and the new text. Returns `None` if
/// the version is shown, or if the line cannot be read.
fn yanked(
    screening: &mut Screening<'_>,
    text: &str,
    line: &str,
) -> Option<(std::ops::Range<usize>, String)> {
    let all = members(line).ok()?;
    let read = |name: &str| only(&all, name).ok().flatten().and_then(string);
    let published = read("pubtime").and_then(|text| time(&text));
    let verdict = screening.judge(&read("name")?, &read("vers")?, published);
    if verdict == Verdict::Shown {
        return None;
    }
    match only(&all, "yanked").ok()? {
        Some(value) => Some((range_of(text, value), "true".to_owned())),
        None => {
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            let start = start + line.find('{')? + 1;
            Some((start..start, "\"yanked\":true,".to_owned()))
        }
    }
}
