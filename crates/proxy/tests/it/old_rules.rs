//! Records on disk that an older version of Foxy has written. Its rules about cookies, heuristic lifetimes
//! and variants were less strict. So Foxy serves some of these records and replaces others, and the tests
//! check which. A record contains the caching facts (such as the lifetime) that Foxy has derived from the
//! answer. The tests write these facts byte by byte, as format version 1 defines them.

use crate::common::{Answer, Asked, Foxy, NOON, Origin};
use bytes::Bytes;
use foxy_base::{FieldBlockBuilder, WallTime, key_hash};
use foxy_proxy::rules::rules::{Pattern, QueryRule, Rule, Which};
use foxy_proxy::rules::{Config as Caching, RuleSet};
use foxy_proxy::{Config, Role};
use foxy_store::{NewObject, ObjectMeta};

const VARY: u16 = 1 << 7;
const HEURISTIC: u16 = 1 << 4;
const BY_MAX_AGE: u8 = 3;
const BY_HEURISTIC: u8 = 5;

/// Returns the caching facts of a 200 answer that arrived at noon with a lifetime of one hour.
fn facts(source: u8, flags: u16) -> [u8; 64] {
    let mut out = [0; 64];
    let noon = (NOON * 1000).to_le_bytes();
    (out[0], out[1]) = (1, source);
    out[2..4].copy_from_slice(&flags.to_le_bytes());
    out[4..6].copy_from_slice(&200u16.to_le_bytes());
    out[8..16].copy_from_slice(&noon);
    out[16..24].copy_from_slice(&noon);
    out[32..40].copy_from_slice(&i64::MIN.to_le_bytes());
    out[40..48].copy_from_slice(&i64::MIN.to_le_bytes());
    out[48..52].copy_from_slice(&3600u32.to_le_bytes());
    out[52..60].copy_from_slice(&[0xff; 8]);
    out
}

/// Stores an object with these caching facts, as if it had been found on a disk.
fn put(foxy: &Foxy, origin: &Origin, path: &str, rules: [u8; 64], vary: &str, fields: &str) {
    let key = format!("forward GET http://{}{path}", origin.authority());
    let mut block = FieldBlockBuilder::default();
    for (name, value) in fields.lines().filter_map(|line| line.split_once(": ")) {
        let pushed = block.push(name.as_bytes(), value.as_bytes());
        pushed.expect("a field that fits");
    }
    foxy.engine.put(NewObject {
        hash: key_hash(key.as_bytes()),
        key: Bytes::from(key),
        group: 1,
        meta: ObjectMeta {
            request_time: WallTime::from_secs(NOON),
            response_time: WallTime::from_secs(NOON),
            rules,
            nonce: u64::from(!vary.is_empty()),
            ..ObjectMeta::default()
        },
        vary: Bytes::copy_from_slice(vary.as_bytes()),
        tags: Bytes::new(),
        fields: block.finish(),
        body: Bytes::from_static(b"old"),
    });
}

fn origin() -> Origin {
    Origin::start(|asked: &mut Asked| {
        let fields = "Cache-Control: max-age=60\r\nVary: X-Kind\r\n";
        let fields = if asked.path() == "/vary" {
            fields
        } else {
            "Cache-Control: max-age=60\r\n"
        };
        asked.reply("200 OK", fields, "new");
        true
    })
}

/// Requests the path twice. Returns the text of the first answer, and the second answer.
fn twice(foxy: &Foxy, origin: &Origin, path: &str) -> (String, Answer) {
    let first = foxy.get(origin, path).text();
    (first, foxy.get(origin, path))
}

#[test]
fn old_records_are_served_if_todays_rules_would_store_them() {
    let (foxy, origin) = (Foxy::forward(), origin());
    let life = "Cache-Control: max-age=3600";
    let by_age = facts(BY_MAX_AGE, 0);
    let heuristic = facts(BY_HEURISTIC, HEURISTIC);
    let variant = facts(BY_MAX_AGE, VARY);
    let cases = [
        ("/plain", by_age, "", life.to_owned(), "old"),
        (
            "/page",
            by_age,
            "",
            format!("{life}\nContent-Type: text/html"),
            "old",
        ),
        (
            "/image",
            heuristic,
            "",
            "Content-Type: image/png".into(),
            "old",
        ),
        (
            "/cookie",
            by_age,
            "",
            format!("{life}\nSet-Cookie: sid=1"),
            "new",
        ),
        ("/vary", variant, "x-kind\nx-kind\n", life.to_owned(), "new"),
        (
            "/guess",
            heuristic,
            "",
            "Content-Type: text/html".into(),
            "new",
        ),
        (
            "/post",
            by_age,
            "",
            format!("{life}\nContent-Location: /post"),
            "new",
        ),
    ];
    for (path, rules, vary, fields, expected) in cases {
        put(&foxy, &origin, path, rules, vary, &fields);
        let (first, second) = twice(&foxy, &origin, path);
        assert_eq!(first, expected, "{path}");
        assert_eq!(second.text(), expected, "{path}");
        assert!(second.cache().contains("; hit;"), "{path}: {second:?}");
    }
    assert_eq!(origin.asked(), 4);
}

#[test]
fn keys_that_leave_parameters_out_are_not_trusted() {
    let rule = Rule {
        name: "r".into(),
        query: QueryRule {
            which: Which::Keep(vec![Pattern::new("id")]),
            sort: false,
        },
        config: Caching::default(),
        ..Rule::default()
    };
    let config = Config {
        user_rules: RuleSet::new(vec![rule]),
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let origin = origin();
    let rules = facts(BY_MAX_AGE, 0);
    put(&foxy, &origin, "/a?id=1", rules, "", "X: y");
    let (first, second) = twice(&foxy, &origin, "/a?id=1&x=2");
    assert_eq!((first.as_str(), second.text().as_str()), ("new", "new"));
    assert_eq!(origin.asked(), 1);
}
