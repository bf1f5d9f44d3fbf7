//! Writes `docs/config.md` from the table of settings.

use std::fmt::Write;

use super::sections::SECTIONS;
use super::table::{REPEATED, SETTINGS, Setting};

const INTRODUCTION: &str = "# Configuration reference

This page is generated from the table of settings in the code (`cargo xtask generate`).

Foxy needs no configuration: `foxy` alone is a caching forward proxy on 127.0.0.1:3128. `foxy --config FILE`
reads a configuration file in TOML. `foxy check --config FILE` checks the file, reports all mistakes
with their lines, and prints what Foxy would do. Flags of the command line (`foxy --help`) take
precedence over the file.

Every setting can also be given by an environment variable. Such a variable takes precedence over the
file, and a flag over the variable. `FOXY__MEMORY=1GiB` is a setting of the top level,
`FOXY__CACHE__MAX_SIZE=1GiB` a setting of `[cache]`, and `FOXY__SITE__1__ORIGIN=http://app:8000` a
setting of the first site. Lists are written as in the file:
`FOXY__LISTEN='[\"*:3128\", \"*:8080\"]'`. In a file, `${NAME}` stands for the value of an environment
variable, and `${file:PATH}` for the first line of the file PATH.

Sizes are written `4096`, `64MB` (powers of ten) or `8GiB` (powers of two). Durations are written
`250ms`, `5s`, `10m`, `2h` or `7d`. A list of one entry may be written without brackets.
";

/// Returns the text of `docs/config.md`.
#[must_use]
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (section, about) in SECTIONS {
        let title = match *section {
            "" => "Top level".to_owned(),
            name if REPEATED.contains(&name) => format!("`[[{name}]]`"),
            name => format!("`[{name}]`"),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {title}\n\n{about}\n");
        for setting in SETTINGS
            .iter()
            .filter(|setting| setting.section == *section)
        {
            let _ = write!(text, "\n### {}\n\n{}\n\n", setting.name, setting.about);
            let _ = write!(text, "Allowed: {}.\n\n", setting.kind.allowed());
            let _ = writeln!(text, "Default: {}.", default_text(setting));
        }
    }
    text
}

fn default_text(setting: &Setting) -> String {
    match setting.default.as_deref() {
        None => setting.otherwise.to_owned(),
        Some("") => "an empty list".to_owned(),
        Some(text) if setting.kind.is_list() => {
            let entries: Vec<_> = text
                .split_whitespace()
                .map(|entry| format!("\"{entry}\""))
                .collect();
            format!("`[{}]`", entries.join(", "))
        }
        Some(text) => format!("`{text}`"),
    }
}
