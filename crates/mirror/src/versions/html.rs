//! The simple index of Python packages in HTML. Links of blocked files are removed. This form has
//! no dates, so the age of all other files is unknown.

use std::ops::Range;

use super::edits::{Body, Edits};
use super::{Screening, TOO_MANY, Unreadable, Verdict, json, paths, pypi};
use crate::html::href;

/// Number of bytes after an opening tag in which the closing tag is searched for.
const TEXT_MAX: usize = 16 << 10;

/// Escapes a text for use in an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

pub(super) fn screen(screening: &mut Screening<'_>, text: String) -> Result<Body, Unreadable> {
    let mut edits = Edits::default();
    let mut at = 0;
    while let Some(tag) = next_link(&text, at) {
        at = tag.end;
        let Some((start, end)) = href(text[tag.clone()].as_bytes()) else {
            continue;
        };
        let url = &text[tag.start + start..tag.start + end];
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let verdicts: Vec<_> = paths::of_file(url.as_bytes())
            .iter()
            .map(|(package, version)| screening.judge(package, version, None))
            .filter(|verdict| *verdict != Verdict::Shown)
            .collect();
        if verdicts.contains(&Verdict::Blocked) {
            edits.remove(element(&text, &tag));
        } else if !verdicts.is_empty() {
            // A link that is already yanked then has this attribute twice. Only the first attribute counts,
            // and the link stays yanked.
            let place = tag.start + 2;
            edits.replace(place..place, format!(" data-yanked=\"{}\"", pypi::UNDATED));
        }
        if edits.count() > json::MOST {
            return Err(TOO_MANY);
        }
        at = at.max(element(&text, &tag).end);
    }
    Ok(Body::new(text, edits))
}

/// Returns the next opening tag of a link at or after `at`.
fn next_link(text: &str, mut at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    loop {
        let start = at + memchr::memchr(b'<', bytes.get(at..)?)?;
        at = start + 1;
        if !matches!(bytes.get(at), Some(b'a' | b'A'))
            || !bytes.get(at + 1).is_some_and(u8::is_ascii_whitespace)
        {
            continue;
        }
        let mut quote = None;
        for (place, byte) in bytes.iter().enumerate().skip(at) {
            match (quote, *byte) {
                (Some(open), byte) if open == byte => quote = None,
                (None, b'"' | b'\'') => quote = Some(*byte),
                (None, b'>') => return Some(start..place + 1),
                _ => {}
            }
        }
        return None;
    }
}

/// Returns the range of the complete element that begins with this opening tag.
fn element(text: &str, tag: &Range<usize>) -> Range<usize> {
    let rest = &text.as_bytes()[tag.end..];
    let rest = &rest[..rest.len().min(TEXT_MAX)];
    let end = rest
        .windows(4)
        .position(|part| part.eq_ignore_ascii_case(b"</a>"));
    tag.start..end.map_or(tag.end, |end| tag.end + end + 4)
}
