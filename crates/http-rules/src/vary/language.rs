//! Serves a stored translation to a request that prefers the same language, but has another
//! Accept-Language.

use foxy_base::{Fields, eq_name, first, rule, values};

use super::normal::{Compare, Sink, Weighted};
use super::{names, write_value};
use crate::text::members;

/// True if a stored variant that does not [`match`](super::matches) may still be used as the answer. The only
/// difference must be Accept-Language, and the language that the request prefers most must be exactly the
/// stored response's Content-Language. The origin has sent that language before, so it has no better answer
/// for this request.
pub fn satisfied_by_language<S, F>(
    list: &[u8],
    stored_values: &[u8],
    stored: &S,
    request: &F,
) -> bool
where
    S: Fields + ?Sized,
    F: Fields + ?Sized,
{
    let (Some(language), Some(wanted)) = (only_language(stored), preferred(request)) else {
        return false;
    };
    wanted.eq_ignore_ascii_case(language)
        && rule!(
            "vary: a known language is enough only if all else is alike",
            others_match(list, stored_values, request),
            true
        )
}

/// The Content-Language, if there is exactly one.
fn only_language<S: Fields + ?Sized>(stored: &S) -> Option<&[u8]> {
    let one = values(stored, "Content-Language").flat_map(members).count() == 1;
    first(stored, "Content-Language").filter(|_| one)
}

/// The language with the highest weight; `None` if several languages have that weight, or if `*` has it.
fn preferred<F: Fields + ?Sized>(request: &F) -> Option<&[u8]> {
    let mut best: Option<Weighted<'_>> = None;
    let mut shared = false;
    for member in values(request, "Accept-Language").flat_map(members) {
        let member = Weighted::parse(member)?;
        let most = best.map_or(0, |b| b.weight);
        shared = shared && member.weight <= most || best.is_some() && member.weight == most;
        if member.weight > most {
            best = Some(member);
        }
    }
    best.filter(|b| !shared && b.text != b"*").map(|b| b.text)
}

/// True if all listed fields except Accept-Language match.
fn others_match<F: Fields + ?Sized>(list: &[u8], stored_values: &[u8], request: &F) -> bool {
    let mut lines = stored_values.split_inclusive(|b| *b == b'\n');
    names(list).all(|name| {
        let Some(line) = lines.next() else {
            return false;
        };
        if eq_name(name, b"accept-language") {
            return true;
        }
        let mut compare = Compare::new(line);
        write_value(name, request, &mut compare);
        compare.put(b"");
        compare.equal()
    })
}
