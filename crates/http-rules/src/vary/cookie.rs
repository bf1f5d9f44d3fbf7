//! Single cookies as selecting values: a rule can select among stored responses by the values of such
//! cookies.

use foxy_base::{Fields, values};

/// Prefix of a cookie's name in a list of selecting fields.
pub(super) const PREFIX: &[u8] = b"cookie:";

/// The names and values of a request's cookies, in order.
pub(crate) fn cookies<F: Fields + ?Sized>(request: &F) -> impl Iterator<Item = (&[u8], &[u8])> {
    values(request, "Cookie")
        .flat_map(|line| line.split(|b| *b == b';'))
        .map(<[u8]>::trim_ascii)
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.iter().position(|b| *b == b'=') {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &pair[pair.len()..]),
        })
}

/// The value of the first cookie with this name.
pub(super) fn value<'a, F: Fields + ?Sized>(name: &[u8], request: &'a F) -> Option<&'a [u8]> {
    cookies(request).find(|(n, _)| *n == name).map(|(_, v)| v)
}

#[cfg(test)]
mod tests {
    use crate::testing::fields;
    use crate::vary::{Vary, has_parts, matches, of_with, selecting_values};

    #[test]
    fn single_cookies_select_variants() {
        let parts = ["cookie:Lang".to_owned(), "x-device".to_owned()];
        let Vary::List(list) = of_with(&fields("Vary: Accept"), &parts) else {
            panic!("a list");
        };
        assert_eq!(list.as_bytes(), b"accept,cookie:Lang,x-device");
        assert!(has_parts(list.as_bytes(), &parts));
        assert!(!has_parts(b"accept,x-device", &parts) && !has_parts(b"", &parts));
        let german = fields("Cookie: a=1; Lang=de; b=2 | X-Device: tv");
        let mut values = Vec::new();
        selecting_values(list.as_bytes(), &german, &mut values);
        assert_eq!(values, b"accept\ncookie:Lang=de\nx-device=tv\n");
        for (request, same) in [
            ("Cookie: Lang=de | X-Device: tv", true),
            ("Cookie: x=y | Cookie: Lang=de | X-Device: tv", true),
            ("Cookie: Lang=de; Lang=en | X-Device: tv", true),
            ("Cookie: lang=de | X-Device: tv", false),
            ("Cookie: Lang=en | X-Device: tv", false),
            ("Cookie: Lang | X-Device: tv", false),
            ("X-Device: tv", false),
            ("Cookie: Lang=de", false),
        ] {
            let selected = matches(list.as_bytes(), &values, &fields(request));
            assert_eq!(selected, same, "{request}");
        }
    }

    #[test]
    fn a_cookie_without_value_is_another_than_none() {
        let list = b"cookie:a";
        let of = |request: &str| {
            let mut values = Vec::new();
            selecting_values(list, &fields(request), &mut values);
            values
        };
        assert_ne!(of("Cookie: a="), of("Cookie: b="));
        assert_eq!(of("Cookie: a="), of("Cookie: a"));
    }
}
