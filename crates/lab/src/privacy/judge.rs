//! Finds the request for which each part of an answer was made. If a part was made for another request, the
//! table decides whether the answer may contain this part.

use std::collections::BTreeSet;

use super::cell::{Exchange, Person};
use super::mark::{self, Part};
use super::site::Site;
use super::table::{Set, Sharing, Timing};
use crate::kit::Answer;

/// Judgement of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// True if the fields or the body of the answer were made for another request.
    pub(super) shared: bool,
    /// Parts that were made for another request, and that the table forbids to share.
    pub(super) foreign: BTreeSet<&'static str>,
    /// The reason why the request got no answer of the origin.
    pub(super) missing: Option<String>,
}

/// Judges one request of a cell. `cell` contains all requests of the cell.
pub(super) fn judge(
    set: &Set,
    timing: Timing,
    path: &str,
    exchange: &Exchange,
    cell: &[Exchange],
    site: &Site,
) -> Verdict {
    let mut verdict = Verdict::default();
    let answer = match &exchange.answer {
        Ok(answer) => answer,
        Err(problem) => {
            verdict.missing = Some(problem.clone());
            return verdict;
        }
    };
    verdict.missing = missing(answer, set);
    let own = &exchange.person;
    let confirmed = site.confirmed(own.id);
    let permits = |from: &Person, part: Part| match (set.sharing(timing, from.pair(own)), part) {
        (_, Part::Interim) | (Sharing::No, _) => false,
        (Sharing::NotTheField, part) => part != Part::Secret,
        (Sharing::Yes | Sharing::May, _) => true,
        (Sharing::Validated, _) => confirmed.as_deref() == Some(from.user.as_str()),
    };
    for (part, mark) in mark::found(answer) {
        if mark.id == own.id {
            continue;
        }
        verdict.shared |= part == Part::Body || part == Part::Fields;
        let from = cell.iter().map(|e| &e.person).find(|p| p.id == mark.id);
        if !from.is_some_and(|from| permits(from, part)) {
            verdict.foreign.insert(part.name());
        }
    }
    if let Some(user) = mark::tagged(&answer.head).filter(|user| *user != own.user) {
        let from = cell.iter().map(|e| &e.person).find(|p| p.user == user);
        if !from.is_some_and(|from| permits(from, Part::Tag)) {
            verdict.foreign.insert(Part::Tag.name());
        }
    }
    if !mark::is_of(answer, path) {
        verdict.foreign.insert("another page");
    }
    verdict
}

/// Returns a reason if the answer is the proxy's own error or has a truncated body.
fn missing(answer: &Answer, set: &Set) -> Option<String> {
    let status = answer.head.status();
    let of_origin = answer.head.get(mark::FIELD).is_some() || status == 304;
    // If the origin answers with an error, waiting requests may get the proxy's own error in place of the
    // origin's page. So such an answer does not count as missing.
    let own_error = set.status >= 500 && status >= 500;
    if !of_origin && !own_error && status != set.status {
        return Some(format!("status {status} of the proxy"));
    }
    (!answer.whole).then(|| "body cut short".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::cell::Shows;
    use super::super::mark::Mark;
    use super::super::table::table;
    use super::*;
    use crate::kit::Head;

    fn exchange(id: u64, user: &str, made_for: &Mark) -> Exchange {
        let fields = format!("HTTP/1.1 200 OK\r\n{}: {made_for}", mark::FIELD);
        Exchange {
            person: Person {
                id,
                user: user.to_owned(),
                shows: Shows::Cookie,
            },
            answer: Ok(Answer {
                head: Head::parse(&fields),
                body: mark::body(made_for, "/p"),
                whole: true,
                ..Answer::default()
            }),
        }
    }

    fn foreign(name: &str, second: u64) -> (bool, usize) {
        let sets = table().unwrap();
        let set = sets.iter().find(|set| set.name == name).unwrap();
        let mark = |user: &str, id| Mark {
            user: user.to_owned(),
            id,
        };
        let made_for = if second == 1 { "u1" } else { "u2" };
        let cell = [
            exchange(1, "u1", &mark("u1", 1)),
            exchange(2, "u2", &mark(made_for, second)),
        ];
        let site = Site::new(1_000_000);
        let verdict = judge(set, Timing::Concurrent, "/p", &cell[1], &cell, &site);
        (verdict.shared, verdict.foreign.len())
    }

    #[test]
    fn the_table_decides() {
        assert_eq!(foreign("max-age", 1), (true, 0));
        assert_eq!(foreign("etag-alone", 1), (true, 2));
        assert_eq!(foreign("private-max-age", 1), (true, 2));
        assert_eq!(foreign("private-max-age", 2), (false, 0));
    }
}
