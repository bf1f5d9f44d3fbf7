//! Texts with variables such as `{client_ip}`.

/// A fact about a request that a template can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// Address of the client.
    ClientIp,
    /// `http` or `https`, as used by the client.
    Scheme,
    /// Host of the client's URL, without port.
    Host,
    /// Path of the client's URL in its normal form, without the query.
    Path,
    /// Query of the client's URL, without the `?`.
    Query,
    /// Name of the site.
    Site,
    /// Id of the request, as the log contains it.
    RequestId,
    /// Foxy's entry in `Cache-Status`.
    CacheStatus,
    /// Subject of the client's verified certificate.
    ClientSubject,
    /// Alternative names of the client's verified certificate.
    ClientNames,
    /// The part of the path that matches a group of the rule's regular expression. The value is the number of
    /// the group.
    Capture(u8),
}

const NAMES: [(&str, Variable); 10] = [
    ("client_ip", Variable::ClientIp),
    ("scheme", Variable::Scheme),
    ("host", Variable::Host),
    ("path", Variable::Path),
    ("query", Variable::Query),
    ("site", Variable::Site),
    ("request_id", Variable::RequestId),
    ("cache_status", Variable::CacheStatus),
    ("client_subject", Variable::ClientSubject),
    ("client_names", Variable::ClientNames),
];

/// The purpose of a template, which determines the available variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A field of a request.
    Request,
    /// A field of an answer.
    Answer,
    /// A path at the origin. The value is the number of groups in the expression. The path must depend only
    /// on the cache key, so only captures and the query are available.
    Path(usize),
    /// The URL of a redirect. The value is the number of groups in the expression.
    Redirect(usize),
}

impl Use {
    fn has(self, variable: Variable) -> bool {
        match (self, variable) {
            (Self::Path(groups) | Self::Redirect(groups), Variable::Capture(n)) => {
                usize::from(n) <= groups
            }
            (_, Variable::Capture(_)) => false,
            (Self::Path(_), _) => variable == Variable::Query,
            (Self::Answer, _) => true,
            (Self::Request | Self::Redirect(_), _) => variable != Variable::CacheStatus,
        }
    }

    /// The names of the available variables, for messages.
    fn names(self) -> String {
        let known = NAMES.iter().filter(|(_, variable)| self.has(*variable));
        let mut names: Vec<String> = known.map(|(name, _)| format!("{{{name}}}")).collect();
        if let Self::Path(groups) | Self::Redirect(groups) = self {
            names.extend((1..=groups).map(|n| format!("{{{n}}}")));
        }
        names.join(", ")
    }
}

/// A source of the values of variables.
pub trait Values {
    /// Appends the value of a variable; appends nothing if the value is unknown.
    fn push(&self, variable: Variable, out: &mut Vec<u8>);
}

/// A text with variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Variable(Variable),
}

impl Template {
    /// Reads a template. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// A description of the mistake: a variable that is not available here, a single brace, or a
    /// character that no field may contain.
    pub fn parse(text: &str, purpose: Use) -> Result<Self, String> {
        if let Some(wrong) = text.chars().find(|c| c.is_control()) {
            return Err(format!("it has the control character {wrong:?}"));
        }
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                plain.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let named = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
            let Some((name, after)) = named else {
                return Err("a brace stands alone; write `{{` or `}}` for a brace".to_owned());
            };
            let variable = variable(name, purpose)?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Variable(variable));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// Appends the text with the values of its variables. Control characters in values become `?`.
    pub fn write(&self, values: &dyn Values, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => {
                    let start = out.len();
                    values.push(*variable, out);
                    let wrong = |byte: &&mut u8| **byte < b' ' || **byte == 0x7f;
                    out[start..]
                        .iter_mut()
                        .filter(wrong)
                        .for_each(|b| *b = b'?');
                }
            }
        }
    }

    /// True if the template has no variable.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let text = |part: &Part| matches!(part, Part::Text(_));
        self.parts.iter().all(text)
    }

    /// True if the template contains a variable from the client's certificate.
    pub(super) fn contains_certificate(&self) -> bool {
        let names = [Variable::ClientSubject, Variable::ClientNames];
        let named = |part: &Part| matches!(part, Part::Variable(v) if names.contains(v));
        self.parts.iter().any(named)
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

fn variable(name: &str, purpose: Use) -> Result<Variable, String> {
    let named = NAMES.iter().find(|(known, _)| *known == name);
    let group = || name.parse().ok().map(Variable::Capture);
    let found = named.map(|(_, variable)| *variable).or_else(group);
    match found {
        Some(variable) if purpose.has(variable) && variable != Variable::Capture(0) => Ok(variable),
        Some(_) => Err(format!(
            "`{{{name}}}` is not known here; there are {}",
            purpose.names()
        )),
        None => Err(format!(
            "there is no variable `{{{name}}}`; there are {}",
            purpose.names()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values for the tests: the value of each variable is the variable's name in angle brackets and a line
    /// feed.
    struct Shown;

    impl Values for Shown {
        fn push(&self, variable: Variable, out: &mut Vec<u8>) {
            out.extend_from_slice(format!("<{variable:?}>\n").as_bytes());
        }
    }

    #[test]
    fn variables_are_known_where_they_have_a_value() {
        for (text, purpose, expected) in [
            ("a", Use::Request, Ok("a")),
            ("", Use::Request, Ok("")),
            ("{{{host}}}", Use::Request, Ok("{<Host>?}")),
            ("{cache_status}", Use::Answer, Ok("<CacheStatus>?")),
            ("{cache_status}", Use::Request, Err("is not known here")),
            (
                "{client_ip}",
                Use::Path(0),
                Err("is not known here; there are {query}"),
            ),
            ("{1}{2}", Use::Path(2), Ok("<Capture(1)>?<Capture(2)>?")),
            ("{3}", Use::Redirect(2), Err("`{3}` is not known here")),
            ("{0}", Use::Redirect(2), Err("`{0}` is not known here")),
            ("{1}", Use::Answer, Err("is not known here")),
            (
                "{hots}",
                Use::Request,
                Err("there is no variable `{hots}`; there are {client_ip}"),
            ),
            ("{", Use::Request, Err("a brace stands alone")),
            ("a}b", Use::Request, Err("a brace stands alone")),
            ("a\r\nb", Use::Request, Err("control character")),
        ] {
            let read = Template::parse(text, purpose).map(|template| {
                let mut out = Vec::new();
                template.write(&Shown, &mut out);
                String::from_utf8(out).unwrap()
            });
            match (&read, expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected),
                (Err(read), Err(part)) => assert!(read.contains(part), "{text}: {read}"),
                _ => panic!("{text}: {read:?}"),
            }
        }
    }
}
