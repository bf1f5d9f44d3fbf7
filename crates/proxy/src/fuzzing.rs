//! Functions for fuzzers and tests that check invariants. They check the keys of URLs under query rules, and
//! the parser of PROXY headers.

use foxy_http_rules::RuleSet;
use foxy_http_rules::rules::{Pattern, QueryRule, Rule, Which};
use foxy_http1::{Escapes, Url};

use crate::cache::key;
use crate::client::listen::proxy_header::parse;

/// Names of query parameters. The low four bits of the first input byte select the names that the query rule
/// (a rule about the query parameters in keys) contains.
const NAMES: [&str; 4] = ["id", "utm_*", "a b", "*"];

/// Makes the key of a URL, and checks the request target that the key contains. Foxy sends this target to the
/// origin. The first byte of `data` selects the query rule. The other bytes are appended to `http://e.test/`.
/// Returns false if the result is not a URL.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn query_rules(data: &[u8]) -> bool {
    let Some((setting, text)) = data.split_first() else {
        return false;
    };
    let text = [&b"http://e.test/"[..], text].concat();
    let Ok(url) = Url::parse(&text) else {
        return false;
    };
    let rules = rules(*setting);
    let (key, target) = asked(&rules, &url);
    // `again` is the URL with the same host and with the request target that was found in the key. Its key
    // and its target must be equal to those of `url`.
    let again = [b"http://e.test", &target[..]].concat();
    let again = Url::parse(&again).expect("what is sent is a URL");
    assert_eq!(asked(&rules, &again), (key, target.clone()));
    let path = |text: &[u8]| {
        text.split(|b| *b == b'?')
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    assert_eq!(dot_segments(&path(&target)), dot_segments(&path(url.path)));
    query_is_from(&target, url.path);
    let mut once = Vec::new();
    Escapes::Normal.write(url.path, &mut once);
    let mut twice = Vec::new();
    Escapes::Normal.write(&once, &mut twice);
    assert_eq!(once, twice, "the normal form has another");
    true
}

/// Reads the beginning of a connection as a header of the PROXY protocol. Returns true if it is such a
/// header.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn proxy_header(data: &[u8]) -> bool {
    let Ok(Some(header)) = parse(data) else {
        return false;
    };
    assert!(header.length <= data.len(), "it ends behind its bytes");
    let own = &data[..header.length];
    assert_eq!(parse(own), Ok(Some(header)), "what follows it matters");
    for end in 0..own.len() {
        assert_eq!(parse(&own[..end]), Ok(None), "its first {end} bytes");
    }
    if let Some(source) = header.source {
        let (family, ip) = if source.is_ipv4() {
            ("TCP4", source.ip())
        } else {
            ("TCP6", source.ip())
        };
        let line = format!("PROXY {family} {ip} {ip} {} 1\r\n", source.port());
        let again = parse(line.as_bytes()).map(|found| found.map(|found| found.source));
        assert_eq!(again, Ok(Some(Some(source))), "{line}");
    }
    true
}

fn rules(setting: u8) -> RuleSet {
    let named = NAMES.iter().enumerate();
    let named = named.filter(|(i, _)| setting >> i & 1 == 1);
    let patterns: Vec<Pattern> = named.map(|(_, name)| Pattern::new(name)).collect();
    let query = QueryRule {
        which: match setting >> 4 & 3 {
            0 => Which::All,
            1 => Which::Keep(patterns),
            _ => Which::Ignore(patterns),
        },
        sort: setting & 64 != 0,
    };
    let rule = Rule {
        query,
        ..Rule::default()
    };
    let received = (setting & 128 != 0).then(|| "forward".to_owned());
    RuleSet::new(vec![rule]).with_received(received.into_iter().collect())
}

/// Returns the key of a URL, and the request target in the key.
fn asked(rules: &RuleSet, url: &Url<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut key = Vec::new();
    key::primary(rules, "forward", url, &mut key);
    let at = key::target_at("forward", &key).expect("a key has a path");
    let target = key[at..].to_vec();
    (key, target)
}

/// Counts the segments `.` and `..`, which servers remove from a path.
fn dot_segments(path: &[u8]) -> usize {
    let segments = path.split(|b| *b == b'/');
    segments.filter(|s| matches!(*s, b"." | b"..")).count()
}

/// Checks that every query parameter that Foxy sends to the origin is, byte for byte, a parameter that Foxy
/// received.
fn query_is_from(target: &[u8], received: &[u8]) {
    let query = |text: &[u8]| {
        let at = text.iter().position(|b| *b == b'?');
        at.map_or(Vec::new(), |at| text[at + 1..].to_vec())
    };
    let (sent, received) = (query(target), query(received));
    for parameter in sent.split(|b| *b == b'&') {
        assert!(
            received
                .split(|b| *b == b'&')
                .any(|other| other == parameter)
                || sent.is_empty()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    const WORDS: [&str; 26] = [
        "id", "=", "&", ";", "%69d", "%", "%4", "%41", "%2e", "%2E", ".", "..", "/", "%2f", "%5c",
        "\\", "?", "+", "%20", "utm_x", "%75", "a+b", "%zz", "%c3%a9", "~", "%7e",
    ];

    #[test]
    fn any_beginning_is_a_proxy_header_or_is_refused() {
        const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
        let four = [SIGNATURE, b"\x21\x11\0\x0c", &[10; 12]].concat();
        let six = [SIGNATURE, b"\x21\x21\0\x26", &[32; 36], b"ab"].concat();
        let valid: [&[u8]; 5] = [
            b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\nGET",
            b"PROXY TCP6 2001:db8::7 ::1 1 65535\r\n",
            b"PROXY UNKNOWN\r\n",
            &four,
            &six,
        ];
        let mut headers = 0u32;
        for seed in 0..60_000 {
            let mut rng = Rng::new(seed);
            let mut data = valid[rng.below(5) as usize].to_vec();
            for _ in 0..rng.below(3) {
                let at = rng.below(data.len() as u64) as usize;
                match rng.below(4) {
                    0 => data[at] = rng.next_u64() as u8,
                    1 => data[at] ^= 1 << rng.below(8),
                    2 => drop(data.remove(at)),
                    _ => data.insert(at, b" \r\n:.0"[rng.below(6) as usize]),
                }
            }
            let case = std::panic::catch_unwind(|| proxy_header(&data));
            let text = data.escape_ascii();
            headers += u32::from(case.unwrap_or_else(|_| panic!("seed {seed}: {text}")));
        }
        assert!(headers > 20_000, "{headers} headers");
    }

    #[test]
    fn any_url_under_any_rule_is_asked_for_by_its_key() {
        let mut urls = 0u32;
        for seed in 0..60_000 {
            let mut rng = Rng::new(seed);
            let mut data = vec![rng.next_u64() as u8];
            for _ in 0..rng.below(14) {
                data.extend_from_slice(WORDS[rng.below(WORDS.len() as u64) as usize].as_bytes());
            }
            let case = std::panic::catch_unwind(|| query_rules(&data));
            let text = String::from_utf8_lossy(&data);
            urls += u32::from(case.unwrap_or_else(|_| panic!("seed {seed}: {text:?}")));
        }
        assert!(urls > 50_000, "{urls} URLs");
    }
}
