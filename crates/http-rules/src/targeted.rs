//! Targeted cache control (RFC 9213): a Structured Field dictionary, parsed strictly. A field counts as
//! absent if it cannot be parsed, or if a known directive has a wrong type.

use foxy_base::{Fields, values};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::cache_control::{ControlSource, ResponseControl};
use crate::text::DELTA_MAX;

/// The directives of the targeted field `name`; `None` if the field is absent, empty or invalid.
pub(crate) fn read<F: Fields + ?Sized>(fields: &F, name: &str) -> Option<ResponseControl> {
    let mut lines = values(fields, name);
    let first = lines.next()?;
    let dictionary = match lines.next() {
        None => parse(first)?,
        Some(second) => parse(&joined(first, second, lines))?,
    };
    if dictionary.is_empty() {
        return None;
    }
    let mut control = ResponseControl {
        source: ControlSource::Targeted,
        ..ResponseControl::default()
    };
    for (key, entry) in &dictionary {
        add(&mut control, key.as_str(), entry)?;
    }
    Some(control)
}

fn parse(text: &[u8]) -> Option<Dictionary> {
    Parser::new(text).parse().ok()
}

/// Joins several lines into one list (RFC 9651 section 4.2).
fn joined<'a>(first: &[u8], second: &[u8], more: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = [first, b", ", second].concat();
    for line in more {
        text.extend_from_slice(b", ");
        text.extend_from_slice(line);
    }
    text
}

/// Adds one member to the directives; `None` if a known directive has a wrong type.
fn add(control: &mut ResponseControl, key: &str, entry: &ListEntry) -> Option<()> {
    match key {
        "max-age" => control.max_age = Some(seconds(entry)?),
        "s-maxage" => control.s_maxage = Some(seconds(entry)?),
        "stale-while-revalidate" => control.stale_while_revalidate = Some(seconds(entry)?),
        "stale-if-error" => control.stale_if_error = Some(seconds(entry)?),
        "no-store" => control.no_store = truth(entry)?,
        "no-cache" => control.no_cache = truth_or_list(entry)?,
        "private" => control.private = truth_or_list(entry)?,
        "public" => control.public = truth(entry)?,
        "must-revalidate" => control.must_revalidate = truth(entry)?,
        "proxy-revalidate" => control.proxy_revalidate = truth(entry)?,
        "must-understand" => control.must_understand = truth(entry)?,
        "immutable" => control.immutable = truth(entry)?,
        _ => {}
    }
    Some(())
}

fn seconds(entry: &ListEntry) -> Option<u32> {
    let ListEntry::Item(item) = entry else {
        return None;
    };
    let BareItem::Integer(number) = item.bare_item else {
        return None;
    };
    let number = u64::try_from(i64::from(number)).ok()?;
    Some(u32::try_from(number).map_or(DELTA_MAX, |n| n.min(DELTA_MAX)))
}

fn truth(entry: &ListEntry) -> Option<bool> {
    let ListEntry::Item(item) = entry else {
        return None;
    };
    let BareItem::Boolean(on) = item.bare_item else {
        return None;
    };
    Some(on)
}

/// Reads `no-cache` or `private`. They may have a list of fields as a string. Even then they count for the
/// complete response, which is the safe interpretation.
fn truth_or_list(entry: &ListEntry) -> Option<bool> {
    match entry {
        ListEntry::Item(item) if matches!(item.bare_item, BareItem::String(_)) => Some(true),
        _ => truth(entry),
    }
}

#[cfg(test)]
mod tests;
