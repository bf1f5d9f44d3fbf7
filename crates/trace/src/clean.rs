//! Preparation of a log as each paper describes it, with counts of the dropped requests.
//!
//! - *hummingbird* (Gabber and others 1999): keeps GETs that may be cached. An answer of 304 gets the size of
//!   the object's last answer that had a size. Records whose size remains unknown are dropped.
//! - *ucfs* (IEEE Transactions on Computers 51(9)): keeps only requests that may be cached. Dynamic pages,
//!   refused requests and reloads forced by the client are dropped.
//! - *dec* (Cao and Irani, USITS'97): keeps GETs and HEADs that were answered by 200, 203, 206, 300, 301 or
//!   304, if their URL contains neither a query nor `cgi`.

use std::collections::HashMap;
use std::fmt;

use crate::{Flags, Method, Request};

/// Rules of preparation, named after their publications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rule {
    /// The ISP log of Hummingbird
    Hummingbird,
    /// The NLANR logs of UCFS
    Ucfs,
    /// The DEC trace
    Dec,
}

/// Reasons for dropping a request, in the order of the counts in `Clean::dropped`.
const REASONS: [&str; 6] = [
    "not GET (or HEAD)",
    "may not be cached",
    "dynamic (query or cgi)",
    "denied, or failed",
    "reload forced by the client",
    "size not known",
];

/// A preparation of one log: its rule, its state and its counts so far.
#[derive(Debug)]
pub struct Clean {
    rule: Rule,
    /// The last known size of each object. A later answer of 304 gets this size.
    sizes: HashMap<u64, u64>,
    kept: u64,
    filled: u64,
    dropped: [u64; REASONS.len()],
}

impl Clean {
    /// Creates a preparation that has seen no request.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            sizes: HashMap::new(),
            kept: 0,
            filled: 0,
            dropped: [0; REASONS.len()],
        }
    }

    /// Returns the prepared request; `None` if the request is dropped.
    pub fn request(&mut self, mut request: Request) -> Option<Request> {
        if request.size > 0 && request.status != 304 {
            self.sizes.insert(request.object, request.size);
        }
        if request.status == 304
            && let Some(size) = self.sizes.get(&request.object)
        {
            self.filled += 1;
            request.size = *size;
        }
        match self.reason(&request) {
            Some(reason) => {
                self.dropped[reason] += 1;
                None
            }
            None => {
                self.kept += 1;
                Some(request)
            }
        }
    }

    /// The first reason that applies; `None` if the request is kept.
    fn reason(&self, request: &Request) -> Option<usize> {
        let has = |flag| request.flags.has(flag);
        let head = self.rule == Rule::Dec && request.method == Method::Head;
        let answered = match self.rule {
            Rule::Dec => matches!(request.status, 0 | 200 | 203 | 206 | 300 | 301 | 304),
            Rule::Hummingbird | Rule::Ucfs => request.status < 400,
        };
        let size_wanted = self.rule == Rule::Hummingbird;
        let tests = [
            request.method != Method::Get && !head,
            has(Flags::UNCACHEABLE),
            has(Flags::QUERY),
            has(Flags::DENIED) || !answered,
            self.rule == Rule::Ucfs && has(Flags::RELOAD),
            size_wanted && request.size == 0,
        ];
        tests.iter().position(|drop| *drop)
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.kept + self.dropped.iter().sum::<u64>();
        let percent = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
        writeln!(
            f,
            "{all} requests, {} kept ({:.2} %)",
            self.kept,
            percent(self.kept)
        )?;
        for (reason, count) in REASONS.iter().zip(self.dropped).filter(|(_, n)| *n > 0) {
            writeln!(
                f,
                "dropped {count:>10} ({:>5.2} %) {reason}",
                percent(count)
            )?;
        }
        write!(
            f,
            "{} answers of 304 took the size seen before",
            self.filled
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_drops_what_its_paper_dropped() {
        let plain = Request {
            object: 1,
            size: 100,
            ..Request::default()
        };
        let requests = [
            plain,
            Request {
                method: Method::Head,
                ..plain
            },
            Request {
                flags: Flags::UNCACHEABLE,
                ..plain
            },
            Request {
                flags: Flags::RELOAD,
                ..plain
            },
            Request {
                flags: Flags::QUERY,
                ..plain
            },
            Request {
                status: 404,
                ..plain
            },
            Request {
                status: 302,
                ..plain
            },
            Request {
                status: 304,
                size: 0,
                ..plain
            },
            Request {
                object: 2,
                size: 0,
                ..plain
            },
        ];
        for (rule, kept, text) in [
            (Rule::Hummingbird, 4, "size not known"),
            (Rule::Ucfs, 4, "reload forced"),
            (Rule::Dec, 5, "dynamic"),
        ] {
            let mut clean = Clean::new(rule);
            let out: Vec<_> = requests.iter().filter_map(|r| clean.request(*r)).collect();
            assert_eq!(out.len(), kept, "{rule:?}: {clean}");
            let not_modified = out.iter().find(|r| r.status == 304).unwrap();
            assert_eq!(not_modified.size, 100);
            assert!(clean.to_string().contains(text), "{clean}");
            assert!(clean.to_string().starts_with("9 requests"));
        }
    }
}
