//! The Vary field of a response (RFC 9111 section 4.1, RFC 9110 section 12.5.5). It lists fields of requests.
//! The values of these fields in a request are the selecting values. This module reads the list, writes the
//! selecting values in a canonical form, and compares stored values with the values of a request. The
//! comparison allocates no memory.
//!
//! The canonical form is text, one line per listed field in the list's order: `name=value` if the request has
//! the field, else `name`. Two requests match under a list if and only if their canonical forms are equal, so
//! the form serves as part of a variant's key.
//!
//! An operator's rule can add parts to a response's own list: further fields, and single cookies, written
//! `cookie:NAME` (no field name has a colon). These parts select variants like the fields of the response's
//! list.

mod cookie;
mod language;
mod normal;

use foxy_base::{Fields, eq_name, rule, tokens};

use crate::text::members;
pub(crate) use cookie::cookies;
pub use language::satisfied_by_language;
use normal::{Compare, Sink};

/// The Vary of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// There is no Vary, or it is empty.
    None,
    /// Vary contains `*`: no later request matches.
    Star,
    /// A list of fields.
    List(VaryList),
}

/// A canonical Vary list: names in lower case, in ascending order, without duplicates, joined by commas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VaryList(Vec<u8>);

impl VaryList {
    /// The bytes of the list, as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Number of names in the list.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a list is never empty")]
    pub fn len(&self) -> usize {
        names(&self.0).count()
    }
}

/// Reads all Vary lines of a response.
pub fn of<F: Fields + ?Sized>(fields: &F) -> Vary {
    of_with(fields, &[])
}

/// Does the same as [`of`], and includes the parts that an operator's rule adds ([`Config::key_parts`]).
///
/// [`Config::key_parts`]: crate::Config::key_parts
pub fn of_with<F: Fields + ?Sized>(fields: &F, parts: &[String]) -> Vary {
    if parts.is_empty() {
        // Usually there is no Vary, or it has a single name. These cases need no list of names.
        let mut listed = tokens(fields, "Vary");
        match (listed.next(), listed.next()) {
            (None, _) => return Vary::None,
            (Some(b"*"), _) => return Vary::Star,
            (Some(name), None) => return Vary::List(VaryList(name.to_ascii_lowercase())),
            _ => {}
        }
    }
    let mut names: Vec<Vec<u8>> = parts.iter().map(|part| part.clone().into_bytes()).collect();
    for name in tokens(fields, "Vary") {
        if name == b"*" {
            return Vary::Star;
        }
        names.push(name.to_ascii_lowercase());
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        Vary::None
    } else {
        Vary::List(VaryList(names.join(&b',')))
    }
}

/// True if a stored list has all the parts that a rule requires. A response that was stored before the rule
/// existed does not have these parts, and answers no request.
#[must_use]
pub fn has_parts(list: &[u8], parts: &[String]) -> bool {
    let has = |part: &String| names(list).any(|name| name == part.as_bytes());
    rule!(
        "vary: what lacks a part of the key that a rule wants is no answer",
        parts.iter().all(has),
        true
    )
}

/// The names of the request fields of a stored list; a single cookie counts as the field `cookie`.
pub fn field_names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    names(list).map(|name| match name.starts_with(cookie::PREFIX) {
        true => &cookie::PREFIX[..cookie::PREFIX.len() - 1],
        false => name,
    })
}

/// The names in a stored list.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| *b == b',').filter(|name| !name.is_empty())
}

/// Appends the selecting values of a request under a stored list, in canonical form.
pub fn selecting_values<F: Fields + ?Sized>(list: &[u8], request: &F, out: &mut Vec<u8>) {
    write_values(list, request, out);
}

/// True if a request selects the variant that was stored with `values` under `list`. Allocates no memory.
pub fn matches<F: Fields + ?Sized>(list: &[u8], values: &[u8], request: &F) -> bool {
    let mut compare = Compare::new(values);
    write_values(list, request, &mut compare);
    rule!(
        "vary: a variant is for requests with its values",
        compare.equal(),
        true
    )
}

fn write_values<F: Fields + ?Sized, S: Sink>(list: &[u8], request: &F, out: &mut S) {
    for name in names(list) {
        write_value(name, request, out);
    }
}

/// The lines of the request field that has this name. The name comes from a stored list.
fn values_of<'a, F: Fields + ?Sized>(
    name: &'a [u8],
    request: &'a F,
) -> impl Iterator<Item = &'a [u8]> {
    foxy_base::FieldsIter::new(request)
        .filter(move |(other, _)| eq_name(other, name))
        .map(|(_, line)| line)
}

fn write_value<F: Fields + ?Sized, S: Sink>(name: &[u8], request: &F, out: &mut S) {
    out.put(name);
    if let Some(cookie) = name.strip_prefix(cookie::PREFIX) {
        if let Some(value) = cookie::value(cookie, request) {
            out.put(b"=");
            out.put(value);
        }
        out.put(b"\n");
        return;
    }
    let own = |(other, line)| eq_name(other, name).then_some(line);
    let mut lines = foxy_base::FieldsIter::new(request).filter_map(own);
    if !normal::is_list(name) {
        if let Some(line) = lines.next() {
            out.put(b"=");
            match lines.next() {
                None => normal::write_exact(name, || std::iter::once(line), out),
                Some(_) => normal::write_exact(name, || values_of(name, request), out),
            }
        }
    } else if let Some(line) = lines.next() {
        out.put(b"=");
        // Nearly always there is one line. Then one pass over the fields is enough.
        match lines.next() {
            None => normal::write(name, || members(line), out),
            Some(_) => normal::write(name, || normal::all_members(name, request), out),
        }
    }
    out.put(b"\n");
}

#[cfg(test)]
mod tests;
