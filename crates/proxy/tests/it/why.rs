//! `foxy why` in forty situations. The command explains misses, answers that are not stored, revalidations,
//! stale answers, and requests that bypass the cache. Each situation is first created by real requests, and
//! then the question is put to `why`.

use std::time::Duration;

use crate::common::{Asked, Foxy, Origin};
use foxy_base::FieldBlockBuilder;
use foxy_proxy::rules::RuleSet;
use foxy_proxy::rules::rules::{Bypass, Pattern, Rule};
use foxy_proxy::{Config, Role, Why, WhyRequest};

/// One situation. In its texts, fields are written as `Name: value | Name: value`.
struct Case {
    /// The answer of the origin. The text has a status and then fields.
    says: &'static str,
    /// Requests before the question: method and fields. `wait N` lets N seconds pass.
    before: &'static [&'static str],
    /// The request in question: method and fields.
    asks: &'static str,
    /// The expected decision, and the expected `fwd` word.
    decision: (&'static str, &'static str),
    /// A text that one of the reasons must contain.
    because: &'static str,
}

const fn case(
    says: &'static str,
    before: &'static [&'static str],
    asks: &'static str,
    decision: (&'static str, &'static str),
    because: &'static str,
) -> Case {
    Case {
        says,
        before,
        asks,
        decision,
        because,
    }
}

const HIT: (&str, &str) = ("hit", "");
const STALE: (&str, &str) = ("stale-hit", "");
const MISS: (&str, &str) = ("fetch", "uri-miss");
const REVALIDATE: (&str, &str) = ("revalidate", "stale");

/// All situations. The path of situation N is `/N`. For a situation with the caching rule X, the path is
/// `/rule-X/N`.
#[rustfmt::skip]
const CASES: &[Case] = &[
    // Reasons for a hit.
    case("200 | Cache-Control: max-age=60", &["GET"], "GET", HIT, "fresh for 60 s more"),
    case("200 | Cache-Control: s-maxage=60, max-age=1", &["GET"], "GET", HIT, "by s-maxage"),
    case("200 | CDN-Cache-Control: max-age=60 | Cache-Control: no-store", &["GET"], "GET", HIT, "targeted field"),
    case("200 | Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", &["GET"], "GET", HIT, "guessed from Last-Modified"),
    case("200 | Cache-Control: max-age=60", &["GET"], "HEAD", HIT, "by max-age"),
    case("200 | Cache-Control: max-age=60 | ETag: \"a\"", &["GET"], "GET | If-None-Match: \"a\"", HIT, "answered with 304"),
    case("200 | Cache-Control: max-age=60", &["GET"], "GET | Range: bytes=0-1", HIT, "a part is sent"),
    case("200 | Cache-Control: max-age=60 | Vary: Accept", &["GET | Accept: a", "GET | Accept: b"], "GET | Accept: a", HIT, "fresh for"),
    // Reasons for a miss.
    case("200 | Cache-Control: max-age=60", &[], "GET", MISS, "nothing is stored under this key"),
    case("200 | Cache-Control: max-age=60", &["GET", "PURGE"], "GET", MISS, "nothing is stored"),
    case("200 | Cache-Control: max-age=60", &["GET", "POST"], "GET", MISS, "nothing is stored"),
    case("200 | Cache-Control: max-age=60 | Vary: Accept", &["GET | Accept: a"], "GET | Accept: b", ("fetch", "vary-miss"), "other variants are stored"),
    case("200 | Cache-Control: max-age=60", &[], "GET | Cache-Control: only-if-cached", ("only-if-cached", ""), "answered with 504"),
    // Reasons why an answer is not stored.
    case("200 | Cache-Control: no-store", &["GET"], "GET", MISS, "the response said no-store"),
    case("200 | Cache-Control: private, max-age=60", &["GET"], "GET", MISS, "for one user alone"),
    case("200 | Cache-Control: max-age=60", &["GET | Cache-Control: no-store"], "GET", MISS, "the request said no-store"),
    case("200 | Cache-Control: max-age=60", &["GET | Authorization: x"], "GET", MISS, "the request had Authorization"),
    case("200 | Cache-Control: max-age=60 | Vary: *", &["GET"], "GET", MISS, "Vary: *"),
    case("200", &["GET"], "GET", MISS, "neither freshness nor a validator"),
    case("201", &["GET"], "GET", MISS, "may not be guessed about"),
    case("200 | Cache-Control: max-age=0", &["GET"], "GET", MISS, "had expired on arrival"),
    case("200 | Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT | Set-Cookie: a=b", &["GET"], "GET", MISS, "sets a cookie"),
    case("401 | Cache-Control: max-age=60", &["GET"], "GET", MISS, "only this request had"),
    case("599 | Cache-Control: max-age=60, must-understand", &["GET"], "GET", MISS, "status is not understood"),
    case("200 | Cache-Control: max-age=60", &["GET"], "small GET", MISS, "larger than the rule's max_size"),
    // Reasons for a revalidation.
    case("200 | Cache-Control: max-age=60 | ETag: \"a\"", &["GET", "wait 61"], "GET", REVALIDATE, "its lifetime is over"),
    case("200 | Cache-Control: max-age=60 | Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", &["GET", "wait 61"], "GET", REVALIDATE, "If-Modified-Since"),
    case("200 | Cache-Control: no-cache | ETag: \"a\"", &["GET"], "GET", REVALIDATE, "before each use"),
    case("200 | Cache-Control: max-age=60, must-revalidate | ETag: \"a\"", &["GET", "wait 61"], "GET | Cache-Control: max-stale", REVALIDATE, "must-revalidate forbids"),
    case("200 | Cache-Control: max-age=60 | ETag: \"a\"", &["GET"], "GET | Cache-Control: no-cache", ("revalidate", "request"), "a reload"),
    case("200 | Cache-Control: max-age=60 | ETag: \"a\"", &["GET", "wait 9"], "GET | Cache-Control: max-age=5", ("revalidate", "request"), "max-age is below its age"),
    case("200 | Cache-Control: max-age=60", &["GET", "wait 61"], "GET", ("fetch", "stale"), "no validator"),
    // Reasons for a stale answer.
    case("200 | Cache-Control: max-age=60", &["GET", "wait 70"], "GET | Cache-Control: max-stale=60", STALE, "max-stale allows"),
    case("200 | Cache-Control: max-age=60, stale-while-revalidate=30", &["GET", "wait 70"], "GET", STALE, "within the 30 s"),
    // Reasons for a bypass of the cache.
    case("200 | Cache-Control: max-age=60", &["GET"], "POST", ("pass", "method"), "invalidates what is stored"),
    case("200 | Cache-Control: max-age=60", &["GET"], "GET | Content-Length: 5", ("pass", "bypass"), "the request has content"),
    case("200 | Cache-Control: max-age=60", &["GET"], "bypass GET | X-Preview: 1", ("pass", "bypass"), "with this header past the cache (rule bypass)"),
    case("200 | Cache-Control: max-age=60", &["GET"], "bypass GET | Cookie: session=1", ("pass", "bypass"), "with this cookie past the cache"),
    case("200 | Cache-Control: max-age=60 | ETag: \"a\"", &["GET"], "GET | If-Match: \"b\"", ("pass", "request"), "the origin is to judge it"),
    // Cases in which a rule changes the lifetime or selects the variant.
    case("200 | Cache-Control: max-age=1", &["GET"], "long GET", HIT, "raised to the configured ttl_min"),
    case("200 | Cache-Control: max-age=60", &["GET | X-Device: tv"], "key GET | X-Device: phone", ("fetch", "vary-miss"), "key parts of a rule"),
];

fn answer(asked: &mut Asked) -> bool {
    let number: usize = asked.path().rsplit('/').next().unwrap().parse().unwrap();
    let mut parts = CASES[number].says.split(" | ");
    let status = parts.next().unwrap();
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    asked.reply(&format!("{status} x"), &fields, "0123456789");
    true
}

fn rules() -> RuleSet {
    let rule = |name: &str| Rule {
        name: name.into(),
        paths: vec![Pattern::new(&format!("/rule-{name}/*"))],
        ..Rule::default()
    };
    let (mut bypass, mut small, mut long, mut key) =
        (rule("bypass"), rule("small"), rule("long"), rule("key"));
    bypass.bypass = Bypass {
        always: false,
        fields: vec![("X-Preview".into(), None)],
        cookies: vec![Pattern::new("session")],
    };
    small.config.store_bytes_max = 5;
    long.config.ttl_min_s = Some(100);
    key.config.key_parts = vec!["x-device".into()];
    RuleSet::new(vec![bypass, small, long, key])
}

/// Splits the text `[rule ]METHOD[ | fields]`.
fn split(text: &str) -> (&str, &str, Vec<(&str, &str)>) {
    let mut parts = text.split(" | ");
    let words = parts.next().unwrap();
    let (rule, method) = words.split_once(' ').unwrap_or(("", words));
    let fields = parts.map(|field| field.split_once(": ").unwrap()).collect();
    (rule, method, fields)
}

fn send(foxy: &Foxy, url: &str, text: &str) {
    let (_, method, fields) = split(text);
    let fields: String = fields
        .iter()
        .map(|(n, v)| format!("{n}: {v}\r\n"))
        .collect();
    let mut client = foxy.connect();
    client.send(format!(
        "{method} {url} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
    ));
    client.answer_to(method);
}

fn why(foxy: &Foxy, url: &str, text: &str) -> Why {
    let (_, method, fields) = split(text);
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in fields {
        builder.push(name.as_bytes(), value.as_bytes()).unwrap();
    }
    foxy.proxy.why(&WhyRequest {
        rewriting: None,
        partition: "forward",
        url: foxy_http1::Url::parse(url.as_bytes()).unwrap(),
        method,
        fields: &builder.finish(),
    })
}

fn run(foxy: &Foxy, origin: &Origin, number: usize, case: &Case) -> Result<(), String> {
    let (rule, ..) = split(case.asks);
    let folder = if rule.is_empty() {
        String::new()
    } else {
        format!("/rule-{rule}")
    };
    let url = format!("http://{}{folder}/{number}", origin.authority());
    for step in case.before {
        match step.strip_prefix("wait ") {
            Some(secs) => foxy
                .clock
                .advance(Duration::from_secs(secs.parse().unwrap())),
            None => send(foxy, &url, step),
        }
    }
    let asked = origin.asked();
    let mut judged = judge(&why(foxy, &url, case.asks), rule, case);
    // A client gets its answer shortly before Foxy notes the result of the request. So the question is
    // repeated until the answer of `why` is right.
    for _ in 0..2000 {
        if judged.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        judged = judge(&why(foxy, &url, case.asks), rule, case);
    }
    if origin.asked() != asked {
        return Err("the question reached the origin".into());
    }
    judged
}

fn judge(why: &Why, rule: &str, case: &Case) -> Result<(), String> {
    let said = why.because.join("; ");
    if (why.decision, why.fwd) != case.decision || !said.contains(case.because) {
        return Err(format!("{} {}: {said}", why.decision, why.fwd));
    }
    if why.rule.as_deref().unwrap_or_default() != rule {
        return Err(format!("rule {:?}", why.rule));
    }
    Ok(())
}

#[test]
fn forty_situations_are_explained() {
    assert!(CASES.len() >= 40, "{} situations", CASES.len());
    let config = Config {
        user_rules: rules(),
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let origin = Origin::start(answer);
    let wrong: Vec<String> = CASES
        .iter()
        .enumerate()
        .filter_map(|(number, case)| {
            let error = run(&foxy, &origin, number, case).err()?;
            Some(format!("{number} ({} / {}): {error}", case.says, case.asks))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_explained_is_what_happens() {
    // The same question is put to `why` and then sent as a request. The request must reach the origin exactly
    // if the decision of `why` requires this. Only a plain GET with a stale answer may also reach the origin
    // in the background.
    let foxy = Foxy::start(
        Role::Forward,
        Config {
            user_rules: rules(),
            ..Config::default()
        },
        1,
    );
    let origin = Origin::start(answer);
    for (number, case) in CASES.iter().enumerate() {
        if run(&foxy, &origin, number, case).is_err() {
            continue;
        }
        let (rule, method, _) = split(case.asks);
        // A request that announces content and sends none would wait for ever.
        if method == "POST" || case.asks.contains("Content-Length") {
            continue;
        }
        let folder = if rule.is_empty() {
            String::new()
        } else {
            format!("/rule-{rule}")
        };
        let url = format!("http://{}{folder}/{number}", origin.authority());
        let before = origin.asked();
        let text = case.asks.strip_prefix(rule).unwrap_or(case.asks).trim();
        send(&foxy, &url, text);
        let background = case.asks == "GET" && case.decision == STALE;
        let asked = origin.asked() > before;
        let expected = matches!(case.decision.0, "fetch" | "revalidate" | "pass");
        assert!(asked == expected || background, "{number}: {}", case.says);
    }
}

#[test]
fn a_range_whose_bytes_are_missing_is_not_called_a_hit() {
    const LEN: usize = 1_000_000;
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";
        let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
        let span = range.and_then(|range| range.split_once('-'));
        let Some((from, to)) = span.map(|(from, to)| (from.parse(), to.parse())) else {
            asked.reply("200 OK", fields, vec![7; LEN]);
            return true;
        };
        let (from, to): (usize, usize) = (from.unwrap(), to.unwrap_or(LEN - 1).min(LEN - 1));
        let range = format!("{fields}Content-Range: bytes {from}-{to}/{LEN}\r\n");
        asked.reply("206 Partial Content", &range, vec![7; to + 1 - from]);
        true
    });
    let url = format!("http://{}/film", origin.authority());
    let answer = foxy.get_with(&origin, "/film", "Range: bytes=0-99\r\n");
    assert_eq!(answer.status, 206);
    // The client gets its bytes before the fragment is complete.
    while foxy.proxy.fills() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    for (asks, expected) in [
        ("GET | Range: bytes=5-9", HIT),
        ("GET | Range: bytes=900000-900009", ("fetch", "partial")),
        ("GET | Range: bytes=5-9,-7", ("fetch", "partial")),
        ("GET", ("fetch", "partial")),
        ("HEAD", HIT),
        ("GET | If-None-Match: \"a\"", HIT),
        (
            "GET | Range: bytes=-7 | Cache-Control: only-if-cached",
            ("only-if-cached", ""),
        ),
    ] {
        let why = why(&foxy, &url, asks);
        assert_eq!((why.decision, why.fwd), expected, "{asks}");
    }
    assert_eq!(origin.asked(), 1, "the question reached the origin");
}
