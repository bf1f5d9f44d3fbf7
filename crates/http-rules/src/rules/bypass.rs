//! Requests that bypass the cache because of a rule.

use foxy_base::{Fields, FieldsIter, eq_name};

use super::Pattern;
use crate::vary::cookies;

/// The conditions for a bypass. A request that bypasses the cache is not answered from the cache, and its
/// answer is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypass {
    /// True if all requests bypass the cache.
    pub always: bool,
    /// Names of fields: requests with one of these fields bypass the cache. If there is a pattern,
    /// the value must also match it.
    pub fields: Vec<(String, Option<Pattern>)>,
    /// Patterns of cookie names: requests with one of these cookies bypass the cache.
    pub cookies: Vec<Pattern>,
}

/// The reason why a request bypassed the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassWhy {
    /// The rule covers all requests.
    Always,
    /// The request has a field that the rule names.
    Field,
    /// The request has a cookie that the rule names.
    Cookie,
    /// An access rule requires the bypass.
    Access,
}

impl BypassWhy {
    /// The stable word for this reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "rule-bypass",
            Self::Field => "rule-bypass-header",
            Self::Cookie => "rule-bypass-cookie",
            Self::Access => "access-rule-bypass",
        }
    }
}

impl Bypass {
    /// The reason why a request bypasses the cache; `None` if it does not.
    pub fn of<F: Fields + ?Sized>(&self, request: &F) -> Option<BypassWhy> {
        if self.always {
            return Some(BypassWhy::Always);
        }
        let fits = |name: &[u8], value: &[u8]| {
            self.fields.iter().any(|(wanted, pattern)| {
                eq_name(name, wanted.as_bytes()) && pattern.as_ref().is_none_or(|p| p.fits(value))
            })
        };
        if !self.fields.is_empty() && FieldsIter::new(request).any(|(n, v)| fits(n, v)) {
            return Some(BypassWhy::Field);
        }
        let listed = |name: &[u8]| self.cookies.iter().any(|pattern| pattern.fits(name));
        (!self.cookies.is_empty() && cookies(request).any(|(name, _)| listed(name)))
            .then_some(BypassWhy::Cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn fields_and_cookies_send_requests_past_the_cache() {
        let bypass = Bypass {
            always: false,
            fields: vec![
                ("X-Preview".into(), None),
                ("User-Agent".into(), Some(Pattern::new("*curl*"))),
            ],
            cookies: vec![Pattern::new("sess*")],
        };
        for (request, why) in [
            ("", None),
            ("x-preview: 0", Some(BypassWhy::Field)),
            ("User-Agent: curl/8", Some(BypassWhy::Field)),
            ("User-Agent: firefox", None),
            ("Cookie: a=1; session=2", Some(BypassWhy::Cookie)),
            ("Cookie: a=session", None),
            ("Cookie: a=1 | Cookie: sess=", Some(BypassWhy::Cookie)),
        ] {
            assert_eq!(bypass.of(&fields(request)), why, "{request}");
        }
        let always = Bypass {
            always: true,
            ..Bypass::default()
        };
        assert_eq!(always.of(&fields("")), Some(BypassWhy::Always));
        assert_eq!(Bypass::default().of(&fields("Cookie: a=1")), None);
    }
}
