//! Parameters in the query of a URL.

/// Returns a decoded parameter of a query. A `+` is a plus sign. It does not stand for a blank as in HTML
/// forms.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let value = values(query, name).next()?;
    decoded(value)
}

/// Returns all parameters of that name. Values that cannot be decoded are left out.
pub(super) fn parameters(query: &str, name: &str) -> Vec<String> {
    values(query, name).filter_map(decoded).collect()
}

fn values<'q>(query: &'q str, name: &str) -> impl Iterator<Item = &'q str> {
    query
        .split('&')
        .filter_map(move |pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn decoded(value: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = "url=http%3A%2F%2Fa%2Fb%3Fc+d&site=www";
        assert_eq!(parameter(query, "url").as_deref(), Some("http://a/b?c+d"));
        assert_eq!(parameter(query, "site").as_deref(), Some("www"));
        assert_eq!(parameter(query, "ur"), None);
        assert_eq!(parameters("h=a&h=b%3A&x=c", "h"), ["a", "b:"]);
        assert_eq!(parameter("url=%", "url"), None);
        assert_eq!(parameter("url=%zz", "url"), None);
    }
}
