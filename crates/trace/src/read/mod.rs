//! One small parser per log format. Each parser turns a line into a [`Request`], skips lines that are not a
//! request (`Ok(None)`), or returns a short text that explains why the line is bad.

mod apache;
mod date;
pub(crate) mod dec;
pub(crate) mod json;
mod netscape;
mod squid;
mod tsv;
mod url;
pub(crate) mod w3c;
mod webcachesim;
mod words;

use crate::{Format, Request};

/// The reason why a line could not be parsed.
pub(crate) type Bad = &'static str;

/// The parser of one text format, with its state between lines.
#[derive(Debug)]
pub(crate) enum LineParser {
    Squid,
    Apache,
    Netscape2,
    DecText,
    Webcachesim,
    Tsv(tsv::Columns),
    W3c(w3c::Columns),
    Json(json::FieldMap),
}

impl LineParser {
    /// Parses one line without its line end.
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Bad> {
        match self {
            Self::Squid => squid::parse(line).map(Some),
            Self::Apache => apache::parse(line).map(Some),
            Self::Netscape2 => netscape::parse(line),
            Self::DecText => dec::parse_text(line),
            Self::Webcachesim => webcachesim::parse(line).map(Some),
            Self::Tsv(columns) => columns.parse(line),
            Self::W3c(columns) => columns.parse(line).map(Some),
            Self::Json(fields) => json::parse(fields, line).map(Some),
        }
    }

    /// Handles a line that begins with `#`; such a line is no request.
    pub(crate) fn comment(&mut self, line: &[u8]) {
        if let Self::W3c(columns) = self {
            columns.comment(line);
        }
    }

    /// The URL in a line that was parsed successfully.
    pub(crate) fn url<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        match self {
            Self::Squid => squid::url(line),
            Self::Apache => apache::url(line),
            Self::Netscape2 => netscape::url(line),
            Self::Tsv(columns) => columns.url(line),
            // Lines of these formats do not contain the complete URL in the form that was sent.
            Self::DecText | Self::Webcachesim | Self::W3c(_) | Self::Json(_) => None,
        }
    }
}

/// Creates a parser; `None` for formats that do not consist of lines.
pub(crate) fn line_parser(format: Format) -> Option<LineParser> {
    Some(match format {
        Format::Squid => LineParser::Squid,
        Format::Apache => LineParser::Apache,
        Format::Netscape2 => LineParser::Netscape2,
        Format::DecText => LineParser::DecText,
        Format::Webcachesim => LineParser::Webcachesim,
        Format::Tsv => LineParser::Tsv(tsv::Columns::default()),
        Format::W3c => LineParser::W3c(w3c::Columns::default()),
        Format::Json => LineParser::Json(json::FieldMap::default()),
        Format::DecBinary | Format::Foxy => return None,
    })
}
