//! Heads of requests and answers. They are parsed without any code of the proxy.

/// A start line and the fields below it, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Request line or status line.
    pub start: String,
    /// Names as received, and values without the surrounding blanks.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Parses the text of a head, without the empty line at its end.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Self { start, fields }
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = move |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        self.fields
            .iter()
            .filter(same)
            .map(|field| field.1.as_str())
    }

    /// The first value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let same = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        let field = self.fields.iter().find(same)?;
        Some(&field.1)
    }

    /// The status code of an answer; 0 if the start line has none.
    #[must_use]
    pub fn status(&self) -> u16 {
        let code = self.start.split(' ').nth(1);
        code.and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// The length that Content-Length announces.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.get("Content-Length")?.parse().ok()
    }

    /// True if the body is sent in chunks.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.get("Transfer-Encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_order_and_repetition() {
        let head = Head::parse("HTTP/1.1 404 Not Found\r\nA: 1\r\nb:  2 \r\na: 3");
        assert_eq!(head.status(), 404);
        assert_eq!(head.all("a").collect::<Vec<_>>(), ["1", "3"]);
        assert_eq!(head.get("B"), Some("2"));
    }
}
