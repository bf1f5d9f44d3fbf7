//! The settings that a user gave: texts from files, variables and the command line, each with the place where
//! it was given.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::suggest::nearest;
use super::table::{REPEATED, SETTINGS, Setting};

/// The raw value of a setting: its texts (one text, or the entries of a list), and the place where it was
/// given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSetting {
    /// The texts as written, without quotes.
    pub texts: Vec<String>,
    /// True if the value was written as a list.
    pub list: bool,
    /// The place of the value: `foxy.toml:3`, `FOXY__MEMORY` or `--memory`.
    pub place: String,
    /// True if a part of the value comes from another file or a variable. The value may then be a secret, so
    /// messages do not show it.
    pub hidden: bool,
}

/// The settings given in one section, by name.
pub type Section = BTreeMap<String, RawSetting>;

/// All settings that a user gave: single sections by name, repeated sections in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawConfig {
    /// The sections that occur once, by name. The settings before any section have an empty name.
    pub single: BTreeMap<String, Section>,
    /// The repeated sections, such as `store`, `site` and `rule`.
    pub repeated: BTreeMap<String, Vec<Section>>,
    /// Unknown names and wrong forms. They are reported together with wrong values.
    pub problems: Vec<Problem>,
}

impl RawConfig {
    /// Sets a value as if the file contained it. It replaces the value in the file.
    pub fn set(&mut self, section: &str, name: &str, texts: Vec<String>, place: &str) {
        let setting = RawSetting {
            list: texts.len() != 1,
            texts,
            place: place.to_owned(),
            hidden: false,
        };
        let section = self.single.entry(section.to_owned()).or_default();
        section.insert(name.to_owned(), setting);
    }
}

/// Reads the text of a configuration file. `file` is the name of the file in messages.
///
/// Unknown sections and settings, and values that are tables, are in [`RawConfig::problems`].
///
/// # Errors
/// An error if the text is not TOML. In this case, no other problems can be found.
pub fn parse(text: &str, file: &str) -> Result<RawConfig, Vec<Problem>> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![Problem::syntax(place(text, file, at), error.message())]
    })?;
    let mut reader = Reader {
        text,
        file,
        raw: RawConfig::default(),
    };
    reader.top(table.get_ref());
    Ok(reader.raw)
}

fn place(text: &str, file: &str, at: usize) -> String {
    let line = 1 + text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|b| **b == b'\n')
        .count();
    format!("{file}:{line}")
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    raw: RawConfig,
}

impl Reader<'_> {
    fn place(&self, at: usize) -> String {
        place(self.text, self.file, at)
    }

    fn top(&mut self, table: &DeTable<'_>) {
        let mut top = Section::new();
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if is_section(name) && !REPEATED.contains(&name) => {
                    let section = self.section(name, inner);
                    self.raw.single.insert(name.to_owned(), section);
                }
                DeValue::Array(entries) if REPEATED.contains(&name) => {
                    let sections = self.entries(name, entries.iter());
                    self.raw.repeated.insert(name.to_owned(), sections);
                }
                _ if REPEATED.contains(&name) => {
                    let problem =
                        Problem::shape(self.place(at), name, &format!("write [[{name}]]"));
                    self.raw.problems.push(problem);
                }
                _ if is_section(name) => {
                    let problem = Problem::shape(self.place(at), name, &format!("write [{name}]"));
                    self.raw.problems.push(problem);
                }
                _ => self.setting("", name, at, value, &mut top),
            }
        }
        self.raw.single.insert(String::new(), top);
    }

    fn entries<'b>(
        &mut self,
        name: &str,
        entries: impl Iterator<Item = &'b Spanned<DeValue<'b>>>,
    ) -> Vec<Section> {
        let mut sections = Vec::new();
        for entry in entries {
            match entry.get_ref() {
                DeValue::Table(inner) => sections.push(self.section(name, inner)),
                _ => {
                    let place = self.place(entry.span().start);
                    self.raw.problems.push(Problem::shape(
                        place,
                        name,
                        &format!("write [[{name}]]"),
                    ));
                }
            }
        }
        sections
    }

    fn section(&mut self, name: &str, table: &DeTable<'_>) -> Section {
        let mut section = Section::new();
        for (key, value) in table {
            self.setting(name, key.get_ref(), key.span().start, value, &mut section);
        }
        section
    }

    fn setting(
        &mut self,
        section: &str,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        into: &mut Section,
    ) {
        let place = self.place(at);
        if find(section, name).is_none() {
            self.raw.problems.push(unknown(place, section, name));
            return;
        }
        match texts(value.get_ref()) {
            Some((texts, list)) => {
                into.insert(
                    name.to_owned(),
                    RawSetting {
                        texts,
                        list,
                        place,
                        hidden: false,
                    },
                );
            }
            None => {
                let key = full_name(section, name);
                let problem =
                    Problem::shape(place, &key, "write a string, number, true, false or a list");
                self.raw.problems.push(problem);
            }
        }
    }
}

fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.section == name)
}

/// Returns the setting of that name.
#[must_use]
pub(crate) fn find(section: &str, name: &str) -> Option<&'static Setting> {
    SETTINGS
        .iter()
        .find(|setting| setting.section == section && setting.name == name)
}

/// Returns `section.name`, or only the name for settings of the top level.
#[must_use]
pub(crate) fn full_name(section: &str, name: &str) -> String {
    if section.is_empty() {
        name.to_owned()
    } else {
        format!("{section}.{name}")
    }
}

pub(super) fn unknown(place: String, section: &str, name: &str) -> Problem {
    let here: Vec<String> = SETTINGS
        .iter()
        .filter(|setting| setting.section == section)
        .map(|setting| full_name(section, setting.name))
        .collect();
    let all: Vec<String> = SETTINGS
        .iter()
        .map(|s| full_name(s.section, s.name))
        .collect();
    let key = full_name(section, name);
    // The best suggestion is the same name in another section. The next best is a similar name in this
    // section, and the last is a similar name in any section.
    let elsewhere = SETTINGS.iter().find(|setting| setting.name == name);
    let suggestion = elsewhere
        .map(|setting| full_name(setting.section, setting.name))
        .or_else(|| nearest(&key, &here))
        .or_else(|| nearest(&key, &all));
    Problem::unknown(place, &key, suggestion.as_deref())
}

/// Returns the texts of a value that does not come from a file: a list in TOML's form, or the text unchanged.
/// `None` if the text begins like a list but is not a list.
pub(super) fn list_or_text(value: &str) -> Option<(Vec<String>, bool)> {
    if !value.trim_start().starts_with('[') {
        return Some((vec![value.to_owned()], false));
    }
    let line = format!("value = {value}");
    let table = DeTable::parse(&line).ok()?;
    texts(table.get_ref().get("value")?.get_ref())
}

fn texts(value: &DeValue<'_>) -> Option<(Vec<String>, bool)> {
    match value {
        DeValue::Array(entries) => {
            let texts: Option<Vec<_>> = entries
                .iter()
                .map(|entry| scalar(entry.get_ref()))
                .collect();
            Some((texts?, true))
        }
        other => Some((vec![scalar(other)?], false)),
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
