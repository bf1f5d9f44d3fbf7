//! Seeded fuzzing of every parser, and of the decisions that use the parsed values. Usual fields are damaged
//! at random. No code may panic, and the invariants for any input must hold. Every failure message contains
//! the seed, with which the case can be repeated.

use foxy_base::{FieldBlock, FieldBlockBuilder, Rng};

use crate::fuzzing::{self, Exchange, LINES};
use crate::range::{ContentRange, RANGES_LIMIT, Ranges, Resolved};
use crate::testing::T0;
use crate::{CachingFacts, Config, date, etag, freshness, text, vary};

const ROUNDS: u64 = 60_000;

/// Texts that matter to parsers.
const WORDS: [&str; 26] = [
    "\"",
    "\\",
    ",",
    ";",
    "=",
    " ",
    "\t",
    "-",
    "--",
    "*",
    "/",
    "0",
    "99999999999999999999",
    "2147483649",
    "-1",
    "1.5",
    "q=",
    "W/",
    "bytes=",
    "max-age=",
    "no-store",
    "\u{e9}",
    "(",
    "?1",
    ":",
    "GMT",
];

fn damaged(rng: &mut Rng, value: &str) -> Vec<u8> {
    let mut text = value.as_bytes().to_vec();
    for _ in 0..rng.below(4) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        let end = (at + rng.below(6) as usize).min(text.len());
        let word = WORDS[rng.below(WORDS.len() as u64) as usize].bytes();
        match rng.below(5) {
            0 if at < text.len() => text[at] = rng.next_u64() as u8,
            1 => drop(text.drain(at..end)),
            2 => drop(text.splice(at..end, word)),
            3 => {
                let copy = text[at..end].to_vec();
                drop(text.splice(at..at, copy));
            }
            _ => drop(text.splice(at..at, word)),
        }
    }
    // The HTTP codecs pass only values without line ends and NUL to this crate.
    text.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
    text
}

fn some_fields(rng: &mut Rng) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for _ in 0..rng.below(9) {
        let (name, value) = LINES[rng.below(LINES.len() as u64) as usize];
        builder.push(name.as_bytes(), &damaged(rng, value)).unwrap();
    }
    builder.finish()
}

fn config(rng: &mut Rng) -> Config {
    Config {
        surrogate_control: rng.chance(0.5),
        default_ttl_s: rng.chance(0.3).then_some(5),
        ttl_min_s: rng.chance(0.2).then_some(10),
        ttl_max_s: rng.chance(0.2).then_some(20),
        ..Config::default()
    }
}

/// Makes a request and an answer, and makes all decisions about them.
fn exchange(rng: &mut Rng) -> bool {
    fuzzing::check(&Exchange {
        request: some_fields(rng),
        response: some_fields(rng),
        config: config(rng),
        method: [&b"GET"[..], b"HEAD", b"POST", b"get"][rng.below(4) as usize],
        status: [200, 206, 304, 404, 416, 503, 599][rng.below(7) as usize],
        delay: i64::try_from(rng.below(9)).unwrap_or(0),
        later: some_fields(rng),
    })
}

/// Calls every parser of a single value.
fn values(rng: &mut Rng) {
    let (_, value) = LINES[rng.below(LINES.len() as u64) as usize];
    let line = damaged(rng, value);
    let members: usize = text::members(&line).map(<[u8]>::len).sum();
    assert!(members <= line.len());
    let _ = text::directives(&line).filter(|d| d.is("max-age")).count();
    let _ = etag::list(&line).filter(etag::ETag::is_strong).count();
    if let Some(time) = date::parse(&line, T0) {
        assert_eq!(date::parse(&date::format(time), T0), Some(time));
    }
    if let Some(range) = ContentRange::parse(&line) {
        let mut out = Vec::new();
        range.write(&mut out);
        assert_eq!(ContentRange::parse(&out), Some(range));
    }
    if let Some(ranges) = Ranges::parse(&line) {
        assert!(ranges.specs().len() <= RANGES_LIMIT);
        let length = rng.below(1000);
        let parts = match ranges.resolve(length, 8) {
            Resolved::One(one) => vec![one],
            Resolved::Many(many) => many,
            Resolved::Unsatisfiable | Resolved::Whole => Vec::new(),
        };
        assert!(parts.iter().all(|part| part.end <= length));
    }
}

/// Checks that a request selects the variant that was made for it.
fn variants(rng: &mut Rng) {
    let (request, response) = (some_fields(rng), some_fields(rng));
    fuzzing::variants(&request, &response);
    // Values that come from a disk may be any bytes.
    let _ = vary::matches(&damaged(rng, "a,b"), &damaged(rng, "a=1"), &request);
    let mut bytes = [0; crate::FACTS_BYTES];
    bytes.iter_mut().for_each(|b| *b = rng.next_u64() as u8);
    if let Some(facts) = CachingFacts::decode(&bytes) {
        let _ = freshness::age(&facts, T0);
    }
}

#[test]
fn damaged_fields_never_break_a_promise() {
    let mut stored = 0;
    for seed in 0..ROUNDS {
        let case = std::panic::catch_unwind(|| {
            let mut rng = Rng::new(seed);
            values(&mut rng);
            variants(&mut rng);
            exchange(&mut rng)
        });
        stored += u64::from(case.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    // Answers that are stored and answers that are not stored must both be frequent, or the test checks only
    // one of the two cases.
    assert!(
        (ROUNDS / 50..ROUNDS / 2).contains(&stored),
        "{stored} stored"
    );
}

#[test]
fn encoded_exchanges_never_break_a_promise() {
    let mut stored = 0;
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let mut data: Vec<u8> = (0..3).map(|_| rng.next_u64() as u8).collect();
        for _ in 0..rng.below(15) {
            let which = rng.below(LINES.len() as u64) as u8;
            let value = damaged(&mut rng, LINES[usize::from(which)].1);
            data.push(which);
            data.extend_from_slice(&value);
            data.push(b'\n');
            data.extend(rng.chance(0.2).then_some(b'\n'));
        }
        let case = std::panic::catch_unwind(|| fuzzing::caching_fields(&data));
        stored += u64::from(case.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    assert!(stored > ROUNDS / 50, "{stored} stored");
}
