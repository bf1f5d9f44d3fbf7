//! The hosts to which a rule applies.

use foxy_base::Pattern;

/// A host, all names under a name, or a pattern with `*`. The text is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This name or address.
    Is(Box<str>),
    /// Every name under this name (`*.example.com`).
    Under(Box<str>),
    /// This name and every name under it (`.example.com`, in the form of Squid).
    Tree(Box<str>),
    /// Every host that matches this pattern.
    Like(Pattern),
}

impl HostPattern {
    /// Reads a pattern: `example.com`, `*.example.com`, `.example.com`, or a text with `*` at any position.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let text = text.strip_suffix('.').unwrap_or(&text);
        if let Some(name) = text.strip_prefix("*.").filter(|name| is_name(name)) {
            return Self::Under(name.into());
        }
        if let Some(name) = text.strip_prefix('.').filter(|name| is_name(name)) {
            return Self::Tree(name.into());
        }
        match is_name(text) {
            true => Self::Is(text.into()),
            false => Self::Like(Pattern::new(text)),
        }
    }

    /// Returns true if the host matches. Case and a dot at the end of the host make no difference.
    #[must_use]
    pub fn fits(&self, host: &[u8]) -> bool {
        let is = |name: &str, host: &[u8]| name.as_bytes().eq_ignore_ascii_case(host);
        let under = |name: &str| {
            let (len, all) = (name.len(), host.len());
            all > len + 1 && host[all - len - 1] == b'.' && is(name, &host[all - len..])
        };
        match self {
            Self::Is(name) => is(name, host),
            Self::Under(name) => under(name),
            Self::Tree(name) => is(name, host) || under(name),
            Self::Like(pattern) => pattern.fits(&host.to_ascii_lowercase()),
        }
    }

    /// Returns the pattern in its written form.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Is(name) => name.to_string(),
            Self::Under(name) => format!("*.{name}"),
            Self::Tree(name) => format!(".{name}"),
            Self::Like(pattern) => String::from_utf8_lossy(pattern.as_bytes()).into_owned(),
        }
    }

    /// Returns the name under which the index keeps this pattern, and two flags. The first flag is true if
    /// the pattern may match that name itself. The second flag is true if the pattern may match names under
    /// that name. The empty name stands for all names.
    pub(crate) fn index_entry(&self) -> (&str, bool, bool) {
        match self {
            Self::Is(name) => (name, true, false),
            Self::Under(name) => (name, false, true),
            Self::Tree(name) => (name, true, true),
            Self::Like(pattern) => {
                let text = std::str::from_utf8(pattern.as_bytes()).unwrap_or_default();
                let last = text.rsplit('*').next().unwrap_or_default();
                // The text after the last star is fixed. So the labels after the first dot in this text are
                // complete.
                let name = last.split_once('.').map_or("", |(_, name)| name);
                (name, true, true)
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('*') && !text.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_trees_and_patterns() {
        for (pattern, host, fits) in [
            ("example.com", "example.com", true),
            ("example.com", "EXAMPLE.com", true),
            ("Example.com.", "example.com", true),
            ("example.com", "www.example.com", false),
            ("example.com", "badexample.com", false),
            ("*.example.com", "www.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "badexample.com", false),
            (".example.com", "example.com", true),
            (".example.com", "www.Example.com", true),
            (".example.com", "badexample.com", false),
            ("ads*.example.com", "ads7.example.com", true),
            ("ads*.example.com", "ad.example.com", false),
            ("*track*", "my.TRACKer.test", true),
            ("*", "anything", true),
            ("10.0.0.1", "10.0.0.1", true),
        ] {
            let found = HostPattern::new(pattern).fits(host.as_bytes());
            assert_eq!(found, fits, "{pattern} {host}");
        }
    }
}
