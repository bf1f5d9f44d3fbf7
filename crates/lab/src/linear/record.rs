//! The history of one URL, and the rules that its answers must follow (the module `linear` lists them).
//!
//! All times are microseconds of one clock, because the origin, the clients and the oracle are in one
//! process.

use std::fmt;

/// Greatest number of events that are printed for a violation.
const SHOWN: usize = 40;

/// Kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseKind {
    Whole,
    Part(u64, u64),
    NotModified,
    Head,
}

/// An event in the history of a URL.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The origin has a new version.
    Published { at: u64, version: u64 },
    /// The origin chose the version of an answer.
    Fetched { at: u64, version: u64, what: String },
    /// An acknowledged change: requests that begin later get this version or a newer version.
    Acknowledged {
        began: u64,
        ended: u64,
        version: u64,
        what: String,
    },
    /// An answer that was received completely.
    Served {
        began: u64,
        ended: u64,
        version: u64,
        kind: ResponseKind,
        cache: String,
    },
}

impl Event {
    fn ended(&self) -> u64 {
        match self {
            Self::Published { at, .. } | Self::Fetched { at, .. } => *at,
            Self::Acknowledged { ended, .. } | Self::Served { ended, .. } => *ended,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |us: u64| us as f64 / 1e6;
        match self {
            Self::Published { at, version } => {
                write!(f, "{:12.6}               published {version}", s(*at))
            }
            Self::Fetched { at, version, what } => {
                write!(
                    f,
                    "{:12.6}               origin gives {version}: {what}",
                    s(*at)
                )
            }
            Self::Acknowledged {
                began,
                ended,
                version,
                what,
            } => write!(
                f,
                "{:12.6}-{:12.6}  {what} acknowledged: not below {version}",
                s(*began),
                s(*ended)
            ),
            Self::Served {
                began,
                ended,
                version,
                kind,
                cache,
            } => write!(
                f,
                "{:12.6}-{:12.6}  served {version} {kind:?}: {cache}",
                s(*began),
                s(*ended)
            ),
        }
    }
}

/// The history of one URL.
#[derive(Debug, Default)]
pub(super) struct Record {
    events: Vec<Event>,
}

/// An answer that breaks a rule.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) rule: &'static str,
    pub(super) text: String,
}

/// A series of pairs `(time, version)`, in which times and versions ascend. `version` is the greatest version
/// of all events up to `time`.
struct Known(Vec<(u64, u64)>);

impl Known {
    fn new(mut all: Vec<(u64, u64)>) -> Self {
        all.sort_unstable();
        let mut best = 0;
        for (_, version) in &mut all {
            best = best.max(*version);
            *version = best;
        }
        Self(all)
    }

    /// The greatest version of all events before `time`; 0 if there are none.
    fn before(&self, time: u64) -> u64 {
        let at = self.0.partition_point(|(known, _)| *known < time);
        at.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

impl Record {
    pub(super) fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) fn published(&mut self, at: u64, version: u64) {
        self.note(Event::Published { at, version });
    }

    /// Number of answers.
    pub(super) fn answers(&self) -> usize {
        let served = |event: &&Event| matches!(event, Event::Served { .. });
        self.events.iter().filter(served).count()
    }

    /// Checks every answer against the rules. `validated`: answers for this URL must be validated at each
    /// use.
    pub(super) fn check(&self, validated: bool) -> Vec<Violation> {
        let collect = |pick: &dyn Fn(&Event) -> Option<(u64, u64)>| {
            Known::new(self.events.iter().filter_map(pick).collect())
        };
        let acknowledged = collect(&|event| match event {
            Event::Acknowledged { ended, version, .. } => Some((*ended, *version)),
            _ => None,
        });
        let whole = collect(&|event| match event {
            Event::Served {
                ended,
                version,
                kind: ResponseKind::Whole,
                ..
            } => Some((*ended, *version)),
            _ => None,
        });
        let published = collect(&|event| match event {
            Event::Published { at, version } => Some((*at, *version)),
            _ => None,
        });
        let mut found = Vec::new();
        for event in &self.events {
            let Event::Served { began, version, .. } = event else {
                continue;
            };
            let rules = [
                ("below an acknowledged change", acknowledged.before(*began)),
                ("behind what was served whole", whole.before(*began)),
                (
                    "not validated",
                    if validated {
                        published.before(*began)
                    } else {
                        0
                    },
                ),
            ];
            for (rule, least) in rules {
                if *version < least {
                    found.push(self.violation(rule, least, event));
                }
            }
        }
        found
    }

    fn violation(&self, rule: &'static str, least: u64, event: &Event) -> Violation {
        let mut before: Vec<&Event> = self
            .events
            .iter()
            .filter(|other| other.ended() <= event.ended())
            .collect();
        before.sort_by_key(|event| event.ended());
        let from = before.len().saturating_sub(SHOWN);
        let lines: Vec<String> = before[from..]
            .iter()
            .map(|event| event.to_string())
            .collect();
        Violation {
            rule,
            text: format!("not below {least} expected\n    {}", lines.join("\n    ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(began: u64, ended: u64, version: u64) -> Event {
        Event::Served {
            began,
            ended,
            version,
            kind: ResponseKind::Whole,
            cache: String::new(),
        }
    }

    fn rules(events: Vec<Event>, validated: bool) -> Vec<&'static str> {
        let found = Record { events }.check(validated);
        found.iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn answers_that_overlap_may_be_of_any_order() {
        assert!(rules(vec![served(0, 10, 2), served(5, 20, 1)], false).is_empty());
        let back = rules(vec![served(0, 10, 2), served(11, 20, 1)], false);
        assert_eq!(back, ["behind what was served whole"]);
    }

    #[test]
    fn a_change_counts_from_its_acknowledgement() {
        let change = Event::Acknowledged {
            began: 5,
            ended: 10,
            version: 2,
            what: String::new(),
        };
        let with = |event| vec![change.clone(), event];
        assert!(rules(with(served(9, 30, 1)), false).is_empty());
        let old = rules(with(served(11, 30, 1)), false);
        assert_eq!(old, ["below an acknowledged change"]);
        assert!(rules(with(served(11, 30, 2)), false).is_empty());
    }

    #[test]
    fn answers_that_need_validation_are_as_new_as_the_request() {
        let published = Event::Published { at: 10, version: 2 };
        let with = |event| vec![published.clone(), event];
        assert!(rules(with(served(9, 30, 1)), true).is_empty());
        assert!(rules(with(served(11, 30, 1)), false).is_empty());
        assert_eq!(rules(with(served(11, 30, 1)), true), ["not validated"]);
    }
}
