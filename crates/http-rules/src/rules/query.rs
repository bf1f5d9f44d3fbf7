//! What of a query counts in the cache key.

use super::Pattern;

/// Which parameters of a query count, and whether their order does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRule {
    /// Which count.
    pub which: Which,
    /// Parameters are put into ascending order, equal names in the order they came.
    pub sort: bool,
}

/// Which parameters of a query count in the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All.
    #[default]
    All,
    /// Only these.
    Keep(Vec<Pattern>),
    /// All but these.
    Ignore(Vec<Pattern>),
}

impl QueryRule {
    /// Whether queries stay as they are.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.which == Which::All && !self.sort
    }

    /// Rewrites what follows the first `?` of `key` after `from`. A query of which nothing is
    /// left goes with its question mark. Names are compared as they are written, without
    /// decoding; empty parameters do not count.
    pub fn apply(&self, key: &mut Vec<u8>, from: usize) {
        let Some(at) = key[from..].iter().position(|b| *b == b'?') else {
            return;
        };
        let query = key.split_off(from + at + 1);
        key.pop();
        let mut kept: Vec<&[u8]> = query
            .split(|b| *b == b'&')
            .filter(|parameter| !parameter.is_empty() && self.counts(name(parameter)))
            .collect();
        if self.sort {
            kept.sort_by_key(|parameter| name(parameter));
        }
        for (i, parameter) in kept.into_iter().enumerate() {
            key.push(if i == 0 { b'?' } else { b'&' });
            key.extend_from_slice(parameter);
        }
    }

    fn counts(&self, name: &[u8]) -> bool {
        match &self.which {
            Which::All => true,
            Which::Keep(patterns) => patterns.iter().any(|p| p.fits(name)),
            Which::Ignore(patterns) => !patterns.iter().any(|p| p.fits(name)),
        }
    }
}

fn name(parameter: &[u8]) -> &[u8] {
    let end = parameter.iter().position(|b| *b == b'=');
    &parameter[..end.unwrap_or(parameter.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns(names: &[&str]) -> Vec<Pattern> {
        names.iter().map(|name| Pattern::new(name)).collect()
    }

    fn applied(rule: &QueryRule, url: &str) -> String {
        let mut key = format!("p GET {url}").into_bytes();
        rule.apply(&mut key, 6);
        String::from_utf8(key[6..].to_vec()).unwrap()
    }

    #[test]
    fn parameters_are_ignored_kept_and_sorted() {
        let ignore = QueryRule {
            which: Which::Ignore(patterns(&["utm_*", "fbclid"])),
            sort: false,
        };
        let keep = QueryRule {
            which: Which::Keep(patterns(&["id"])),
            sort: false,
        };
        let sort = QueryRule {
            which: Which::All,
            sort: true,
        };
        for (rule, url, expected) in [
            (&ignore, "/a?x=1&utm_source=m&y=2", "/a?x=1&y=2"),
            (&ignore, "/a?fbclid=1", "/a"),
            (&ignore, "/a?fbclid", "/a"),
            (&ignore, "/a?UTM_source=1", "/a?UTM_source=1"),
            (&ignore, "/a", "/a"),
            (&ignore, "/a?", "/a"),
            (&ignore, "/a?x=utm_&&", "/a?x=utm_"),
            (&keep, "/a?b=1&id=2&id=3&idx=4", "/a?id=2&id=3"),
            (&keep, "/a?b=?id=2", "/a"),
            (&sort, "/a?b=2&a=1&b=1", "/a?a=1&b=2&b=1"),
            (&sort, "/a?a-=1&a=1", "/a?a=1&a-=1"),
        ] {
            assert_eq!(applied(rule, url), expected, "{url}");
        }
        assert!(QueryRule::default().is_plain() && !sort.is_plain() && !keep.is_plain());
    }

    proptest! {
        #[test]
        fn what_was_rewritten_stays_as_it_is(url in "/[a?&=]{0,12}", sort: bool) {
            let rule = QueryRule { which: Which::Ignore(patterns(&["aa*"])), sort };
            let once = applied(&rule, &url);
            prop_assert_eq!(applied(&rule, &once), once);
        }
    }
}
