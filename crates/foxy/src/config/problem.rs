//! A mistake in a configuration. It has a place, and a text with the given value, the allowed values, and a
//! way to correct the mistake.

use std::fmt;

/// One problem. It is printed as `place: what is wrong; how to mend it`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: String,
    text: String,
}

impl Problem {
    /// Returns the problem of a value that its setting does not accept.
    #[must_use]
    pub fn value(place: String, key: &str, given: &str, wrong: &str, allowed: &str) -> Self {
        Self {
            place,
            text: format!("{key} = {given}: {wrong}; allowed is {allowed}"),
        }
    }

    /// Returns the problem of a name that no setting has.
    #[must_use]
    pub fn unknown(place: String, key: &str, suggestion: Option<&str>) -> Self {
        let hint = match suggestion {
            Some(name) => format!("did you mean `{name}`?"),
            None => "docs/config.md lists them all".to_owned(),
        };
        Self {
            place,
            text: format!("`{key}` is not a setting; {hint}"),
        }
    }

    /// Returns the problem of a value of the wrong shape, such as a table in place of a text.
    #[must_use]
    pub fn shape(place: String, key: &str, mend: &str) -> Self {
        Self {
            place,
            text: format!("`{key}` does not have this form; {mend}"),
        }
    }

    /// Returns the problem of a text that is not TOML.
    #[must_use]
    pub fn syntax(place: String, message: &str) -> Self {
        Self {
            place,
            text: format!("not valid TOML: {message}"),
        }
    }

    /// Returns the problem of settings that contradict each other, or that do not suit this machine.
    #[must_use]
    pub fn conflict(place: &str, text: String) -> Self {
        Self {
            place: place.to_owned(),
            text,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
