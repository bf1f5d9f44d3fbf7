//! Settings from the environment: `FOXY__SECTION__NAME`, for containers and services.
//!
//! The two underscores distinguish these variables from variables such as `FOXY_PORT` and
//! `FOXY_SERVICE_HOST`, which orchestrators set for a service named `foxy`.

use std::ffi::OsString;

use super::problem::Problem;
use super::raw::{RawConfig, RawSetting, find, full_name, list_or_text, unknown};
use super::table::REPEATED;

const PREFIX: &str = "FOXY__";

/// A variable that contains a setting: its name, and the parts of the name in lower case.
struct Named {
    variable: String,
    section: String,
    /// Number of a repeated section, from 1.
    number: Option<usize>,
    name: String,
}

impl RawConfig {
    /// Applies the settings in variables. They replace the settings of files. `FOXY__MEMORY` sets `memory`,
    /// `FOXY__CACHE__MAX_SIZE` sets `max_size` in `[cache]`, and `FOXY__SITE__2__ORIGIN` sets `origin` of the
    /// second site. Lists are written as in the file: `["a", "b"]`.
    ///
    /// A name that is not a setting is a problem, as in a file. Variables without the prefix are ignored.
    pub fn overlay_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) {
        let mut found = Vec::new();
        for (variable, value) in variables {
            let Ok(variable) = variable.into_string() else {
                continue;
            };
            let Some(rest) = variable.strip_prefix(PREFIX) else {
                continue;
            };
            match (named(&variable, rest), value.into_string()) {
                (Ok(named), Ok(value)) => found.push((named, value)),
                (Err(problem), _) => self.problems.push(problem),
                (Ok(_), Err(_)) => self.problems.push(Problem::conflict(
                    &variable,
                    "its value is not UTF-8 text".to_owned(),
                )),
            }
        }
        // Sections are created in the order of their numbers, not in the order of the variables.
        found.sort_by(|(a, _), (b, _)| {
            (&a.section, a.number, &a.name).cmp(&(&b.section, b.number, &b.name))
        });
        for (named, value) in found {
            self.overlay_one(named, &value);
        }
    }

    fn overlay_one(&mut self, named: Named, value: &str) {
        let Named {
            variable,
            section,
            number,
            name,
        } = named;
        let Some((texts, list)) = list_or_text(value) else {
            let key = full_name(&section, &name);
            let mend = "write a text, or a list such as [\"a\", \"b\"]";
            self.problems.push(Problem::shape(variable, &key, mend));
            return;
        };
        let setting = RawSetting {
            texts,
            list,
            place: variable,
            hidden: false,
        };
        let into = match number {
            None => self.single.entry(section).or_default(),
            Some(number) => {
                let sections = self.repeated.entry(section.clone()).or_default();
                if number > sections.len() + 1 {
                    let next = sections.len() + 1;
                    let text =
                        format!("there is no {section} {number}; the next one is number {next}");
                    self.problems.push(Problem::conflict(&setting.place, text));
                    return;
                }
                if number > sections.len() {
                    sections.push(super::Section::new());
                }
                &mut sections[number - 1]
            }
        };
        into.insert(name, setting);
    }
}

fn named(variable: &str, rest: &str) -> Result<Named, Problem> {
    let lower = rest.to_ascii_lowercase();
    let parts: Vec<_> = lower.split("__").collect();
    let (section, number, name) = match parts.as_slice() {
        [name] => ("", None, *name),
        [section, name] if !REPEATED.contains(section) => (*section, None, *name),
        [section, number, name] if REPEATED.contains(section) => {
            match number.parse().ok().filter(|number| *number > 0) {
                Some(number) => (*section, Some(number), *name),
                None => return Err(numbered(variable, section)),
            }
        }
        [section, ..] if REPEATED.contains(section) => return Err(numbered(variable, section)),
        [section, name @ ..] => {
            return Err(unknown(variable.to_owned(), section, &name.join("__")));
        }
        [] => return Err(unknown(variable.to_owned(), "", "")),
    };
    if (section, name) == ("", "include") {
        let text = "files are included by the configuration file alone".to_owned();
        return Err(Problem::conflict(variable, text));
    }
    match find(section, name) {
        None => Err(unknown(variable.to_owned(), section, name)),
        Some(_) => Ok(Named {
            variable: variable.to_owned(),
            section: section.to_owned(),
            number,
            name: name.to_owned(),
        }),
    }
}

fn numbered(variable: &str, section: &str) -> Problem {
    let upper = section.to_ascii_uppercase();
    Problem::conflict(
        variable,
        format!("a {section} has a number; write {PREFIX}{upper}__1__NAME for the first one"),
    )
}

#[cfg(test)]
mod tests;
