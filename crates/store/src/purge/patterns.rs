//! Active purges, arranged so that an object can be compared with all of them. Expressions are matched one
//! by one. The texts of all other purges are found by their hash. For every kind of purge, the work per
//! object is bounded.

use foxy_format::{PurgeKind, PurgeNote};
use hashbrown::HashMap;
use regex::bytes::{Regex, RegexBuilder};

use super::key::{KeyParts, for_each_tag};
use crate::Object;

/// The maximum size of a compiled expression, in bytes.
const COMPILED_MAX: usize = 128 << 10;

/// The numbers of the newest hard purge and of the newest soft purge that cover a text or an object; 0:
/// no such purge covers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) hard: u64,
    pub(super) soft: u64,
}

impl Stamp {
    fn of(note: &PurgeNote) -> Self {
        if note.soft {
            Self {
                hard: 0,
                soft: note.sequence,
            }
        } else {
            Self {
                hard: note.sequence,
                soft: 0,
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.hard = self.hard.max(other.hard);
        self.soft = self.soft.max(other.soft);
    }

    fn take_out(&mut self, sequence: u64) {
        for number in [&mut self.hard, &mut self.soft] {
            if *number == sequence {
                *number = 0;
            }
        }
    }
}

/// The stamps of one text: the stamp for all partitions, and the stamps for single partitions.
#[derive(Debug, Default)]
struct Stamps {
    all: Stamp,
    single: Vec<(Box<[u8]>, Stamp)>,
}

impl Stamps {
    fn at(&mut self, partition: &[u8]) -> &mut Stamp {
        if partition.is_empty() {
            return &mut self.all;
        }
        let found = self.single.iter().position(|(p, _)| **p == *partition);
        let at = found.unwrap_or_else(|| {
            self.single.push((partition.into(), Stamp::default()));
            self.single.len() - 1
        });
        &mut self.single[at].1
    }

    fn collect(&self, partition: &[u8], into: &mut Stamp) {
        into.add(self.all);
        for (single, stamp) in &self.single {
            if **single == *partition {
                into.add(*stamp);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.all == Stamp::default() && self.single.is_empty()
    }
}

type Texts = HashMap<Box<[u8]>, Stamps>;

#[derive(Debug)]
struct Expression {
    regex: Regex,
    partition: Box<[u8]>,
    stamp: Stamp,
}

/// All active purges.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    everything: Stamps,
    urls: Texts,
    hosts: Texts,
    tags: Texts,
    prefixes: Texts,
    /// The different lengths of the prefixes, each with the number of prefixes that have it.
    lengths: Vec<(usize, usize)>,
    expressions: Vec<Expression>,
}

/// Compiles an expression within bounds.
///
/// # Errors
/// An error if the expression is not valid or too large. Its text states the mistake.
pub(super) fn compile(text: &[u8]) -> Result<Regex, String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    RegexBuilder::new(text)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(COMPILED_MAX)
        .nest_limit(50)
        .build()
        .map_err(|e| e.to_string())
}

impl Patterns {
    pub(super) fn add(&mut self, note: &PurgeNote) {
        let stamp = Stamp::of(note);
        let partition = &note.partition[..];
        match note.kind {
            PurgeKind::All => self.everything.at(partition).add(stamp),
            PurgeKind::Expression => {
                // An expression from a journal may not compile any more. Then it covers everything, which is
                // safer than nothing.
                match compile(&note.text) {
                    Ok(regex) => self.expressions.push(Expression {
                        regex,
                        partition: partition.into(),
                        stamp,
                    }),
                    Err(_) => self.everything.at(partition).add(stamp),
                }
            }
            _ => {
                if let Some(texts) = self.texts(note.kind) {
                    let stamps = texts.entry(note.text.clone().into()).or_default();
                    let new = stamps.is_empty();
                    stamps.at(partition).add(stamp);
                    if new && note.kind == PurgeKind::Prefix {
                        self.count_length(note.text.len());
                    }
                }
            }
        }
    }

    pub(super) fn remove(&mut self, note: &PurgeNote) {
        self.everything.at(&note.partition).take_out(note.sequence);
        let wanted = Stamp::of(note);
        if note.kind == PurgeKind::Expression {
            self.expressions.retain(|e| e.stamp != wanted);
        }
        let Some(texts) = self.texts(note.kind) else {
            return;
        };
        let Some(stamps) = texts.get_mut(&note.text[..]) else {
            return;
        };
        stamps.at(&note.partition).take_out(note.sequence);
        stamps
            .single
            .retain(|(_, stamp)| *stamp != Stamp::default());
        if stamps.is_empty() {
            texts.remove(&note.text[..]);
            if note.kind == PurgeKind::Prefix {
                self.forget_length(note.text.len());
            }
        }
    }

    fn texts(&mut self, kind: PurgeKind) -> Option<&mut Texts> {
        match kind {
            PurgeKind::Url => Some(&mut self.urls),
            PurgeKind::Host => Some(&mut self.hosts),
            PurgeKind::Tag => Some(&mut self.tags),
            PurgeKind::Prefix => Some(&mut self.prefixes),
            PurgeKind::All | PurgeKind::Expression => None,
        }
    }

    fn count_length(&mut self, len: usize) {
        match self.lengths.iter_mut().find(|(l, _)| *l == len) {
            Some((_, count)) => *count += 1,
            None => self.lengths.push((len, 1)),
        }
    }

    fn forget_length(&mut self, len: usize) {
        if let Some((_, count)) = self.lengths.iter_mut().find(|(l, _)| *l == len) {
            *count -= 1;
        }
        self.lengths.retain(|(_, count)| *count > 0);
    }

    /// Returns the newest purges that cover an object.
    pub(super) fn covering(&self, object: &Object) -> Stamp {
        let key = KeyParts::of(object.key());
        let partition = key.partition;
        let mut stamp = Stamp::default();
        self.everything.collect(partition, &mut stamp);
        let mut look = |texts: &Texts, text: &[u8]| {
            if let Some(stamps) = texts.get(text) {
                stamps.collect(partition, &mut stamp);
            }
        };
        look(&self.urls, key.url);
        look(&self.hosts, key.host);
        if key.authority != key.host {
            look(&self.hosts, key.authority);
        }
        for (len, _) in &self.lengths {
            for text in [key.url, key.bare] {
                if let Some(beginning) = text.get(..*len) {
                    look(&self.prefixes, beginning);
                }
            }
        }
        if !self.tags.is_empty() {
            for_each_tag(object.fields(), |tag| look(&self.tags, tag));
        }
        for expression in &self.expressions {
            let here = expression.partition.is_empty() || *expression.partition == *partition;
            if here && expression.regex.is_match(key.url) {
                stamp.add(expression.stamp);
            }
        }
        stamp
    }
}
