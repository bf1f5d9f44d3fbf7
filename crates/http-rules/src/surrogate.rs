//! Surrogate-Control (W3C Note "Edge Architecture", 2001): an old way for an origin to give directives to a
//! cache in front of a site (a surrogate). It is parsed like Cache-Control, but a directive may be addressed
//! to one surrogate by its name: `max-age=60, max-age=600;foxy`.

use foxy_base::{Fields, values};

use crate::cache_control::{ControlSource, ResponseControl};
use crate::text::{closing_quote, directives, members};

const FIELD: &str = "Surrogate-Control";

/// The directives for the surrogate called `token`. If any directives are addressed to this surrogate, only
/// these directives count. Otherwise, only the directives without an address count. `None` if no directive
/// counts.
pub(crate) fn read<F: Fields + ?Sized>(fields: &F, token: &str) -> Option<ResponseControl> {
    let own = read_for(fields, |target| {
        target.is_some_and(|t| t.eq_ignore_ascii_case(token.as_bytes()))
    });
    own.or_else(|| read_for(fields, |target| target.is_none()))
}

fn read_for<F: Fields + ?Sized>(
    fields: &F,
    concerns: impl Fn(Option<&[u8]>) -> bool,
) -> Option<ResponseControl> {
    let mut found = None;
    for member in values(fields, FIELD).flat_map(members) {
        let (directive, target) = split_target(member);
        if concerns(target) {
            let control = found.get_or_insert_with(ResponseControl::default);
            directives(directive).for_each(|d| control.add(&d));
        }
    }
    found.map(|control| ResponseControl {
        source: ControlSource::Surrogate,
        ..control
    })
}

/// Splits a member into the directive and the name of the surrogate to which the directive is addressed. The
/// name is the text after the first `;` outside of quotes.
fn split_target(member: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while at < member.len() {
        match member[at] {
            b';' => {
                let (directive, target) = (&member[..at], &member[at + 1..]);
                return (directive.trim_ascii(), Some(target.trim_ascii()));
            }
            b'"' => at = closing_quote(member, at).unwrap_or(at) + 1,
            _ => at += 1,
        }
    }
    (member, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn directives_may_be_addressed_to_one_surrogate() {
        for (line, max_age) in [
            ("max-age=60", Some(Some(60))),
            ("max-age=60;foxy", Some(Some(60))),
            ("max-age=60 ; Foxy", Some(Some(60))),
            ("max-age=60;other", None),
            ("max-age=60, max-age=600;foxy", Some(Some(600))),
            ("max-age=600;foxy, max-age=60;other", Some(Some(600))),
            ("max-age=60, no-store;other", Some(Some(60))),
            ("content=\"a;foxy\"", Some(None)),
            ("max-age=60;", None),
            ("", None),
        ] {
            let read = read(&fields(&format!("Surrogate-Control: {line}")), "foxy");
            assert_eq!(read.map(|control| control.max_age), max_age, "{line}");
        }
        let no_store = read(&fields("Surrogate-Control: no-store;foxy"), "foxy");
        assert!(no_store.is_some_and(|control| control.no_store));
        assert_eq!(read(&fields(""), "foxy"), None);
    }
}
