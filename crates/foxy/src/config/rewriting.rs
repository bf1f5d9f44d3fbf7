//! Changes to the messages of a site: rewriting of fields and paths, redirects, and compression.

use std::fmt::Write;
use std::sync::Arc;

use foxy_http1::Escapes;
use foxy_proxy::Compress;
use foxy_proxy::rules::coding::Coding;
use foxy_proxy::rules::rewrite::{Direction, FieldRules, PathRules, Redirects, Rewriting};

use super::kind::Value;
use super::values::Values;

/// The part of a message that a rule changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteTarget {
    /// Fields of requests.
    Requests,
    /// Fields of answers.
    Answers,
    /// Paths at the origin.
    Paths,
    /// Redirects.
    Redirects,
}

impl RewriteTarget {
    /// Returns a description of the allowed values, for messages and the reference (`docs/config.md`).
    pub(super) const fn allowed(self) -> &'static str {
        match self {
            Self::Requests | Self::Answers => {
                "a list of `set NAME: VALUE`, `add NAME: VALUE`, `remove NAME` and `rename OLD NEW`"
            }
            Self::Paths => "a list of `prefix FROM TO` and `regex EXPRESSION TO`",
            Self::Redirects => {
                "a list of `STATUS prefix FROM TO` and `STATUS regex EXPRESSION TO`, with a status of 301, 302, 303, 307 or 308"
            }
        }
    }

    /// Checks the entries.
    ///
    /// # Errors
    /// Returns the first wrong entry and its mistake, as text.
    pub(super) fn check(self, entries: &[String]) -> Result<(), String> {
        match self {
            Self::Requests => FieldRules::parse(entries, Direction::Request).map(drop),
            Self::Answers => FieldRules::parse(entries, Direction::Answer).map(drop),
            Self::Paths => PathRules::parse(entries).map(drop),
            Self::Redirects => Redirects::parse(entries).map(drop),
        }?;
        match self {
            Self::Requests | Self::Answers => Ok(()),
            Self::Paths | Self::Redirects => entries.iter().try_for_each(|entry| normal(entry)),
        }
    }
}

/// Refuses a rule if its prefix is not in the normal form of paths, because no request path could begin with
/// it.
fn normal(entry: &str) -> Result<(), String> {
    let mut words = entry.split_ascii_whitespace();
    let prefix = words
        .find(|word| *word == "prefix")
        .and_then(|_| words.next());
    let Some(prefix) = prefix else { return Ok(()) };
    let mut normal = Vec::new();
    Escapes::Normal.write(prefix.as_bytes(), &mut normal);
    match normal == prefix.as_bytes() {
        true => Ok(()),
        false => Err(format!(
            "`{entry}`: paths are compared in their normal form; write {}",
            String::from_utf8_lossy(&normal)
        )),
    }
}

/// Returns the rewriting rules of a site; `None` if there are none. The entries were checked when the values
/// of the settings were read.
pub(super) fn read(values: &Values<'_>) -> Option<Arc<Rewriting>> {
    let texts = |name: &str| match values.given(name) {
        Some(Value::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let fields = |name, direction| FieldRules::parse(&texts(name), direction).unwrap_or_default();
    let rewriting = Rewriting {
        requests: fields("request_headers", Direction::Request),
        answers: fields("response_headers", Direction::Answer),
        paths: PathRules::parse(&texts("rewrite")).unwrap_or_default(),
        redirects: Redirects::parse(&texts("redirects")).unwrap_or_default(),
    };
    (!rewriting.is_empty()).then(|| Arc::new(rewriting))
}

/// Returns the compression settings of a site; `None` if nothing is compressed.
pub(super) fn compress(values: &mut Values<'_>) -> Option<Arc<Compress>> {
    let names = values.texts("compress");
    let codings: Vec<_> = names.iter().filter_map(|name| Coding::of(name)).collect();
    let bytes_min = values.size("compress_min_size");
    (!codings.is_empty()).then(|| Arc::new(Compress { codings, bytes_min }))
}

/// Returns the lines for `foxy check`.
pub(super) fn lines(rewriting: Option<&Rewriting>, compress: Option<&Compress>) -> String {
    let mut text = String::new();
    if let Some(compress) = compress {
        let names: Vec<_> = compress
            .codings
            .iter()
            .map(|coding| coding.name())
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "               compresses by {}", names.join(", "));
    }
    let Some(rewriting) = rewriting else {
        return text;
    };
    for (is, words) in [
        (!rewriting.requests.is_empty(), "changes fields of requests"),
        (!rewriting.answers.is_empty(), "changes fields of answers"),
        (!rewriting.paths.is_empty(), "rewrites paths for the origin"),
        (!rewriting.redirects.is_empty(), "redirects some URLs"),
    ] {
        if is {
            let _ = writeln!(text, "               {words}");
        }
    }
    text
}
