//! Query parameters that count: they are in the cache key and are sent to the origin.

use std::borrow::Cow;

use super::Pattern;

/// The query parameters that count, and whether their order matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRule {
    /// Parameters that count.
    pub which: Which,
    /// True if the parameters are sorted in ascending order. Parameters with equal names keep their
    /// order.
    pub sort: bool,
}

/// The choice of query parameters that count in the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All parameters.
    #[default]
    All,
    /// Only these parameters.
    Keep(Vec<Pattern>),
    /// All parameters except these.
    Ignore(Vec<Pattern>),
}

impl QueryRule {
    /// True if queries stay unchanged.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.which == Which::All && !self.sort
    }

    /// Rewrites the query in `key`. The query begins after the first `?` at or after the position `from`. If
    /// no parameter is left, the question mark is removed too. Only `&` separates parameters. Their names are
    /// compared as origins read them, with `+` and escapes decoded. The remaining parameters keep their
    /// spelling, since they are sent to the origin and must keep their meaning there. Empty parameters are
    /// removed.
    pub fn apply(&self, key: &mut Vec<u8>, from: usize) {
        let Some(at) = key[from..].iter().position(|b| *b == b'?') else {
            return;
        };
        let query = key.split_off(from + at + 1);
        key.pop();
        let mut kept: Vec<Parameter<'_>> = query
            .split(|b| *b == b'&')
            .filter(|text| !text.is_empty())
            .map(Parameter::of)
            .filter(|parameter| self.counts(&parameter.name))
            .collect();
        if self.sort {
            kept.sort_by(|a, b| a.name.cmp(&b.name));
        }
        for (i, parameter) in kept.into_iter().enumerate() {
            key.push(if i == 0 { b'?' } else { b'&' });
            key.extend_from_slice(parameter.text);
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

/// A parameter of a query.
struct Parameter<'q> {
    /// The decoded name of the parameter.
    name: Cow<'q, [u8]>,
    /// The complete parameter as written.
    text: &'q [u8],
}

impl<'q> Parameter<'q> {
    fn of(text: &'q [u8]) -> Self {
        let end = text.iter().position(|b| *b == b'=');
        Self {
            name: decoded(&text[..end.unwrap_or(text.len())]),
            text,
        }
    }
}

/// Decodes a name as in a form: `+` becomes a blank. An invalid escape stays unchanged.
fn decoded(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.iter().any(|b| matches!(b, b'%' | b'+')) {
        return Cow::Borrowed(name);
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, beyond @ ..]) => match (value(*high), value(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = beyond;
                }
                _ => out.push(b'%'),
            },
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
    }
    Cow::Owned(out)
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
            // Encoded names are decoded as origins decode them.
            (&keep, "/a?id=1&%69d=2&i%64", "/a?id=1&%69d=2&i%64"),
            (&keep, "/a?id=1;id=2&x;id=3", "/a?id=1;id=2"),
            (&keep, "/a?i%zd=1&%=2&id%=3", "/a"),
            (&ignore, "/a?%75tm_x=1&x=%75tm_x", "/a?x=%75tm_x"),
            (&ignore, "/a?utm_x=1;id=2&id=3", "/a?id=3"),
            (&sort, "/a?b=1&%61=2&a=3", "/a?%61=2&a=3&b=1"),
            (&sort, "/a?a+b=1&a=2&a%20b=3", "/a?a=2&a+b=1&a%20b=3"),
        ] {
            assert_eq!(applied(rule, url), expected, "{url}");
        }
        assert!(QueryRule::default().is_plain() && !sort.is_plain() && !keep.is_plain());
    }

    proptest! {
        #[test]
        fn what_was_rewritten_stays_as_it_is(url in "/[a?&=%+;61]{0,12}", sort: bool) {
            let rule = QueryRule { which: Which::Ignore(patterns(&["aa*"])), sort };
            let once = applied(&rule, &url);
            prop_assert_eq!(applied(&rule, &once), once);
        }
    }
}
