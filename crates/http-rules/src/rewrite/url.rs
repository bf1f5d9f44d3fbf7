//! Rules for redirects, and rules that replace the path in a client's request by the path at the origin.

use regex::bytes::{Captures, Regex};

use super::template::{Part, Template, Use, Values, Variable};

/// Rules for paths at the origin. The first rule that fits decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathRules(Vec<Rule>);

/// Rules for redirects. The first rule that fits decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redirects(Vec<(u16, Rule)>);

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    from: From,
    to: Template,
    /// True if `to` contains a query or fragment. Otherwise the client's query is appended.
    is_whole: bool,
}

#[derive(Clone, Debug)]
enum From {
    /// A prefix of complete segments, without the last `/`.
    Prefix(String),
    Expression(Regex),
}

impl PartialEq for From {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(a), Self::Prefix(b)) => a == b,
            (Self::Expression(a), Self::Expression(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

/// The values of variables for a request that a rule fits. Captures come from the rule's regular expression,
/// and all other values come from `more`. Without `more`, only captures and the query have values.
struct Matched<'a> {
    captures: Option<Captures<'a>>,
    query: &'a [u8],
    more: Option<&'a dyn Values>,
}

impl Values for Matched<'_> {
    fn push(&self, variable: Variable, out: &mut Vec<u8>) {
        match (variable, self.more) {
            (Variable::Capture(n), _) => {
                let captures = self.captures.as_ref();
                let group = captures.and_then(|captures| captures.get(usize::from(n)));
                out.extend_from_slice(group.map_or(b"", |group| group.as_bytes()));
            }
            (Variable::Query, None) => out.extend_from_slice(self.query),
            (_, Some(more)) => more.push(variable, out),
            (_, None) => {}
        }
    }
}

impl PathRules {
    /// Reads entries `prefix FROM TO` and `regex EXPRESSION TO`, for paths in their normal form.
    ///
    /// # Errors
    /// Returned if an entry is wrong: the entry, and a description of its mistake.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let read = |entry: &String| {
            let rule = Rule::parse(entry, Use::Path);
            let rule = rule.and_then(|rule| rule.for_origin());
            rule.map_err(|wrong| format!("`{entry}`: {wrong}"))
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// True if there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Maps path and query of a request to path and query at the origin; `None` if they stay
    /// unchanged. The caller checks the path for segments `.` and `..`: captures can form such a
    /// segment.
    #[must_use]
    pub fn map(&self, target: &[u8]) -> Option<Vec<u8>> {
        let (path, query) = split(target);
        self.0.iter().find_map(|rule| rule.apply(path, query, None))
    }
}

impl Redirects {
    /// Reads entries `STATUS prefix FROM TO` and `STATUS regex EXPRESSION TO`.
    ///
    /// # Errors
    /// Returned if an entry is wrong: the entry, and a description of its mistake.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let read = |entry: &String| {
            let (status, rest) = entry.trim().split_once(' ').unwrap_or_default();
            let status = match status {
                "301" => 301,
                "302" => 302,
                "303" => 303,
                "307" => 307,
                "308" => 308,
                _ => return Err("it begins with none of 301, 302, 303, 307 and 308".to_owned()),
            };
            let rule = Rule::parse(rest, Use::Redirect)?;
            Ok((status, rule.for_clients()?))
        };
        let read = |entry: &String| read(entry).map_err(|wrong| format!("`{entry}`: {wrong}"));
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// True if there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Status and URL for the path and query of a request.
    #[must_use]
    pub fn find(&self, target: &[u8], values: &dyn Values) -> Option<(u16, Vec<u8>)> {
        let (path, query) = split(target);
        let found = self.0.iter().find_map(|(status, rule)| {
            let url = rule.apply(path, query, Some(values))?;
            Some((*status, url))
        });
        // A URL that begins with `//name` or `/\name` would lead to another host, so the second character is
        // removed.
        found.map(|(status, mut url)| {
            while matches!(url[..], [b'/', b'/' | b'\\', ..]) {
                url.remove(1);
            }
            (status, url)
        })
    }
}

fn split(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|b| *b == b'?') {
        Some(at) => (&target[..at], &target[at..]),
        None => (target, b""),
    }
}

impl Rule {
    fn parse(entry: &str, purpose: impl Fn(usize) -> Use) -> Result<Self, String> {
        let mut words = entry.split_ascii_whitespace();
        let (Some(kind), Some(from), Some(to), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(
                "write `prefix FROM TO` or `regex EXPRESSION TO`, without further spaces"
                    .to_owned(),
            );
        };
        let (from, groups) = match kind {
            "prefix" if !from.starts_with('/') || from.contains(['?', '#']) => {
                return Err("a prefix is a path that begins with `/`, without a query".to_owned());
            }
            "prefix" => {
                let from = from.strip_suffix('/').unwrap_or(from).to_owned();
                (From::Prefix(from), 0)
            }
            "regex" => {
                let expression = Regex::new(from).map_err(|error| error.to_string())?;
                let groups = expression.captures_len() - 1;
                (From::Expression(expression), groups)
            }
            _ => return Err("a rule is of `prefix` or `regex`".to_owned()),
        };
        let template = Template::parse(to, purpose(groups))?;
        let is_whole = to.contains(['?', '#']);
        if is_whole && matches!(from, From::Prefix(_)) {
            return Err("what follows a prefix goes behind the new one, which has no query and no fragment; use `regex`".to_owned());
        }
        Ok(Self {
            from,
            to: template,
            is_whole,
        })
    }

    /// Checks a rule for the origin's path.
    fn for_origin(self) -> Result<Self, String> {
        let mut before_query = true;
        for part in self.to.parts() {
            match part {
                Part::Text(text) if text.contains('#') => {
                    return Err("a path has no `#`; write %23".to_owned());
                }
                Part::Text(text) => before_query &= !text.contains('?'),
                Part::Variable(Variable::Query) if before_query => {
                    return Err("{query} stands behind a `?` only".to_owned());
                }
                Part::Variable(_) => {}
            }
        }
        match self.to.parts().first() {
            Some(Part::Text(text)) if text.starts_with('/') => Ok(self),
            _ => Err("the new path begins with `/`".to_owned()),
        }
    }

    /// Checks a rule for redirects. The client must not be able to choose the host.
    fn for_clients(self) -> Result<Self, String> {
        const HOST: &str = "the URL begins with `/`, or with http:// or https:// and a host that `/` or {path} follows; of variables only {host} may be in the host";
        let mut parts = self.to.parts().iter().peekable();
        let scheme = match parts.peek() {
            Some(Part::Text(text)) if text.starts_with('/') => return Ok(self),
            Some(Part::Variable(Variable::Scheme)) => {
                parts.next();
                Some("://")
            }
            Some(Part::Text(text)) if text.starts_with("https://") => Some("https://"),
            Some(Part::Text(text)) if text.starts_with("http://") => Some("http://"),
            _ => None,
        };
        let mut scheme = scheme.ok_or(HOST)?;
        for part in parts {
            match part {
                Part::Text(text) => {
                    let text = text.strip_prefix(scheme).ok_or(HOST)?;
                    if text.contains(['/', '?']) {
                        return Ok(self);
                    }
                    scheme = "";
                }
                Part::Variable(Variable::Path) => return Ok(self),
                Part::Variable(Variable::Host) => {}
                Part::Variable(_) => return Err(HOST.to_owned()),
            }
        }
        // No part ended the host, so the URL consists only of scheme and host.
        Ok(self)
    }

    /// The new target; `None` if the rule does not fit. If there is a query, `query` begins with
    /// `?`.
    fn apply(&self, path: &[u8], query: &[u8], more: Option<&dyn Values>) -> Option<Vec<u8>> {
        let (captures, rest) = match &self.from {
            From::Prefix(prefix) => {
                let rest = path.strip_prefix(prefix.as_bytes())?;
                if !rest.is_empty() && rest[0] != b'/' {
                    return None;
                }
                (None, rest)
            }
            From::Expression(expression) => (Some(expression.captures(path)?), &b""[..]),
        };
        let values = Matched {
            captures,
            query: query.get(1..).unwrap_or_default(),
            more,
        };
        let mut out = Vec::with_capacity(path.len() + query.len());
        self.to.write(&values, &mut out);
        if rest.starts_with(b"/") && out.ends_with(b"/") {
            out.pop();
        }
        out.extend_from_slice(rest);
        if !self.is_whole {
            out.extend_from_slice(query);
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shop;

    impl Values for Shop {
        fn push(&self, variable: Variable, out: &mut Vec<u8>) {
            out.extend_from_slice(match variable {
                Variable::Host => b"shop.test",
                Variable::Scheme => b"https",
                Variable::Path => b"/p",
                Variable::Query => b"q=1",
                _ => b"?",
            });
        }
    }

    fn texts(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn paths_at_the_origin() {
        let rules = PathRules::parse(&texts(&[
            "prefix /shop /",
            "prefix /a/ /b/c",
            "regex ^/u/([0-9]+)$ /user?id={1}&{query}",
            "regex ^/old/(.*)\\.php$ /new/{1}",
            "prefix /site /x/",
        ]))
        .unwrap();
        for (from, to) in [
            ("/shop", Some("/")),
            ("/shop?x=1", Some("/?x=1")),
            ("/shop/", Some("/")),
            ("/shop/a/b?c", Some("/a/b?c")),
            ("/shopping", None),
            ("/SHOP", None),
            ("/x/shop/", None),
            ("/a", Some("/b/c")),
            ("/a/", Some("/b/c/")),
            ("/a//d", Some("/b/c//d")),
            ("/u/42", Some("/user?id=42&")),
            ("/u/42?a=b", Some("/user?id=42&a=b")),
            ("/u/x", None),
            ("/old/d/e.php?f", Some("/new/d/e?f")),
            ("/site", Some("/x/")),
            ("/site/y", Some("/x/y")),
            ("/", None),
        ] {
            let got = rules.map(from.as_bytes());
            assert_eq!(got.as_deref(), to.map(str::as_bytes), "{from}");
        }
    }

    #[test]
    fn redirects_stay_at_the_host_that_the_rule_names() {
        let rules = Redirects::parse(&texts(&[
            "301 prefix /old /new",
            "308 prefix /top /",
            "302 regex ^/go/(.*)$ /{1}",
            "307 regex ^/tls {scheme}://{host}{path}?{query}",
            "303 prefix /away https://other.test/in/",
        ]))
        .unwrap();
        for (from, to) in [
            ("/old/a?b=c", Some((301, "/new/a?b=c"))),
            ("/older", None),
            ("/top", Some((308, "/"))),
            ("/top//evil.test/x", Some((308, "/evil.test/x"))),
            ("/top/\\evil.test", Some((308, "/evil.test"))),
            ("/go//\\/evil.test", Some((302, "/evil.test"))),
            ("/go/x", Some((302, "/x"))),
            ("/tls/x", Some((307, "https://shop.test/p?q=1"))),
            ("/away//x", Some((303, "https://other.test/in//x"))),
        ] {
            let got = rules.find(from.as_bytes(), &Shop);
            let got = got
                .as_ref()
                .map(|(s, url)| (*s, std::str::from_utf8(url).unwrap()));
            assert_eq!(got, to, "{from}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (entry, part) in [
            ("prefix /a", "write `prefix FROM TO`"),
            ("prefix /a /b c", "write `prefix FROM TO`"),
            ("strip /a /b", "of `prefix` or `regex`"),
            ("prefix a /b", "begins with `/`"),
            ("prefix /a?b /c", "without a query"),
            ("prefix /a b", "the new path begins with `/`"),
            ("prefix /a /b?c=d", "use `regex`"),
            ("regex ( /b", "unclosed group"),
            ("regex ^/(.*)$ /{2}", "`{2}` is not known here"),
            ("regex ^/(.*)$ {1}", "the new path begins with `/`"),
            ("regex ^/a$ /b/{client_ip}", "is not known here"),
            ("regex ^/a$ /b/{host}", "is not known here"),
            ("regex ^/a$ /b/{query}", "{query} stands behind"),
            ("prefix /a /b#c", "use `regex`"),
            ("regex ^/a$ /b#c", "has no `#`"),
        ] {
            let wrong = PathRules::parse(&texts(&[entry])).unwrap_err();
            assert!(
                wrong.contains(part) && wrong.contains(entry),
                "{entry}: {wrong}"
            );
        }
        for (entry, part) in [
            ("prefix /a /b", "begins with none of 301"),
            ("300 prefix /a /b", "begins with none of 301"),
            (
                "301 regex ^/(.*)$ https://new.test{1}",
                "only {host} may be in the host",
            ),
            (
                "301 regex ^/(.*)$ https://{1}/",
                "only {host} may be in the host",
            ),
            ("301 regex ^/(.*)$ {1}", "the URL begins with `/`"),
            ("301 prefix /a ftp://x/", "the URL begins with `/`"),
            ("301 prefix /a {scheme}:{host}", "the URL begins with `/`"),
            ("301 prefix /a /{cache_status}", "is not known here"),
        ] {
            let wrong = Redirects::parse(&texts(&[entry])).unwrap_err();
            assert!(
                wrong.contains(part) && wrong.contains(entry),
                "{entry}: {wrong}"
            );
        }
    }
}
