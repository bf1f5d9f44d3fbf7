//! Templates for lines of the access log: text with named fields in braces. This module does no input or
//! output.

use std::fmt::Write as _;

/// Formats that have a name.
pub(super) const NAMED: [&str; 4] = ["squid", "common", "combined", "json"];

macro_rules! fields {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// A field of a log line. The JSON format uses the same names for the fields that it has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogField { $(#[doc = $name] $field),* }

        impl LogField {
            /// Every field, in the order of the reference (`docs/config.md`).
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$field),*];

            /// Returns the name of the field in templates.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$field => $name),* }
            }
        }
    };
}

fields! {
    Time = "time",
    TimeCommon = "time_common",
    TimeUnix = "time_unix",
    Client = "client",
    ClientPort = "client_port",
    User = "user",
    AccessRule = "access_rule",
    Partition = "partition",
    Method = "method",
    Url = "url",
    Target = "target",
    Host = "host",
    Http = "http",
    Status = "status",
    Outcome = "outcome",
    Code = "code",
    Reason = "reason",
    DurationUs = "duration_us",
    DurationMs = "duration_ms",
    BytesIn = "bytes_in",
    BytesOut = "bytes_out",
    BodyOut = "body_out",
    Origin = "origin",
    OriginStatus = "origin_status",
    ContentType = "content_type",
    Referer = "referer",
    UserAgent = "user_agent",
    Id = "id",
    Traceparent = "traceparent",
    FirstByteUs = "first_byte_us",
    Ttl = "ttl",
    Rule = "rule",
}

impl LogField {
    /// True if the field is a detail. Details are only collected for formats that use them.
    const fn is_detail(self) -> bool {
        matches!(
            self,
            Self::Id | Self::Traceparent | Self::FirstByteUs | Self::Ttl | Self::Rule
        )
    }
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Text that is copied unchanged.
    Text(String),
    /// A field.
    Field {
        /// The field.
        field: LogField,
        /// True if the field is between two `"`, so that blanks do not end it.
        quoted: bool,
    },
}

/// A template that was read and is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTemplate {
    parts: Vec<LogPart>,
}

impl LogTemplate {
    /// Reads a template. `{{` and `}}` stand for single braces.
    ///
    /// # Errors
    /// Returns the mistake in a few words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(c) = text.chars().find(|c| c.is_control() && *c != '\t') {
            return Err(format!("a line cannot have the character {c:?}"));
        }
        let (mut parts, mut plain, mut quoted) = (Vec::new(), String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.next_if_eq(&c).is_some() => plain.push(c),
                '{' => {
                    let mut name = String::new();
                    let end = chars.by_ref().find(|c| match c {
                        '}' => true,
                        c => {
                            name.push(*c);
                            false
                        }
                    });
                    let field = known(&name, end.is_some())?;
                    if !plain.is_empty() {
                        parts.push(LogPart::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(LogPart::Field { field, quoted });
                }
                '}' => return Err("there is a `}` without `{`; write `}}` for a brace".to_owned()),
                c => {
                    quoted ^= c == '"';
                    plain.push(c);
                }
            }
        }
        if quoted {
            return Err("a `\"` is not closed: its fields could not be told apart".to_owned());
        }
        if parts.is_empty() {
            return Err("it names no field".to_owned());
        }
        if !plain.is_empty() {
            parts.push(LogPart::Text(plain));
        }
        Ok(Self { parts })
    }

    /// Returns the parts of the template, in order.
    #[must_use]
    pub fn parts(&self) -> &[LogPart] {
        &self.parts
    }

    /// True if the template has a field that is only collected for formats that use the field.
    #[must_use]
    pub fn has_details(&self) -> bool {
        let detail =
            |part: &LogPart| matches!(part, LogPart::Field { field, .. } if field.is_detail());
        self.parts.iter().any(detail)
    }
}

fn known(name: &str, closed: bool) -> Result<LogField, String> {
    if !closed {
        return Err(format!("`{{{name}` has no `}}`; write `{{{{` for a brace"));
    }
    let found = LogField::ALL.into_iter().find(|field| field.name() == name);
    found.ok_or_else(|| {
        let mut text = format!("there is no field `{name}`; there are");
        for (i, field) in LogField::ALL.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{}", if i == 0 { " " } else { ", " }, field.name());
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(field: LogField, quoted: bool) -> LogPart {
        LogPart::Field { field, quoted }
    }

    #[test]
    fn text_fields_and_quotes_are_told_apart() {
        let template = LogTemplate::parse("{client}\t\"{url}\" {{{status}}}").unwrap();
        let text = |text: &str| LogPart::Text(text.to_owned());
        let wanted = [
            field(LogField::Client, false),
            text("\t\""),
            field(LogField::Url, true),
            text("\" {"),
            field(LogField::Status, false),
            text("}"),
        ];
        assert_eq!(template.parts(), wanted);
        assert!(!template.has_details());
        assert!(LogTemplate::parse("{ttl}").unwrap().has_details());
    }

    #[test]
    fn every_field_has_a_name_of_its_own() {
        for (i, field) in LogField::ALL.iter().enumerate() {
            let template = LogTemplate::parse(&format!("{{{}}}", field.name())).unwrap();
            let wanted = LogPart::Field {
                field: *field,
                quoted: false,
            };
            assert_eq!(template.parts(), [wanted], "{i}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, wrong) in [
            ("{nothing}", "there is no field `nothing`; there are time, "),
            ("{client", "`{client` has no `}`"),
            ("client}", "a `}` without `{`"),
            ("{}", "no field ``"),
            ("{client} \"{url}", "is not closed"),
            ("{client}\n{url}", "'\\n'"),
            ("client", "names no field"),
            ("{{client}}", "names no field"),
        ] {
            let found = LogTemplate::parse(text).unwrap_err();
            assert!(found.contains(wrong), "{text}: {found}");
        }
    }
}
