//! Limits for the number of methods and fields of the product's types. The list [`LARGE`] contains the types
//! that exceed the limits, with their current numbers. These numbers may only decrease.

use std::collections::BTreeMap;

use crate::arrows;
use crate::report::Outcome;
use crate::workspace::Source;

/// Greatest number of methods of one type in all its own `impl` blocks.
const METHODS_MAX: usize = 40;
/// Greatest number of fields of a type that has more than [`FEW`] methods. Types with fewer methods count as
/// plain data and have no limit.
const FIELDS_MAX: usize = 15;
const FEW: usize = 10;

/// Types that exceed the limits: crate, name, methods, fields.
const LARGE: &[(&str, &str, usize, usize)] = &[
    ("disk", "State", 17, 18),
    ("foxy", "Config", 15, 19),
    ("http1", "Facts", 11, 17),
    ("store", "Object", 23, 17),
];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    methods: usize,
    fields: usize,
}

impl Size {
    const fn is_large(self) -> bool {
        self.methods > METHODS_MAX || self.fields > FIELDS_MAX && self.methods > FEW
    }
}

/// Compares the sizes of types with the limits.
pub(super) fn sizes(files: &[Source]) -> Outcome {
    judge(&count(files), LARGE)
}

fn judge(
    found: &BTreeMap<(String, String), Size>,
    large: &[(&str, &str, usize, usize)],
) -> Outcome {
    let mut outcome = Outcome::default();
    for ((part, name), size) in found {
        let listed = large
            .iter()
            .find(|known| known.0 == part && known.1 == name);
        let known = listed.map(|&(_, _, methods, fields)| Size { methods, fields });
        let Size { methods, fields } = *size;
        outcome.note(match known {
            None if size.is_large() => Err(format!(
                "crates/{part}: {name} has {methods} methods and {fields} fields, at most {METHODS_MAX} and {FIELDS_MAX} are wanted; \
                 split it into parts that own their fields"
            )),
            Some(known) if known != *size => Err(format!(
                "crates/{part}: {name} has {methods} methods and {fields} fields, and the list in xtask/src/tidy/types.rs says \
                 {} and {}: make it smaller, and lower the numbers",
                known.methods, known.fields
            )),
            _ => Ok(()),
        });
    }
    for (part, name, ..) in large {
        let size = found.get(&((*part).to_owned(), (*name).to_owned()));
        outcome.note(match size {
            Some(size) if size.is_large() => Ok(()),
            _ => Err(format!(
                "xtask/src/tidy/types.rs: {name} of crates/{part} is not large any more; take it out of the list"
            )),
        });
    }
    outcome
}

/// Returns the size of each type, by crate and name. The function relies on rustfmt: a field or method is
/// indented by four spaces.
fn count(files: &[Source]) -> BTreeMap<(String, String), Size> {
    let mut found: BTreeMap<(String, String), Size> = BTreeMap::new();
    for file in files {
        let Some((part, rest)) = file
            .path
            .strip_prefix("crates/")
            .and_then(|p| p.split_once('/'))
        else {
            continue;
        };
        if !arrows::is_product(part) || !rest.starts_with("src/") || rest.contains("/tests") {
            continue;
        }
        let mut within = None;
        for line in file.text.lines() {
            if line.starts_with('}') {
                within = None;
            } else if let Some(name) = name_of(line, "struct ") {
                within = Some((name, true));
            } else if let Some(name) = block_of(line) {
                within = Some((name, false));
            } else if let Some((name, of_fields)) = within {
                let size = || (part.to_owned(), name.to_owned());
                match of_fields {
                    true if is_field(line) => found.entry(size()).or_default().fields += 1,
                    false if is_method(line) => found.entry(size()).or_default().methods += 1,
                    _ => {}
                }
            }
        }
    }
    found
}

fn name_of<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    if !line.ends_with('{') {
        return None;
    }
    let rest = after_visibility(line).strip_prefix(word)?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

/// The name of the type in a line such as `impl Type {`; `None` if the line implements a trait.
fn block_of(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if line.contains(" for ") || !line.ends_with('{') {
        return None;
    }
    if rest.starts_with('<') {
        // Skips the type parameters: `<T: Into<Vec<u8>>>` in `impl<T: Into<Vec<u8>>> Type<T> {`.
        let mut depth = 0_usize;
        let end = rest.find(|c| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let name = rest.trim_start();
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

fn after_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let rest = match rest.starts_with('(') {
        true => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        false => rest,
    };
    rest.trim_start()
}

fn is_field(line: &str) -> bool {
    let Some(inner) = line
        .strip_prefix("    ")
        .filter(|l| !l.starts_with([' ', '/', '#']))
    else {
        return false;
    };
    let inner = after_visibility(inner);
    inner
        .split_once(": ")
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

fn is_method(line: &str) -> bool {
    let Some(inner) = line
        .strip_prefix("    ")
        .filter(|l| !l.starts_with([' ', '/']))
    else {
        return false;
    };
    let mut inner = after_visibility(inner);
    for word in ["const ", "async ", "unsafe "] {
        inner = inner.strip_prefix(word).unwrap_or(inner);
    }
    inner.starts_with("fn ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes_of(text: &str) -> BTreeMap<(String, String), Size> {
        count(&[Source {
            path: "crates/store/src/a.rs".into(),
            text: text.into(),
        }])
    }

    #[test]
    fn fields_and_methods_are_counted_over_all_blocks() {
        let found = sizes_of(
            "pub(crate) struct A<T> {\n    /// Not: a field.\n    pub(crate) one: T,\n    two: Vec<u8>,\n}\n\n\
             impl<T: Into<Vec<u8>>> A<T> {\n    pub(crate) const fn a() {\n        fn inner() {}\n    }\n}\n\n\
             impl A<u8> {\n    async fn b() {}\n}\n\nimpl Drop for A<u8> {\n    fn drop(&mut self) {}\n}\n",
        );
        let size = found[&("store".to_owned(), "A".to_owned())];
        assert_eq!((size.methods, size.fields, found.len()), (2, 2, 1));
    }

    #[test]
    fn the_list_is_exact_and_only_for_large_ones() {
        let of = |methods: usize| {
            sizes_of(&format!(
                "impl A {{\n{}}}\n",
                "    fn a() {}\n".repeat(methods)
            ))
        };
        let complaints = |methods, list: &[_]| judge(&of(methods), list).complaints.len();
        assert_eq!(complaints(METHODS_MAX, &[]), 0);
        assert_eq!(complaints(METHODS_MAX + 1, &[]), 1);
        let listed = [("store", "A", METHODS_MAX + 2, 0)];
        assert_eq!(complaints(METHODS_MAX + 2, &listed), 0);
        assert_eq!(complaints(METHODS_MAX + 3, &listed), 1, "it grew");
        assert_eq!(
            complaints(METHODS_MAX + 1, &listed),
            1,
            "the list has to shrink too"
        );
        assert_eq!(complaints(3, &[("store", "A", 3, 0)]), 1, "it is not large");
        assert_eq!(complaints(0, &listed), 1, "it is gone");
    }
}
