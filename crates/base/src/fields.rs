//! Read access to header fields in any form of storage.

/// A list of header fields in order of appearance. Names keep the sender's spelling and are
/// compared without regard to case; values are trimmed of surrounding white space.
pub trait Fields {
    /// Number of fields.
    fn count(&self) -> usize;
    /// Name and value of field `i`; `i` must be below [`count`](Self::count).
    fn field(&self, i: usize) -> (&[u8], &[u8]);
}

impl<T: Fields + ?Sized> Fields for &T {
    fn count(&self) -> usize {
        (**self).count()
    }
    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        (**self).field(i)
    }
}

/// Fields in a slice of pairs. This is for tests and for fields that Foxy makes itself.
impl Fields for [(&[u8], &[u8])] {
    fn count(&self) -> usize {
        self.len()
    }
    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        self[i]
    }
}

/// Fields in a slice of pairs of string literals.
impl Fields for [(&str, &str)] {
    fn count(&self) -> usize {
        self.len()
    }
    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        (self[i].0.as_bytes(), self[i].1.as_bytes())
    }
}

/// Iterator over all fields.
#[derive(Debug)]
pub struct FieldsIter<'a, F: ?Sized> {
    fields: &'a F,
    next: usize,
}

impl<'a, F: Fields + ?Sized> FieldsIter<'a, F> {
    /// All fields of `fields`, in order.
    pub fn new(fields: &'a F) -> Self {
        Self { fields, next: 0 }
    }
}

impl<'a, F: Fields + ?Sized> Iterator for FieldsIter<'a, F> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.fields.count() {
            return None;
        }
        self.next += 1;
        Some(self.fields.field(self.next - 1))
    }
}

/// True if two field names are the same (ASCII case ignored, RFC 9110 section 5.1).
#[must_use]
#[inline]
pub fn eq_name(a: &[u8], b: &[u8]) -> bool {
    // Most names differ in length, so the lengths are compared before the bytes.
    a.len() == b.len() && a.eq_ignore_ascii_case(b)
}

/// The values of every field line called `name`, in order.
pub fn values<'a, F: Fields + ?Sized>(
    fields: &'a F,
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    FieldsIter::new(fields)
        .filter(move |(n, _)| eq_name(n, name.as_bytes()))
        .map(|(_, value)| value)
}

/// The value of the first field line called `name`.
pub fn first<'a, F: Fields + ?Sized>(fields: &'a F, name: &'a str) -> Option<&'a [u8]> {
    values(fields, name).next()
}

/// The comma-separated members of all field lines called `name`, trimmed, without empty members.
/// Quoted strings are not parsed, so use this for lists of tokens only.
pub fn tokens<'a, F: Fields + ?Sized>(
    fields: &'a F,
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    values(fields, name)
        .flat_map(|value| value.split(|b| *b == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ignore_case_and_lists_span_lines() {
        let fields: &[(&str, &str)] = &[
            ("Connection", "close, X-One"),
            ("Host", "a"),
            ("connection", " ,x-two,"),
        ];
        assert_eq!(first(fields, "HOST"), Some(&b"a"[..]));
        assert_eq!(values(fields, "connection").count(), 2);
        let listed: Vec<_> = tokens(fields, "Connection").collect();
        assert_eq!(listed, [&b"close"[..], b"X-One", b"x-two"]);
    }
}
