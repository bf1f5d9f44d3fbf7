//! Reads the paths of a source file: `use` declarations and expressions that begin with `crate`, `super`
//! or `self`.
//!
//! A reader of characters, not of the language. Comments, strings and what is compiled for tests alone
//! (`#[cfg(test)]`) are left out. It does not see paths in the arguments of attributes that are strings, nor
//! calls of methods; in a module written inside a file, `super` counts as the parent of the file.

/// A path that code names, from the root of the crate on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Line in the file, from 1.
    pub(super) line: usize,
    /// Segments after `crate`; the last is `*` for a glob.
    pub(super) path: Vec<String>,
}

/// The text without comments, contents of strings and tests. Lines keep their numbers.
pub(super) fn code(text: &str) -> String {
    without_tests(&without_prose(text))
}

/// Blanks comments, strings and character literals.
fn without_prose(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        let skipped = match prose(rest, before) {
            0 => {
                code.push(next);
                before = next;
                rest = &rest[next.len_utf8()..];
                continue;
            }
            bytes => bytes.min(rest.len()),
        };
        let (prose, after) = rest.split_at(skipped);
        code.push(' ');
        code.extend(prose.chars().filter(|c| *c == '\n'));
        before = ' ';
        rest = after;
    }
    code
}

/// Bytes of the comment or literal at the beginning of `rest`; 0: it begins with code.
fn prose(rest: &str, before: char) -> usize {
    let until = |end: &str, from: usize| {
        let found = rest[from..].find(end);
        found.map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until("*/", 2);
    }
    if rest.starts_with('"') {
        return string(rest);
    }
    if let Some(hashes) = raw(rest).filter(|_| !is_word(before)) {
        let quote = rest.find('"').unwrap_or(0);
        return until(&format!("\"{}", "#".repeat(hashes)), quote + 1);
    }
    let mut chars = rest.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('\''), Some('\\'), _) => until("'", 3),
        (Some('\''), Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

/// Bytes of a string, with both quotes.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'\\' if !escaped => escaped = true,
            b'"' if !escaped => return at + 1,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The number of hashes, if a raw string begins here.
fn raw(rest: &str) -> Option<usize> {
    let rest = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let hashes = rest.bytes().take_while(|b| *b == b'#').count();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// Blanks every item and field after `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = ["#[cfg(test)]", "#[cfg(all(test"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
    {
        let (before, item) = rest.split_at(at);
        kept.push_str(before);
        let (test, after) = item.split_at(item_bytes(item));
        kept.extend(test.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Bytes up to the end of the item, field or match arm at the beginning, its attributes included.
fn item_bytes(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                let Some(outer) = depth.checked_sub(1) else {
                    // The end of what the field stands in.
                    return at;
                };
                depth = outer;
                if depth == 0 && c == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && !is_item(&item[..at]) => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// True for what has a body or ends with a semicolon, so that a comma does not end it.
fn is_item(text: &str) -> bool {
    let words = [
        "fn", "impl", "struct", "enum", "trait", "mod", "use", "const", "static", "type",
    ];
    text.split_whitespace().any(|word| words.contains(&word))
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The modules that code of a file declares as files of their own.
pub(super) fn modules(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = Words::new(code);
    let mut before = "";
    while let Some(word) = words.next() {
        if before == "mod" && words.rest().trim_start().starts_with(';') {
            found.push(word.to_owned());
        }
        before = word;
    }
    found
}

/// The names that `lib.rs` gives to the crate, each with the module that owns it; `None` for what it
/// defines itself or takes from another crate.
pub(super) fn reexports(code: &str) -> Vec<(String, Option<String>)> {
    let declared = modules(code);
    let mut names = Vec::new();
    for leaf in uses(code) {
        let mut path = leaf.path.iter();
        let first = path.find(|segment| !matches!(segment.as_str(), "crate" | "self"));
        let owner = first.filter(|first| declared.contains(first));
        names.push((leaf.name(), owner.cloned()));
    }
    let mut words = Words::new(code);
    let kinds = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "union",
    ];
    let mut before = "";
    while let Some(word) = words.next() {
        if kinds.contains(&before) || before == "macro_rules" {
            names.push((word.to_owned(), None));
        }
        before = word;
    }
    names
}

/// The paths of a file whose module is `module`, as segments from the root of the crate.
pub(super) fn named(code: &str, module: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut words = Words::new(code);
    while let Some(word) = words.next() {
        let follows = words.rest().trim_start().starts_with("::");
        let begins = !words.is_after_colons();
        if !(begins && follows && matches!(word, "crate" | "super" | "self")) {
            continue;
        }
        let mut leaves = Vec::new();
        let at = words.at() - word.len();
        let end = tree(code, at, &[], &mut leaves);
        words.jump(end);
        for leaf in leaves {
            let line = 1 + code[..leaf.at].matches('\n').count();
            let path = resolved(&leaf.path, module);
            found.push(Named { line, path });
        }
    }
    found
}

/// A path from the root of the crate; `super` beyond it stays there.
fn resolved(path: &[String], module: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = module.to_vec();
    for segment in path {
        match segment.as_str() {
            "crate" => whole.clear(),
            "self" => {}
            "super" => {
                whole.pop();
            }
            _ => whole.push(segment.clone()),
        }
    }
    whole
}

/// One leaf of a tree of paths.
struct Leaf {
    /// Byte of its last segment.
    at: usize,
    path: Vec<String>,
    alias: Option<String>,
}

impl Leaf {
    /// The name that a `use` gives it.
    fn name(&self) -> String {
        let last = || self.path.iter().rfind(|segment| *segment != "self");
        let name = self.alias.as_ref().or_else(last);
        name.cloned().unwrap_or_default()
    }
}

/// The leaves of all `use` declarations.
fn uses(code: &str) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut words = Words::new(code);
    while let Some(word) = words.next() {
        if word == "use" {
            let end = tree(code, words.at(), &[], &mut leaves);
            words.jump(end);
        }
    }
    leaves
}

/// Reads the path or tree of paths at byte `at`. Returns where it ends.
fn tree(code: &str, mut at: usize, before: &[String], leaves: &mut Vec<Leaf>) -> usize {
    let mut path = before.to_vec();
    let mut last = at;
    loop {
        at += blank(&code[at..]);
        let rest = &code[at..];
        if rest.starts_with('{') {
            return list(code, at + 1, &path, leaves);
        }
        let length = match rest.starts_with('*') {
            true => 1,
            false => rest.bytes().take_while(|b| is_word(*b as char)).count(),
        };
        if length == 0 {
            break;
        }
        path.push(rest[..length].to_owned());
        last = at;
        at += length;
        let gap = blank(&code[at..]);
        if !code[at + gap..].starts_with("::") {
            break;
        }
        at += gap + 2;
    }
    let mut words = Words::new(&code[at..]);
    let alias = match words.next() {
        Some("as") if code[at..].trim_start().starts_with("as ") => words.next(),
        _ => None,
    };
    if alias.is_some() {
        at += words.at();
    }
    leaves.push(Leaf {
        at: last,
        path,
        alias: alias.map(str::to_owned),
    });
    at
}

/// Reads the trees in braces from byte `at` on. Returns where they end.
fn list(code: &str, mut at: usize, before: &[String], leaves: &mut Vec<Leaf>) -> usize {
    loop {
        at += blank(&code[at..]);
        match code[at..].chars().next() {
            Some(',') => at += 1,
            Some('}') => return at + 1,
            Some(c) if is_word(c) || c == '*' || c == '{' => at = tree(code, at, before, leaves),
            _ => return at,
        }
    }
}

/// Bytes of white space at the beginning.
fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The words of a text, one after the other.
struct Words<'a> {
    text: &'a str,
    at: usize,
    colons: bool,
}

impl<'a> Words<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            colons: false,
        }
    }

    /// The byte after the word that was given last.
    const fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// True if the word that was given last follows a `::`, and so goes on with a path.
    const fn is_after_colons(&self) -> bool {
        self.colons
    }

    fn jump(&mut self, at: usize) {
        self.at = at.max(self.at);
    }

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let from = rest.find(is_word)?;
        self.colons = rest[..from].trim_end().ends_with("::");
        let word = &rest[from..];
        let length = word.find(|c| !is_word(c)).unwrap_or(word.len());
        self.at += from + length;
        Some(&word[..length])
    }
}
