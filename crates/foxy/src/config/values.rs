//! The values of one section: the given settings, read according to the table of settings, and the defaults
//! of all other settings.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use foxy_base::settings::{Plain, Row, Settings};
use ipnet::IpNet;

use super::kind::Value;
use super::origin::OriginEntry;
use super::problem::Problem;
use super::raw::{Section, full_name};
use super::table::{SETTINGS, Setting};

/// Values by setting name. If the code reads a name that is not in the table, that is a mistake in this
/// program. The test of the defaults finds such names.
#[derive(Debug)]
pub(super) struct Values<'p> {
    section: &'static str,
    values: HashMap<&'static str, Value>,
    problems: &'p mut Vec<Problem>,
}

impl<'p> Values<'p> {
    /// Reads a section. A value that is not allowed is reported in `problems` and replaced by the default, so
    /// that the same run finds further problems.
    pub(super) fn read(
        section: &'static str,
        given: Option<&Section>,
        problems: &'p mut Vec<Problem>,
    ) -> Self {
        let mut values = HashMap::new();
        for setting in SETTINGS.iter().filter(|setting| setting.section == section) {
            let read = given
                .and_then(|raw| raw.get(setting.name))
                .and_then(|raw| read_raw(setting, raw, problems));
            let value = read.or_else(|| default_value(setting));
            if let Some(value) = value {
                values.insert(setting.name, value);
            }
        }
        Self {
            section,
            values,
            problems,
        }
    }

    fn wrong_kind(&mut self, name: &str) {
        let key = full_name(self.section, name);
        self.problems.push(Problem::conflict(
            "internal",
            format!("{key} is read as another kind"),
        ));
    }

    /// Returns the settings of the section that are declared beside their fields.
    pub(super) fn fields<T: Settings>(&mut self) -> T {
        T::read(|row| self.plain(row))
    }

    fn plain(&mut self, row: &Row) -> Plain {
        match self.values.get(row.name) {
            Some(Value::Size(number) | Value::Count(number)) => Plain::Number(*number),
            Some(Value::Duration(time)) => Plain::Time(*time),
            Some(Value::Flag(flag)) => Plain::Flag(*flag),
            _ => {
                self.wrong_kind(row.name);
                row.default
            }
        }
    }

    pub(super) fn size(&mut self, name: &str) -> u64 {
        match self.values.get(name) {
            Some(Value::Size(bytes)) => *bytes,
            _ => {
                self.wrong_kind(name);
                0
            }
        }
    }

    pub(super) fn usize_of(&mut self, name: &str) -> usize {
        let value = match self.values.get(name) {
            Some(Value::Size(value) | Value::Count(value)) => *value,
            _ => {
                self.wrong_kind(name);
                0
            }
        };
        usize::try_from(value).unwrap_or(usize::MAX)
    }

    pub(super) fn duration(&mut self, name: &str) -> Duration {
        match self.values.get(name) {
            Some(Value::Duration(Some(time))) => *time,
            _ => {
                self.wrong_kind(name);
                Duration::ZERO
            }
        }
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Flag(flag)) => *flag,
            _ => {
                self.wrong_kind(name);
                false
            }
        }
    }

    /// Returns a flag that has no fixed default; `None` if it was not given.
    pub(super) fn given_flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// Returns a flag like [`given_flag`](Self::given_flag), or `otherwise` if it was not given.
    pub(super) fn flag_or(&self, name: &str, otherwise: bool) -> bool {
        self.given_flag(name).unwrap_or(otherwise)
    }

    pub(super) fn text(&mut self, name: &str) -> String {
        match self.values.get(name) {
            Some(Value::Text(text)) => text.clone(),
            _ => {
                self.wrong_kind(name);
                String::new()
            }
        }
    }

    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        match self.values.get(name) {
            Some(Value::Texts(texts)) => texts.clone(),
            _ => {
                self.wrong_kind(name);
                Vec::new()
            }
        }
    }

    /// Returns the texts of a setting, or an empty list if it was not given.
    pub(super) fn texts_or_none(&self, name: &str) -> Vec<String> {
        match self.values.get(name) {
            Some(Value::Texts(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn addresses(&mut self, name: &str) -> Vec<SocketAddr> {
        match self.values.get(name) {
            Some(Value::Addresses(addresses)) => addresses.clone(),
            _ => {
                self.wrong_kind(name);
                Vec::new()
            }
        }
    }

    pub(super) fn networks(&mut self, name: &str) -> Vec<IpNet> {
        match self.values.get(name) {
            Some(Value::Networks(networks)) => networks.clone(),
            _ => {
                self.wrong_kind(name);
                Vec::new()
            }
        }
    }

    pub(super) fn ports(&mut self, name: &str) -> Vec<u16> {
        match self.values.get(name) {
            Some(Value::Ports(ports)) => ports.clone(),
            _ => {
                self.wrong_kind(name);
                Vec::new()
            }
        }
    }

    pub(super) fn port_ranges(&mut self, name: &str) -> Vec<RangeInclusive<u16>> {
        match self.values.get(name) {
            Some(Value::PortRanges(ports)) => ports.clone(),
            _ => {
                self.wrong_kind(name);
                Vec::new()
            }
        }
    }

    /// Returns a value that has no fixed default; `None` if it was not given.
    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Returns the addresses of a setting, or an empty list if it was not given.
    pub(super) fn given_addresses(&self, name: &str) -> Vec<SocketAddr> {
        match self.values.get(name) {
            Some(Value::Addresses(addresses)) => addresses.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn origins(&self, name: &str) -> Vec<OriginEntry> {
        match self.values.get(name) {
            Some(Value::Origins(origins)) => origins.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

/// Settings whose values are never shown in messages.
const SECRETS: [&str; 1] = ["parent.login"];

fn read_raw(
    setting: &Setting,
    raw: &super::raw::RawSetting,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let key = full_name(setting.section, setting.name);
    let hidden = raw.hidden || SECRETS.contains(&&key[..]);
    let shown = if hidden {
        "(not shown)".to_owned()
    } else if raw.list {
        format!("{:?}", raw.texts)
    } else {
        format!("{:?}", raw.texts.first().map_or("", String::as_str))
    };
    let result = if raw.list && !setting.kind.is_list() {
        Err("it is a list".to_owned())
    } else {
        setting.kind.read(&raw.texts)
    };
    result
        .map_err(|wrong| {
            // The words in `wrong` can repeat the value, so a hidden value needs other words.
            let wrong = if hidden {
                "it does not have this form".to_owned()
            } else {
                wrong
            };
            let allowed = setting.kind.allowed();
            problems.push(Problem::value(
                raw.place.clone(),
                &key,
                &shown,
                &wrong,
                &allowed,
            ));
        })
        .ok()
}

/// Returns the default in the table, read in the same way as a user's text.
pub(super) fn default_value(setting: &Setting) -> Option<Value> {
    let text = setting.default.as_deref()?;
    let texts: Vec<String> = if setting.kind.is_list() {
        text.split_whitespace().map(str::to_owned).collect()
    } else {
        vec![text.to_owned()]
    };
    setting.kind.read(&texts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_allowed_by_its_own_kind() {
        for setting in SETTINGS.iter() {
            if setting.default.is_some() {
                let key = full_name(setting.section, setting.name);
                assert!(default_value(setting).is_some(), "{key}");
            }
        }
    }
}
