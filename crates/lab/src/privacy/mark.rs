//! Marks. The origin puts a mark into every part of an answer. The mark names the request for which the part
//! was made.

use std::collections::BTreeSet;
use std::fmt;

use crate::kit::{Answer, Head};

/// The field that contains the mark of a head.
pub(super) const FIELD: &str = "X-Made-For";
/// The user name in the mark if the request names no user.
pub(super) const ANYBODY: &str = "anybody";
/// Length of a line in bytes. The ranges that clients request begin and end at line boundaries.
pub(super) const LINE: usize = 128;
/// Number of lines in a body.
pub(super) const LINES: usize = 32;

/// A user and the number of one of its requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) user: String,
    pub(super) id: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.user, self.id)
    }
}

impl Mark {
    /// All marks in a text.
    fn all(text: &str) -> BTreeSet<Self> {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '~';
        text.split(|c| !inside(c)).filter_map(Self::read).collect()
    }

    fn read(text: &str) -> Option<Self> {
        let (user, id) = text.split_once('~')?;
        let user = user.to_owned();
        let id = id.parse().ok()?;
        Some(Self { user, id })
    }
}

/// Each page has a separate version for each user. Returns the entity tag of the version for this user.
pub(super) fn tag(user: &str) -> String {
    format!("\"{user}\"")
}

/// Returns the body for a request. It repeats one line that contains the mark and the path.
pub(super) fn body(mark: &Mark, path: &str) -> Vec<u8> {
    let text = format!("{mark} {path}");
    let line = format!("{text:<width$}\n", width = LINE - 1);
    line.repeat(LINES).into_bytes()
}

/// Kind of a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Interim,
    Cookie,
    Secret,
    Fields,
    Tag,
    Body,
}

impl Part {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Interim => "interim answer",
            Self::Cookie => "Set-Cookie",
            Self::Secret => "X-Secret",
            Self::Fields => "fields",
            Self::Tag => "ETag",
            Self::Body => "body",
        }
    }
}

/// The marks in the parts of an answer.
pub(super) fn found(answer: &Answer) -> BTreeSet<(Part, Mark)> {
    let mut found = BTreeSet::new();
    let mut take = |part, text: &str| {
        found.extend(Mark::all(text).into_iter().map(|mark| (part, mark)));
    };
    for interim in &answer.interim {
        let values = interim.fields.iter().map(|(_, value)| value.as_str());
        values.for_each(|value| take(Part::Interim, value));
    }
    for (part, name) in [
        (Part::Cookie, "Set-Cookie"),
        (Part::Secret, "X-Secret"),
        (Part::Fields, FIELD),
    ] {
        answer.head.all(name).for_each(|value| take(part, value));
    }
    lines(answer).iter().for_each(|line| take(Part::Body, line));
    found
}

/// Returns the user that the entity tag of the answer names. The page was made for this user.
pub(super) fn tagged(head: &Head) -> Option<String> {
    let tag = head.get("ETag")?.trim_start_matches("W/");
    Some(tag.trim_matches('"').to_owned())
}

/// The different lines of a body.
fn lines(answer: &Answer) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut last: &[u8] = &[];
    for line in answer.body.split(|byte| *byte == b'\n') {
        if line != last {
            lines.insert(String::from_utf8_lossy(line).trim_end().to_owned());
        }
        last = line;
    }
    lines
}

/// True if no line of the body belongs to another page.
pub(super) fn is_of(answer: &Answer, path: &str) -> bool {
    let other = |line: &String| match line.split_once(' ') {
        Some((mark, page)) => Mark::read(mark).is_some() && page != path,
        None => false,
    };
    !lines(answer).iter().any(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_a_body_names_its_request() {
        let mark = Mark {
            user: "u7".to_owned(),
            id: 4711,
        };
        let whole = body(&mark, "/p/1");
        assert_eq!(whole.len(), LINE * LINES);
        let answer = Answer {
            body: whole[LINE * 3..LINE * 5].to_vec(),
            ..Answer::default()
        };
        let found: Vec<_> = found(&answer).into_iter().collect();
        assert_eq!(found, [(Part::Body, mark)]);
        assert!(is_of(&answer, "/p/1"));
        assert!(!is_of(&answer, "/p/2"));
    }

    #[test]
    fn fields_and_interim_answers_are_told_apart() {
        let answer = Answer {
            interim: vec![Head::parse("HTTP/1.1 103 E\r\nLink: </a~1>; rel=x")],
            head: Head::parse("HTTP/1.1 200 OK\r\nSet-Cookie: sid=b~2\r\nETag: W/\"c\""),
            ..Answer::default()
        };
        let parts: Vec<_> = found(&answer).into_iter().map(|(part, _)| part).collect();
        assert_eq!(parts, [Part::Interim, Part::Cookie]);
        assert_eq!(tagged(&answer.head).as_deref(), Some("c"));
    }
}
