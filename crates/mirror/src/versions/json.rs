//! JSON as slices of its text: names and values of one object, or elements of one list. The contents of
//! values are skipped.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{TOO_MANY, UNREADABLE, Unreadable};

/// Largest number of names in one object, or of elements in one list. No package of a registry has more
/// versions.
pub(super) const MOST: usize = 200_000;

/// Name and value of a member of an object.
pub(super) type Member<'a> = (Cow<'a, str>, &'a RawValue);

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Members<'a>(PhantomData<&'a ()>);

impl<'a> Visitor<'a> for Members<'a> {
    type Value = Option<Vec<Member<'a>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some((Text(name), value)) = map.next_entry()? {
            if all.len() == MOST {
                // The remaining members are read, so that the end of the object is found.
                while map.next_entry::<Text<'_>, &RawValue>()?.is_some() {}
                return Ok(None);
            }
            all.push((name, value));
        }
        Ok(Some(all))
    }
}

struct Elements<'a>(PhantomData<&'a ()>);

impl<'a> Visitor<'a> for Elements<'a> {
    type Value = Option<Vec<&'a RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element()? {
            if all.len() == MOST {
                while list.next_element::<&RawValue>()?.is_some() {}
                return Ok(None);
            }
            all.push(value);
        }
        Ok(Some(all))
    }
}

/// Returns the members of an object.
pub(super) fn members(text: &str) -> Result<Vec<Member<'_>>, Unreadable> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_map(Members(PhantomData));
    let all = read.map_err(|_| UNREADABLE)?;
    reader.end().map_err(|_| UNREADABLE)?;
    all.ok_or(TOO_MANY)
}

/// Returns the elements of a list.
pub(super) fn elements(text: &str) -> Result<Vec<&RawValue>, Unreadable> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_seq(Elements(PhantomData));
    let all = read.map_err(|_| UNREADABLE)?;
    reader.end().map_err(|_| UNREADABLE)?;
    all.ok_or(TOO_MANY)
}

/// Returns the text of a JSON string. Returns `None` if the value is not a string.
pub(super) fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let read: Result<Text<'_>, _> = serde_json::from_str(value.get());
    read.ok().map(|Text(text)| text)
}

/// Writes a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the value of a name. A name that occurs twice is an error, because clients differ in the value
/// that they use.
pub(super) fn only<'a>(
    members: &[Member<'a>],
    name: &str,
) -> Result<Option<&'a RawValue>, Unreadable> {
    let mut found = members.iter().filter(|(own, _)| own == name);
    let first = found.next().map(|(_, value)| *value);
    match found.next() {
        None => Ok(first),
        Some(_) => Err(UNREADABLE),
    }
}

/// Returns the range of `part` in `text`.
pub(super) fn range_of(text: &str, part: &RawValue) -> Range<usize> {
    let part = part.get();
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}
