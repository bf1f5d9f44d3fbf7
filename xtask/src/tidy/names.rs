//! The house rule about names: the names in the guides for operators must exist in the code.

use foxy::config::{SETTINGS, Setting};

use crate::report::Outcome;
use crate::workspace::Source;

/// The documents that are checked.
const GUIDES: [&str; 3] = ["docs/operating.md", "README.md", "SECURITY.md"];
/// Crates of the code that must contain the names.
const PRODUCT: [&str; 6] = ["foxy", "proxy", "store", "http-rules", "disk", "tls"];
/// Beginning of the paths of the files that define metrics.
const METRICS: &str = "crates/foxy/src/admin/metrics/";
const EVENTS: &str = "crates/proxy/src/state/counters/";

/// Checks that the code contains every name that a guide uses: metrics, settings, options, and the words in
/// logs and statistics.
pub(super) fn guides(files: &[Source]) -> Outcome {
    let mut outcome = Outcome::default();
    let code = Code::of(files);
    for guide in files.iter().filter(|f| GUIDES.contains(&&f.path[..])) {
        let metrics = metrics(&guide.text);
        let metrics = metrics.into_iter().filter(|name| !code.has_crate(name));
        for name in metrics {
            outcome.note(said(guide, name, code.has_metric(name), "metric"));
        }
        for span in spans(&guide.text) {
            if let Some((section, name)) = setting(span)
                && SETTINGS.iter().any(|setting| setting.section == section)
            {
                let is_one = |row: &Setting| row.section == section && row.name == name;
                outcome.note(said(guide, span, SETTINGS.iter().any(is_one), "setting"));
            } else if let Some(word) = word(span) {
                outcome.note(said(
                    guide,
                    span,
                    code.has_word(word),
                    "name in the product",
                ));
            }
        }
    }
    outcome
}

/// Checks that each word is in the glossary only once.
pub(super) fn glossary(file: &Source) -> Vec<String> {
    if file.path != "docs/glossary.md" {
        return Vec::new();
    }
    let mut words: Vec<&str> = file.text.lines().filter_map(first_cell).collect();
    words.sort_unstable();
    let twice = words.windows(2).filter(|pair| pair[0] == pair[1]);
    twice
        .map(|pair| format!("`{}` stands there twice; give it one meaning", pair[0]))
        .collect()
}

/// The word in the first cell of a row of the glossary, without an addition in brackets: `share` for `share
/// (of a store)`.
fn first_cell(line: &str) -> Option<&str> {
    let cell = line.strip_prefix("| ")?.split(" |").next()?;
    let word = cell.split(" (").next()?.trim();
    (word != "word").then_some(word)
}

fn said(guide: &Source, name: &str, exists: bool, kind: &str) -> Result<(), String> {
    match exists {
        true => Ok(()),
        false => Err(format!(
            "{}: `{name}` is no {kind}; correct the name, or take it out",
            guide.path
        )),
    }
}

/// The sources that must contain the names.
struct Code<'a> {
    metrics: String,
    events: String,
    product: Vec<&'a Source>,
    files: &'a [Source],
}

impl<'a> Code<'a> {
    fn of(files: &'a [Source]) -> Self {
        let text = |path: &str| -> String {
            let found = files.iter().filter(|file| file.path.starts_with(path));
            found.map(|file| &file.text[..]).collect()
        };
        let of_product = |file: &&Source| {
            let folder = |name: &str| file.path.starts_with(&format!("crates/{name}/src/"));
            PRODUCT.into_iter().any(folder)
        };
        Self {
            metrics: text(METRICS),
            events: text(EVENTS),
            product: files.iter().filter(of_product).collect(),
            files,
        }
    }

    /// True if this is the name of a crate as it is written in the variable `FOXY_LOG`, such as `foxy_http1`.
    fn has_crate(&self, name: &str) -> bool {
        let folder = format!(
            "crates/{}/",
            name.trim_start_matches("foxy_").replace('_', "-")
        );
        self.files.iter().any(|file| file.path.starts_with(&folder))
    }

    /// True if the code contains the complete name, or a word from which the name is made: `foxy_WORD`, for
    /// events `foxy_WORD_total`.
    fn has_metric(&self, name: &str) -> bool {
        let base = ["_bucket", "_sum", "_count"];
        let base = base.iter().find_map(|end| name.strip_suffix(end));
        let whole = |name: &str| self.metrics.contains(&format!("\"{name}\""));
        if whole(name) || base.is_some_and(whole) {
            return true;
        }
        let Some(word) = name.strip_prefix("foxy_") else {
            return false;
        };
        match word.strip_suffix("_total") {
            Some(event) => {
                self.events.contains(&format!(" = \"{event}\","))
                    || self.metrics.contains(&format!(" => \"{event}\","))
            }
            None => whole(word),
        }
    }

    fn has_word(&self, word: &str) -> bool {
        let name = word.replace('-', "_");
        let inside = |text: &str| text.contains(word) || text.contains(&name);
        self.product.iter().any(|file| inside(&file.text))
    }
}

/// The words that begin like the names of metrics. Words in code blocks are included.
pub(super) fn metrics(text: &str) -> Vec<&str> {
    let outside = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    text.split(outside)
        .filter(|word| word.starts_with("foxy_") || word.starts_with("process_"))
        .collect()
}

/// Texts between backticks, without code blocks.
fn spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// Parses the name of a setting, such as `log.level`: section and name. A value may follow.
fn setting(span: &str) -> Option<(&str, &str)> {
    let (section, rest) = span.split_once('.')?;
    let name = rest.split(' ').next()?;
    (is_name(section) && is_name(name)).then_some((section, name))
}

/// Returns the text without leading dashes if it is a word that contains `_` or `-`, for instance an option,
/// an outcome or a reason.
fn word(span: &str) -> Option<&str> {
    let word = span.trim_start_matches('-');
    let metric = word.starts_with("foxy_") || word.starts_with("process_");
    let joined = word.contains(['_', '-']) && !word.ends_with(['_', '-']);
    (joined && !metric && is_name(word) && !word.starts_with("foxy-")).then_some(word)
}

fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(letter)
}
