//! The house rules about single text files.

use crate::workspace::Source;

/// Greatest number of lines of a source file without its tests.
const CODE_LINES_MAX: usize = 500;
/// Greatest number of lines of a source file with its tests.
const LINES_MAX: usize = 1000;
/// Greatest number of lines of a scenario, which should be easy to read.
const SCENARIO_LINES_MAX: usize = 60;

/// Number of lines before a file's own test module, or of all lines if there is no such module.
fn code_lines(text: &str) -> usize {
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, next)| next);
        if line == "#[cfg(test)]" && next.starts_with("mod tests {") {
            return number;
        }
    }
    text.lines().count()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/tests_")
}

/// A file may have 500 lines of code, or 1000 with tests.
pub(super) fn length(file: &Source) -> Vec<String> {
    if !file.is("rs") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let (code, all) = (code_lines(&file.text), file.text.lines().count());
    if code > CODE_LINES_MAX && !is_test(&file.path) {
        complaints.push(format!(
            "{code} lines of code, {CODE_LINES_MAX} are allowed; split it by idea, one promise per file"
        ));
    }
    if all > LINES_MAX {
        complaints.push(format!(
            "{all} lines, {LINES_MAX} are allowed; move tests to a folder and split them by subject"
        ));
    }
    complaints
}

/// A Rust file must begin with a comment that states its purpose.
pub(super) fn headline(file: &Source) -> Vec<String> {
    if !file.is("rs") || file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec!["begins without `//! ...`; say in a line or two what this file promises".to_owned()]
}

/// A file must not contain marks of unfinished work.
pub(super) fn leftovers(file: &Source) -> Vec<String> {
    if file.path.starts_with("xtask/src/tidy/")
        || !(file.is("rs") || file.is("md") || file.is("toml"))
    {
        return Vec::new(); // these files contain the words on purpose
    }
    let words = [
        "TODO",
        "FIXME",
        "XXX",
        "todo!(",
        "dbg!(",
        "unimplemented!(",
        "#[ignore",
    ];
    complain(file, &words, |word| {
        format!(
            "`{word}`: finish it now, or leave it out and write down what is missing where users look"
        )
    })
}

/// A file must not contain paths of the machine on which it was written.
pub(super) fn machine_paths(file: &Source) -> Vec<String> {
    if file.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    complain(file, &["/home/", "/root/", "/Users/"], |path| {
        format!(
            "`{path}`: a path of some machine; use a relative path, a temporary folder or a parameter"
        )
    })
}

/// Time must come from the clock that tests can set.
pub(super) fn clocks(file: &Source) -> Vec<String> {
    let tokio_timers =
        file.text.contains("use tokio::time::") || file.text.contains("tokio::time::Instant");
    let exempt = file.path.starts_with("crates/base/") || file.path.starts_with("xtask/src/tidy/");
    if !file.is("rs") || exempt || tokio_timers {
        return Vec::new();
    }
    complain(file, &["Instant::now(", "SystemTime::now("], |call| {
        format!("`{call})`: take the time from foxy_base::Clock, so that tests can set it")
    })
}

/// An attribute that switches off a lint must have a reason.
pub(super) fn reasons_for_exceptions(file: &Source) -> Vec<String> {
    if !file.is("rs") || file.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut complaints = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        let opens = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
        if !opens.iter().any(|open| line.starts_with(open)) {
            continue;
        }
        let whole: Vec<&str> = until_closed(&lines[i..]);
        if !whole.join(" ").contains("reason = ") {
            complaints.push(format!(
                "line {}: a lint is switched off without `reason = \"...\"`",
                i + 1
            ));
        }
    }
    complaints
}

/// The lines of an attribute.
fn until_closed<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let end = lines
        .iter()
        .position(|line| line.trim_end().ends_with(")]"));
    lines[..end.map_or(lines.len(), |end| end + 1)].to_vec()
}

/// Rust files must have no tabs; no line may end with blanks; the last line must end with a newline.
pub(super) fn white_space(file: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            complaints.push(format!("line {}: white space at the end", i + 1));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        complaints.push("no newline at the end".to_owned());
    }
    complaints
}

/// A scenario must be short, so that a reader can understand it as a whole.
pub(super) fn scenario_length(file: &Source) -> Vec<String> {
    let lines = file.text.lines().count();
    if !file.path.starts_with("scenarios/tests/it/")
        || file.path.ends_with("main.rs")
        || lines <= SCENARIO_LINES_MAX
    {
        return Vec::new();
    }
    vec![format!(
        "{lines} lines; a scenario has at most {SCENARIO_LINES_MAX}: move mechanics to the harness in scenarios/src"
    )]
}

fn complain(file: &Source, needles: &[&str], message: impl Fn(&str) -> String) -> Vec<String> {
    let mut complaints = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        for needle in needles {
            if line.contains(needle) {
                complaints.push(format!("line {}: {}", i + 1, message(needle)));
            }
        }
    }
    complaints
}
