//! Reads the paths of a source file: `use` declarations, and expressions that begin with `crate`, `super`
//! or `self`.
//!
//! This module reads tokens and does not parse the grammar. Code that is compiled only for tests
//! (`#[cfg(test)]`) is left out. The module does not see paths that are strings in attributes, and it does
//! not see method calls. In an inline module (`mod name { ... }`), `super` is resolved as if it stood in the
//! file's own module: it leads to the parent of that module.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path in the code, relative to the root of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Line in the file, from 1.
    pub(super) line: usize,
    /// Segments after `crate`; the last is `*` for a glob.
    pub(super) path: Vec<String>,
}

/// Returns the tokens of a file, without tests.
///
/// # Errors
/// Returned if the text does not consist of valid tokens.
pub(super) fn code(text: &str) -> Result<Vec<TokenTree>, String> {
    let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
    Ok(without_tests(tokens))
}

/// Removes each item, field and match arm after `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = &tokens[..];
    while let Some((first, others)) = rest.split_first() {
        if is_for_tests(rest) {
            rest = &rest[item_tokens(rest)..];
        } else {
            kept.push(first.clone());
            rest = others;
        }
    }
    kept
}

/// True if the attribute `#[cfg(test)]` or `#[cfg(all(test, ...))]` begins here.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(attribute), ..] = tokens else {
        return false;
    };
    let within = |word: &str, tokens: TokenStream| {
        let tokens: Vec<_> = tokens.into_iter().collect();
        match &tokens[..] {
            [name, TokenTree::Group(inner), ..] if is(name, word) => Some(inner.stream()),
            _ => None,
        }
    };
    let Some(condition) = within("cfg", attribute.stream()).filter(|_| is(hash, "#")) else {
        return false;
    };
    let condition = within("all", condition.clone()).unwrap_or(condition);
    condition
        .into_iter()
        .next()
        .is_some_and(|first| is(&first, "test"))
}

/// Number of tokens of the first item, field or match arm, including its attributes.
fn item_tokens(tokens: &[TokenTree]) -> usize {
    const ITEMS: [&str; 10] = [
        "fn", "impl", "struct", "enum", "trait", "mod", "use", "const", "static", "type",
    ];
    let mut is_item = false;
    for (at, token) in tokens.iter().enumerate() {
        is_item |= ITEMS.iter().any(|word| is(token, word));
        // A comma ends a field. But in an item such as `fn`, a comma only separates parameters.
        let ends = match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => is(token, ";") || is(token, ",") && !is_item,
        };
        if ends {
            return at + 1;
        }
    }
    tokens.len()
}

/// True if the token is this word or this character.
fn is(token: &TokenTree, text: &str) -> bool {
    match token {
        TokenTree::Ident(ident) => *ident == text,
        TokenTree::Punct(punct) => text.len() == 1 && text.starts_with(punct.as_char()),
        _ => false,
    }
}

/// True if `::` is at this position.
fn colons(tokens: &[TokenTree], at: usize) -> bool {
    let here = |at| tokens.get(at).is_some_and(|token| is(token, ":"));
    here(at) && here(at + 1)
}

/// The modules that the code of a file declares as separate files.
pub(super) fn modules(code: &[TokenTree]) -> Vec<String> {
    let declared = code.windows(3).filter_map(|part| match part {
        [word, TokenTree::Ident(name), end] if is(word, "mod") && is(end, ";") => Some(name),
        _ => None,
    });
    declared.map(ToString::to_string).collect()
}

/// The names that `lib.rs` makes available in the crate, each with the module that owns it. `None` if
/// `lib.rs` defines the name itself or takes it from another crate.
pub(super) fn reexports(code: &[TokenTree]) -> Vec<(String, Option<String>)> {
    const KINDS: [&str; 8] = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "union",
    ];
    let declared = modules(code);
    let mut names = Vec::new();
    for (at, token) in code.iter().enumerate() {
        if is(token, "use") {
            let mut leaves = Vec::new();
            tree(code, at + 1, &[], &mut leaves);
            for leaf in leaves {
                let outer = |segment: &&String| !matches!(segment.as_str(), "crate" | "self");
                let owner = leaf.path.iter().find(outer);
                let owner = owner.filter(|first| declared.contains(first)).cloned();
                names.push((leaf.name(), owner));
            }
        }
        let name = match &code[at..] {
            [kind, TokenTree::Ident(name), ..] if KINDS.iter().any(|word| is(kind, word)) => name,
            [kind, _, TokenTree::Ident(name), ..] if is(kind, "macro_rules") => name,
            _ => continue,
        };
        names.push((name.to_string(), None));
    }
    names
}

/// The paths of a file whose module is `module`, as segments from the root of the crate.
pub(super) fn named(code: &[TokenTree], module: &[String]) -> Vec<Named> {
    let mut leaves = Vec::new();
    paths(code, &mut leaves);
    let from_root = |leaf: Leaf| Named {
        line: leaf.line,
        path: resolved(&leaf.path, module),
    };
    leaves.into_iter().map(from_root).collect()
}

/// Collects the leaves of all paths that begin with `crate`, `super` or `self`.
fn paths(code: &[TokenTree], leaves: &mut Vec<Leaf>) {
    let mut at = 0;
    while let Some(token) = code.get(at) {
        let begins = ["crate", "super", "self"]
            .iter()
            .any(|word| is(token, word));
        if begins && colons(code, at + 1) {
            at = tree(code, at, &[], leaves);
            continue;
        }
        if let TokenTree::Group(group) = token {
            paths(&without_tests(group.stream()), leaves);
        }
        at += 1;
    }
}

/// Converts a path to a path from the root of the crate. `super` at the root has no effect.
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

/// One leaf of a tree of paths in a `use` declaration, such as `a::c` in `use a::{b, c}`.
#[derive(Debug)]
struct Leaf {
    /// Line of the leaf's last segment.
    line: usize,
    path: Vec<String>,
    alias: Option<String>,
}

impl Leaf {
    /// The name that a `use` declaration gives to the leaf.
    fn name(&self) -> String {
        let last = || self.path.iter().rfind(|segment| *segment != "self");
        let name = self.alias.as_ref().or_else(last);
        name.cloned().unwrap_or_default()
    }
}

/// Reads the path or tree of paths at this position. Returns the position after it.
fn tree(code: &[TokenTree], mut at: usize, before: &[String], leaves: &mut Vec<Leaf>) -> usize {
    let mut path = before.to_vec();
    let mut line = 0;
    while let Some(token) = code.get(at) {
        match token {
            TokenTree::Ident(segment) => path.push(segment.to_string()),
            TokenTree::Punct(_) if is(token, "*") => path.push("*".to_owned()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                list(&without_tests(group.stream()), &path, leaves);
                return at + 1;
            }
            _ => break,
        }
        line = token.span().start().line;
        at += 1;
        if !colons(code, at) {
            break;
        }
        at += 2;
    }
    let alias = match &code[at.min(code.len())..] {
        [word, TokenTree::Ident(alias), ..] if is(word, "as") => Some(alias.to_string()),
        _ => None,
    };
    at += if alias.is_some() { 2 } else { 0 };
    leaves.push(Leaf { line, path, alias });
    at
}

/// Reads the trees between braces.
fn list(code: &[TokenTree], before: &[String], leaves: &mut Vec<Leaf>) {
    let mut at = 0;
    while let Some(token) = code.get(at) {
        at = match is(token, ",") {
            true => at + 1,
            false => tree(code, at, before, leaves).max(at + 1),
        };
    }
}
