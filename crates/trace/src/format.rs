//! The log formats that can be read, and their detection from the first lines of a log.

use std::fmt;
use std::str::FromStr;

use crate::read;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Squid's native `access.log`.
    Squid,
    /// Apache common or combined log format.
    Apache,
    /// Netscape-Extended2 proxy log.
    Netscape2,
    /// The DEC proxy trace, as text columns.
    DecText,
    /// The DEC proxy trace, binary (8 KiB header, records of 60 bytes).
    DecBinary,
    /// The text form of the cache simulator webcachesim. The columns are sequence number, object id and size.
    /// The trace BU-98 has this form.
    Webcachesim,
    /// Tab-separated columns, named by a header line (the NASA files).
    Tsv,
    /// W3C extended log format. The line `#Fields:` names the columns.
    W3c,
    /// One JSON object a line (see [`crate::FieldMap`]).
    Json,
    /// Foxy's own compact binary form.
    Foxy,
}

const ALL: [(Format, &str); 10] = [
    (Format::Foxy, "foxy"),
    (Format::Squid, "squid"),
    (Format::Apache, "apache"),
    (Format::Netscape2, "netscape2"),
    (Format::DecText, "dec-text"),
    (Format::DecBinary, "dec"),
    (Format::Webcachesim, "webcachesim"),
    (Format::Tsv, "tsv"),
    (Format::W3c, "w3c"),
    (Format::Json, "json"),
];

impl Format {
    /// The names of all formats, for messages.
    #[must_use]
    pub fn names() -> String {
        ALL.map(|(_, name)| name).join(", ")
    }

    /// Detects the format from the first bytes of a (decompressed) file; `None` if no format fits. A text
    /// format fits if more than half of the complete lines in `start` can be parsed.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<Self> {
        if start.starts_with(crate::compact::MAGIC) {
            return Some(Self::Foxy);
        }
        if read::dec::looks_binary(start) {
            return Some(Self::DecBinary);
        }
        if has_fields_line(start) {
            return Some(Self::W3c);
        }
        let lines: Vec<&[u8]> = whole_lines(start).take(32).collect();
        let score = |format: Self| {
            let mut parser = read::line_parser(format)?;
            let good = lines.iter().filter(|l| parser.parse(l).is_ok()).count();
            (good * 2 > lines.len()).then_some(good)
        };
        let text = [
            Self::Tsv,
            Self::Squid,
            Self::Netscape2,
            Self::Apache,
            Self::DecText,
            Self::Webcachesim,
            Self::Json,
        ];
        let mut best = None;
        for format in text {
            if let Some(good) = score(format)
                && best.is_none_or(|(_, most)| good > most)
            {
                best = Some((format, good));
            }
        }
        best.map(|(format, _)| format)
    }
}

/// True if a line names the columns of W3C's extended format.
fn has_fields_line(start: &[u8]) -> bool {
    let mut lines = start.split(|b| *b == b'\n').take(32);
    lines.any(|line| line.starts_with(read::w3c::FIELDS))
}

/// The complete lines in `start`; all of `start` if it contains no line end.
fn whole_lines(start: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = start
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap_or(start.len());
    start[..end]
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ALL.iter().find(|(format, _)| format == self);
        f.write_str(name.map_or("?", |(_, name)| name))
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ALL.iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text))
            .map(|(format, _)| *format)
            .ok_or_else(|| format!("unknown format `{text}`; known: {}", Self::names()))
    }
}
