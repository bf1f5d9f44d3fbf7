//! Checks responses that an older Foxy stored under rules that were not strict enough. Records stay readable
//! for ever, so each such response is checked before each use. A refused response is a miss, and the next
//! answer replaces it.

use foxy_base::{Fields, first, rule};

use crate::facts::{CachingFacts, Flags};
use crate::heuristics;
use crate::reason::LifetimeSource;
use crate::status;

/// Updates the caching facts of a stored response to today's rules. Returns true if the response may be used,
/// that is, if the record proves that today's rules would have stored it. For a record of today's rules, the
/// call makes only one comparison.
#[inline]
pub fn admits<F: Fields + ?Sized>(facts: &mut CachingFacts, fields: &F) -> bool {
    !facts.flags.has(Flags::OLD_RULES) || judged(facts, fields)
}

#[cold]
fn judged<F: Fields + ?Sized>(facts: &mut CachingFacts, fields: &F) -> bool {
    let heuristic = facts.flags.has(Flags::HEURISTIC)
        // If the operator's bounds changed the lifetime, its source does not show whether it was heuristic.
        // Then it counts as heuristic.
        || matches!(facts.source, LifetimeSource::Minimum | LifetimeSource::Maximum);
    let fixed = heuristics::is_static(fields);
    let unsaid = heuristic || facts.source == LifetimeSource::None;
    facts.flags.set(Flags::STATIC_TYPE, unsaid && fixed);
    let raised = facts.source == LifetimeSource::Minimum && facts.status >= 400;
    // The origin may have selected the response by request fields that are not in the response's key.
    let variant = facts.flags.has(Flags::VARY);
    let cookie = first(fields, "Set-Cookie").is_some();
    // A record does not contain the method of its request. Stored answers to POST have a Content-Location, so
    // each response with a Content-Location may be an answer to POST.
    let post = first(fields, "Content-Location").is_some();
    let wrong = variant
        || cookie
        || post
        || heuristic && !fixed
        || raised
        || status::is_about_request(facts.status);
    rule!(
        "old records: what today's rules would not store is not used",
        !wrong,
        true
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fields, store};

    /// Caching facts as an older Foxy wrote them.
    fn old(status: u16, response: &str) -> CachingFacts {
        let mut bytes = store(status, response).unwrap().facts.encode();
        // An older Foxy wrote 0 as the generation of the rules. It did not know the flags from `STATIC_TYPE`
        // on.
        (bytes[6], bytes[3]) = (0, bytes[3] & 0x0f);
        CachingFacts::decode(&bytes).unwrap()
    }

    fn admitted<F: Fields + ?Sized>(mut facts: CachingFacts, fields: &F) -> Option<CachingFacts> {
        admits(&mut facts, fields).then_some(facts)
    }

    fn is_served(response: &str) -> bool {
        admitted(old(200, response), &fields(response)).is_some()
    }

    #[test]
    fn plain_responses_of_older_rules_are_served() {
        for response in [
            "Cache-Control: max-age=60",
            "Cache-Control: max-age=60 | ETag: \"a\" | Content-Type: text/html",
            "Expires: @60",
            "ETag: \"a\"",
            "Last-Modified: @-10000 | Content-Type: image/png",
        ] {
            assert!(is_served(response), "{response}");
        }
    }

    #[test]
    fn records_that_older_rules_stored_wrongly_are_refused() {
        for response in [
            "Cache-Control: public, max-age=60 | Set-Cookie: a=b",
            "Cache-Control: max-age=60 | Vary: X-Requested-With",
            "Cache-Control: max-age=60 | Content-Location: /a",
            "Last-Modified: @-10000 | Content-Type: text/html",
            "Last-Modified: @-10000",
        ] {
            assert!(!is_served(response), "{response}");
            let today = store(200, response).unwrap().facts;
            let again = admitted(today, &fields(response));
            assert_eq!(again, Some(today), "{response}");
        }
    }

    #[test]
    fn lifetimes_that_were_raised_or_lowered_may_have_been_heuristic() {
        for source in [LifetimeSource::Minimum, LifetimeSource::Maximum] {
            let facts = CachingFacts {
                source,
                ..old(200, "Cache-Control: max-age=60")
            };
            assert_eq!(admitted(facts, &fields("Content-Type: text/html")), None);
            let image = fields("Content-Type: image/png");
            assert!(admitted(facts, &image).is_some());
            let error = CachingFacts {
                status: 500,
                ..facts
            };
            let kept = admitted(error, &image).is_some();
            assert_eq!(kept, source == LifetimeSource::Maximum);
        }
        let early = CachingFacts {
            status: 425,
            ..old(200, "Cache-Control: max-age=60")
        };
        assert_eq!(admitted(early, &fields("")), None);
    }
}
