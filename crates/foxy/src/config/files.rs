//! The configuration file, the files that it includes, and values that it takes from variables and other
//! files.

use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::raw::{RawConfig, parse};

/// Reads a configuration file, the files of its `include`, and the `FOXY__` variables of the process. The
/// variables replace the settings of files.
///
/// # Errors
/// An error if a file cannot be read or is not TOML. All other mistakes are in [`RawConfig::problems`].
pub fn read(path: Option<&Path>) -> Result<RawConfig, Vec<Problem>> {
    let mut raw = match path {
        Some(path) => with_included(path)?,
        None => RawConfig::default(),
    };
    raw.overlay_environment(std::env::vars_os());
    Ok(raw)
}

fn with_included(path: &Path) -> Result<RawConfig, Vec<Problem>> {
    let mut raw = one(path, "--config")?;
    let Some(include) = raw.single.get("").and_then(|top| top.get("include")) else {
        return Ok(raw);
    };
    let include = include.clone();
    let folder = path.parent().unwrap_or(Path::new(""));
    for pattern in &include.texts {
        let files = match matching(&folder.join(pattern)) {
            Ok(files) => files,
            Err(text) => {
                let problem = Problem::conflict(&include.place, format!("{pattern}: {text}"));
                raw.problems.push(problem);
                continue;
            }
        };
        for file in files {
            let part = one(&file, &include.place)?;
            raw.merge(part);
        }
    }
    Ok(raw)
}

fn one(path: &Path, named_by: &str) -> Result<RawConfig, Vec<Problem>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let text = format!("cannot read {name}: {error}");
        vec![Problem::conflict(named_by, text)]
    })?;
    let mut raw = parse(&text, &name)?;
    raw.expand(&elsewhere);
    Ok(raw)
}

/// Returns the files that match the pattern, in the order of their names. A file named without `*` must
/// exist.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let text = pattern.to_str().ok_or("it is not UTF-8 text")?;
    let found = glob::glob(text).map_err(|error| error.to_string())?;
    let files: Vec<_> = found.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    match files.is_empty() && !text.contains(['*', '?', '[']) {
        true => Err("there is no such file".to_owned()),
        false => Ok(files),
    }
}

/// Returns the value of the environment variable `NAME`, or the first line of the file in `file:PATH`.
fn elsewhere(name: &str) -> Result<String, String> {
    match name.strip_prefix("file:") {
        Some(path) => std::fs::read_to_string(path)
            .map(|text| text.lines().next().unwrap_or_default().to_owned())
            .map_err(|error| format!("cannot read {path}: {error}")),
        None => std::env::var(name).map_err(|_| format!("the variable {name} is not set")),
    }
}

impl RawConfig {
    /// Adds an included file. Its repeated sections come after the sections that were read before. A setting
    /// that both files have is a problem, because neither value takes precedence.
    fn merge(&mut self, part: Self) {
        self.problems.extend(part.problems);
        for (name, section) in part.single {
            let into = self.single.entry(name.clone()).or_default();
            for (setting, value) in section {
                let key = super::raw::full_name(&name, &setting);
                if key == "include" {
                    let text = "an included file includes no others".to_owned();
                    self.problems.push(Problem::conflict(&value.place, text));
                } else if let Some(first) = into.get(&setting) {
                    let text = format!("{key} is also set at {}; keep one of them", first.place);
                    self.problems.push(Problem::conflict(&value.place, text));
                } else {
                    into.insert(setting, value);
                }
            }
        }
        for (name, sections) in part.repeated {
            self.repeated.entry(name).or_default().extend(sections);
        }
    }

    /// Replaces `${NAME}` and `${file:PATH}` in values by the result of `elsewhere`. Other text that begins
    /// with `$` stays. Names of variables contain only capitals, digits and `_`, and do not begin with a
    /// digit.
    fn expand(&mut self, elsewhere: &dyn Fn(&str) -> Result<String, String>) {
        let repeated = self.repeated.values_mut().flatten();
        for section in self.single.values_mut().chain(repeated) {
            for value in section.values_mut() {
                for text in &mut value.texts {
                    match expanded(text, elsewhere) {
                        Ok(new) => {
                            value.hidden |= new != *text;
                            *text = new;
                        }
                        Err(why) => self.problems.push(Problem::conflict(&value.place, why)),
                    }
                }
            }
        }
    }
}

fn expanded(
    text: &str,
    elsewhere: &dyn Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        done.push_str(before);
        let name = from[2..].split('}').next().unwrap_or_default();
        let closed = from.len() > name.len() + 2;
        if closed && (name.starts_with("file:") || is_variable(name)) {
            done.push_str(&elsewhere(name)?);
            rest = &from[name.len() + 3..];
        } else {
            done.push_str("${");
            rest = &from[2..];
        }
    }
    done.push_str(rest);
    Ok(done)
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests;
