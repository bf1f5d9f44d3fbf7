//! `docs/config.md`, written from the table.

use std::fmt::Write;

use super::sections::SECTIONS;
use super::table::{REPEATED, SETTINGS, Setting};

const INTRODUCTION: &str = "# Configuration reference

This page is generated from the table of settings in the code (`cargo xtask generate`).

Foxy needs no configuration: `foxy` alone is a caching forward proxy on 127.0.0.1:3128. A file is
given by `foxy --config FILE` and is TOML. `foxy check --config FILE` reads it, reports every
mistake at once with its line, and prints what would be done. Flags of the command line
(`foxy --help`) replace what the file says.

Every setting can also be given by a variable of the environment, which replaces what the file says
and is replaced by a flag: `FOXY__MEMORY=1GiB`, `FOXY__CACHE__OBJECT_MAX=1GiB` for a setting of
`[cache]`, `FOXY__SITE__1__ORIGIN=http://app:8000` for one of the first site, lists as in the file:
`FOXY__LISTEN='[\"*:3128\", \"*:8080\"]'`. In a file, `${NAME}` stands for a variable and
`${file:PATH}` for the first line of a file.

Sizes are written `4096`, `64MB` (powers of ten) or `8GiB` (powers of two), durations `250ms`, `5s`,
`10m`, `2h` or `7d`. A list of one entry may be written without brackets.
";

/// The whole document.
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
