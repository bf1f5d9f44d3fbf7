//! The changes to fields of messages: set, add, remove, rename. Foxy makes the changes in the order of their
//! entries.

use std::borrow::Cow;

use foxy_base::eq_name;

use super::template::{Template, Use, Values};

/// The kind of message whose fields are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A request to an origin.
    Request,
    /// An answer to a client.
    Answer,
}

/// Fields that belong to one connection, name the destination (`Host`), or delimit a message.
const FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "content-range",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields of requests that Foxy uses itself for loop detection, conditions and ranges.
const OF_FOXY: &[&str] = &[
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "max-forwards",
    "range",
    "via",
    "x-foxy-token",
];

/// Fields of answers that determine how a body is read.
const OF_BODIES: &[&str] = &["content-encoding"];

/// Fields by which origins recognise users. The cache must see them to decide whether an answer may
/// be shared.
const OF_USERS: [&str; 2] = ["authorization", "cookie"];

/// The changes of fields in one kind of message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRules {
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Replaces all fields of this name.
    Set(String, Template),
    /// Adds a field and keeps existing fields of this name.
    Add(String, Template),
    Remove(String),
    Rename(String, String),
    /// Removes all fields except those in this list, in [`FRAMING`] and in [`OF_FOXY`].
    Only(&'static [&'static str]),
}

/// A field of a message that is being changed: its name and value.
type Line<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl FieldRules {
    /// Reads entries such as `set NAME: VALUE`, `add NAME: VALUE`, `remove NAME`, `rename OLD NEW`.
    ///
    /// # Errors
    /// Returned if an entry is wrong: the entry, and a description of its mistake.
    pub fn parse(entries: &[String], direction: Direction) -> Result<Self, String> {
        let change = |entry: &String| {
            change(entry, direction).map_err(|wrong| format!("`{entry}`: {wrong}"))
        };
        let changes: Result<_, _> = entries.iter().map(change).collect();
        Ok(Self { changes: changes? })
    }

    /// Inserts a change before all other changes. The inserted change removes every field of a request, with
    /// three exceptions: the fields in `names`, the fields of the connection, and the fields that Foxy uses
    /// itself.
    #[must_use]
    pub fn after_only(mut self, names: &'static [&'static str]) -> Self {
        self.changes.insert(0, Change::Only(names));
        self
    }

    /// True if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// True if these rules may change fields of this name.
    #[must_use]
    pub fn touches(&self, name: &[u8]) -> bool {
        let is = |known: &str| eq_name(name, known.as_bytes());
        self.changes.iter().any(|change| match change {
            Change::Set(name, _) | Change::Add(name, _) | Change::Remove(name) => is(name),
            Change::Rename(old, new) => is(old) || is(new),
            Change::Only(names) => !stays(names, name),
        })
    }

    /// True if a rule sets or adds a field whose value comes from the client's certificate. Then requests
    /// count as requests with credentials, like requests with `Authorization`.
    #[must_use]
    pub fn contains_certificate(&self) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Set(_, value) | Change::Add(_, value) => value.contains_certificate(),
            Change::Remove(_) | Change::Rename(..) | Change::Only(_) => false,
        })
    }

    /// Changes the fields of a head. Its first line and the blank line stay.
    pub fn change_head(&self, head: &mut Vec<u8>, values: &dyn Values) {
        let Some(first) = head.iter().position(|b| *b == b'\n') else {
            return;
        };
        let mut out = head[..=first].to_vec();
        self.change_lines(&head[first + 1..], values, &mut out);
        out.extend_from_slice(b"\r\n");
        *head = out;
    }

    /// Appends the changed form of field lines to `out`. A blank line ends `lines`.
    pub fn change_lines(&self, lines: &[u8], values: &dyn Values, out: &mut Vec<u8>) {
        let lines = lines.split(|b| *b == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut fields: Vec<Line<'_>> = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let colon = line.iter().position(|b| *b == b':')?;
                Some((line[..colon].into(), line[colon + 1..].trim_ascii().into()))
            })
            .collect();
        for change in &self.changes {
            change.apply(&mut fields, values);
        }
        for (name, value) in &fields {
            for piece in [name, &b": "[..], value, b"\r\n"] {
                out.extend_from_slice(piece);
            }
        }
    }
}

impl Change {
    fn apply<'a>(&'a self, fields: &mut Vec<Line<'a>>, values: &dyn Values) {
        let is = |name: &str, line: &Line<'_>| eq_name(&line.0, name.as_bytes());
        match self {
            Self::Set(name, value) => {
                fields.retain(|line| !is(name, line));
                fields.push(written(name, value, values));
            }
            Self::Add(name, value) => fields.push(written(name, value, values)),
            Self::Remove(name) => fields.retain(|line| !is(name, line)),
            Self::Rename(old, new) => {
                for line in fields.iter_mut().filter(|line| is(old, line)) {
                    line.0 = new.as_bytes().into();
                }
            }
            Self::Only(names) => fields.retain(|line| stays(names, &line.0)),
        }
    }
}

/// True if [`Change::Only`] with these names keeps the field.
fn stays(names: &[&str], name: &[u8]) -> bool {
    let has = |list: &[&str]| list.iter().any(|known| eq_name(name, known.as_bytes()));
    has(names) || has(FRAMING) || has(OF_FOXY)
}

fn written<'a>(name: &'a str, value: &Template, values: &dyn Values) -> Line<'a> {
    let mut text = Vec::new();
    value.write(values, &mut text);
    (name.as_bytes().into(), text.trim_ascii().to_vec().into())
}

fn change(entry: &str, direction: Direction) -> Result<Change, String> {
    let (verb, rest) = entry.trim().split_once(' ').unwrap_or((entry.trim(), ""));
    let rest = rest.trim();
    let valued = || {
        let (name, value) = rest
            .split_once(':')
            .ok_or("a value is missing; write NAME: VALUE")?;
        let name = name_of(name, direction)?;
        let purpose = match direction {
            Direction::Request => Use::Request,
            Direction::Answer => Use::Answer,
        };
        let value = Template::parse(value.trim(), purpose)?;
        if direction == Direction::Request && is_of_users(&name) && !value.is_constant() {
            return Err(format!(
                "{name} must not depend on the request: the cache would give one user's answer to others; write a text without variables"
            ));
        }
        Ok::<_, String>((name, value))
    };
    match verb {
        "set" => valued().map(|(name, value)| Change::Set(name, value)),
        "add" => valued().map(|(name, value)| Change::Add(name, value)),
        "remove" => Ok(Change::Remove(name_of(rest, direction)?)),
        "rename" => {
            let mut names = rest.split_ascii_whitespace();
            let (Some(old), Some(new), None) = (names.next(), names.next(), names.next()) else {
                return Err("two names are expected; write rename OLD NEW".to_owned());
            };
            let (old, new) = (name_of(old, direction)?, name_of(new, direction)?);
            if direction == Direction::Request && is_of_users(&new) {
                return Err(format!(
                    "no other field may become {new}: the cache would give one user's answer to others"
                ));
            }
            Ok(Change::Rename(old, new))
        }
        _ => Err("it begins with none of set, add, remove and rename".to_owned()),
    }
}

fn is_of_users(name: &str) -> bool {
    OF_USERS.iter().any(|of| name.eq_ignore_ascii_case(of))
}

/// Reads the name of a field; an error if it must not be changed.
fn name_of(text: &str, direction: Direction) -> Result<String, String> {
    let text = text.trim();
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err(format!("`{text}` is not the name of a field"));
    }
    let in_list = |list: &[&str]| list.iter().any(|name| text.eq_ignore_ascii_case(name));
    let own = match direction {
        Direction::Request => OF_FOXY,
        Direction::Answer => OF_BODIES,
    };
    if in_list(FRAMING) || in_list(own) {
        return Err(format!(
            "{text} cannot be changed: it belongs to the connection, the framing or the checks of Foxy itself"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::template::Variable;
    use super::*;

    struct Fixed;

    impl Values for Fixed {
        fn push(&self, variable: Variable, out: &mut Vec<u8>) {
            if variable == Variable::ClientIp {
                out.extend_from_slice(b"192.0.2.9");
            }
        }
    }

    fn changed(entries: &[&str], lines: &str) -> String {
        let entries: Vec<String> = entries.iter().map(|e| (*e).to_owned()).collect();
        let rules = FieldRules::parse(&entries, Direction::Request).unwrap();
        let mut head = format!("GET / HTTP/1.1\n{lines}\n")
            .replace('\n', "\r\n")
            .into_bytes();
        rules.change_head(&mut head, &Fixed);
        let text = String::from_utf8(head).unwrap().replace("\r\n", "\n");
        let text = text.strip_prefix("GET / HTTP/1.1\n").unwrap();
        text.strip_suffix('\n').unwrap().to_owned()
    }

    #[test]
    fn changes_follow_each_other() {
        for (entries, before, after) in [
            (&["set X-A: 1"][..], "", "X-A: 1\n"),
            (
                &["set X-A: {client_ip}"],
                "x-a: 5\nB: 2\nX-A: 6\n",
                "B: 2\nX-A: 192.0.2.9\n",
            ),
            (&["set X-A: {request_id}"], "X-A: forged\n", "X-A: \n"),
            (&["add X-A: 1"], "X-A: 5\n", "X-A: 5\nX-A: 1\n"),
            (&["remove x-a"], "X-A: 5\nB: 2\nX-A: 6\n", "B: 2\n"),
            (
                &["rename B C"],
                "A: 1\nb: 2\nC: 3\nB: 4\n",
                "A: 1\nC: 2\nC: 3\nC: 4\n",
            ),
            (
                &["remove C", "rename B C", "add C: 9"],
                "B: 2\nC: 3\n",
                "C: 2\nC: 9\n",
            ),
            (
                &["set Authorization: Basic eDp5"],
                "Authorization: own\n",
                "Authorization: Basic eDp5\n",
            ),
            (
                &["rename Authorization X-Own"],
                "Authorization: own\n",
                "X-Own: own\n",
            ),
        ] {
            assert_eq!(changed(entries, before), after, "{entries:?}");
        }
    }

    #[test]
    fn names_that_are_touched_are_known() {
        let entries = ["set A: 1", "add B: 1", "remove C", "rename D E"].map(str::to_owned);
        let rules = FieldRules::parse(&entries, Direction::Request).unwrap();
        for name in ["a", "B", "c", "D", "e"] {
            assert!(rules.touches(name.as_bytes()), "{name}");
        }
        assert!(!rules.touches(b"f"));
    }

    #[test]
    fn only_what_is_named_stays() {
        let rules = FieldRules::parse(&["set Accept: b".to_owned()], Direction::Request);
        let rules = rules.unwrap().after_only(&["accept", "user-agent"]);
        let mut head = b"GET / HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\nACCEPT: a\r\nUser-Agent: c\r\nIf-None-Match: d\r\n\r\n".to_vec();
        rules.change_head(&mut head, &Fixed);
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: c\r\nIf-None-Match: d\r\nAccept: b\r\n\r\n"
        );
        for (name, touched) in [("x-key", true), ("Accept", true), ("user-agent", false)] {
            assert_eq!(rules.touches(name.as_bytes()), touched, "{name}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (entry, direction, part) in [
            ("put A: 1", Direction::Request, "begins with none of"),
            ("set A", Direction::Request, "write NAME: VALUE"),
            (
                "set A b: 1",
                Direction::Request,
                "`A b` is not the name of a field",
            ),
            (
                "set A: {nothing}",
                Direction::Request,
                "there is no variable `{nothing}`",
            ),
            (
                "set A: {cache_status}",
                Direction::Request,
                "is not known here",
            ),
            ("rename A B C", Direction::Answer, "write rename OLD NEW"),
            ("remove ", Direction::Answer, "is not the name of a field"),
            (
                "set Content-Length: 1",
                Direction::Answer,
                "cannot be changed",
            ),
            (
                "set Content-Length: 1",
                Direction::Request,
                "cannot be changed",
            ),
            (
                "remove transfer-encoding",
                Direction::Answer,
                "cannot be changed",
            ),
            ("add Connection: x", Direction::Request, "cannot be changed"),
            ("set Host: a", Direction::Request, "cannot be changed"),
            ("remove Via", Direction::Request, "cannot be changed"),
            (
                "rename X-A If-None-Match",
                Direction::Request,
                "cannot be changed",
            ),
            (
                "set Content-Encoding: br",
                Direction::Answer,
                "cannot be changed",
            ),
            (
                "set Authorization: {client_ip}",
                Direction::Request,
                "must not depend",
            ),
            (
                "add Cookie: a={query}",
                Direction::Request,
                "must not depend",
            ),
            (
                "rename X-User Authorization",
                Direction::Request,
                "no other field may become",
            ),
        ] {
            let wrong = FieldRules::parse(&[entry.to_owned()], direction).unwrap_err();
            assert!(
                wrong.contains(part) && wrong.contains(entry),
                "{entry}: {wrong}"
            );
        }
    }

    #[test]
    fn what_is_not_of_the_framing_may_be_changed() {
        for (entry, direction) in [
            ("set Cookie: a=b", Direction::Request),
            ("remove Via", Direction::Answer),
            ("set Set-Cookie: a={request_id}", Direction::Answer),
        ] {
            assert!(
                FieldRules::parse(&[entry.to_owned()], direction).is_ok(),
                "{entry}"
            );
        }
    }
}
