//! Explains to people what would happen to a request now, and why. The explanation changes nothing: no object
//! is fetched, counted, moved between memory and disk, or marked as used.

use std::net::Ipv4Addr;

use foxy_base::{FieldBlock, KeyHash, WallTime};
use foxy_http_rules::conditional::{self, Condition};
use foxy_http_rules::range::{Ranges, Span};
use foxy_http_rules::rewrite::Rewriting;
use foxy_http_rules::rules::FORWARD;
use foxy_http_rules::{
    CachingFacts, Config, Decision, Flags, Method, Miss, RequestFacts, RuleId, decide, decide_miss,
    explain, freshness, vary,
};
use foxy_http1::{Scheme, Url};
use foxy_store::{DiskPlace, Object, Peek};

use crate::Proxy;
use crate::access::gatekeeper::AccessQuestion;
use crate::cache::key;
use crate::http::client_identity::ClientIdentity;
use crate::http::sent::Sent;
use crate::http::via::Hop;
use crate::state::recent::Recent;

/// Sentence that is added for https URLs of the forward proxy, because most programs use a tunnel for them.
const TUNNEL: &str = "this is for a request that names the https URL to the proxy; most programs open a \
                      tunnel (CONNECT) for https instead, whose contents Foxy neither sees nor keeps";

/// The request that [`Proxy::why`] explains.
#[derive(Debug)]
pub struct WhyRequest<'a> {
    /// `forward` or a site's name.
    pub partition: &'a str,
    /// The URL at the origin.
    pub url: Url<'a>,
    /// The method.
    pub method: &'a str,
    /// The request's fields.
    pub fields: &'a FieldBlock,
    /// Rewriting rules of the site.
    pub rewriting: Option<&'a Rewriting>,
}

/// The explanation.
#[derive(Clone, Debug)]
pub struct Why {
    /// The decision as a stable word: `hit`, `stale-hit`, `revalidate`, `fetch`, `pass` or `only-if-cached`.
    pub decision: &'static str,
    /// Reason why the origin would be asked, as a value of `fwd` in RFC 9211. Empty if the origin would not
    /// be asked.
    pub fwd: &'static str,
    /// The reasons for the decision, as sentences.
    pub because: Vec<String>,
    /// The primary cache key.
    pub key: String,
    /// The operator's rule (`[[rule]]`) that applies to the request.
    pub rule: Option<String>,
    /// The object stored for this request.
    pub stored: Option<StoredWhy>,
    /// The last request for this key that needed more than a lookup in the cache, for example a fetch. `None`
    /// if that request is forgotten.
    pub last: Option<Recent>,
    /// Explanation of the word `last.reason`. `None` if there is no explanation.
    pub last_words: Option<&'static str>,
}

/// Facts about the stored object.
#[derive(Clone, Debug)]
pub struct StoredWhy {
    /// Status code.
    pub status: u16,
    /// Age in seconds.
    pub age: u32,
    /// Seconds until the object is stale. The number is negative if the object is stale.
    pub ttl: i64,
    /// Lifetime in seconds.
    pub lifetime: u32,
    /// Source of the lifetime, as a stable word.
    pub lifetime_from: &'static str,
    /// Length of the body in bytes.
    pub length: u64,
    /// True if only a part of the body is stored.
    pub partial: bool,
    /// The request fields that select the variant, one per line. Empty if the object has no Vary list.
    pub variant: String,
    /// `memory`, or `disk`.
    pub tier: &'static str,
    /// Position of the object on disk, if it is on a disk.
    pub place: Option<DiskPlace>,
}

/// The results of the lookup for a request.
struct Looked {
    peek: Option<Peek>,
    other_variants: bool,
    without_parts: bool,
}

impl Proxy {
    /// Explains what would happen to a request now. The call may wait for a disk, so network threads must not
    /// use it.
    #[must_use]
    pub fn why(&self, request: &WhyRequest<'_>) -> Why {
        let mut bytes = Vec::new();
        let rules = &self.config.user_rules;
        let rule = key::primary(rules, request.partition, &request.url, &mut bytes);
        let hash = self.engine.keys().hash(&bytes);
        let last = self.recent.of(hash);
        let mut why = Why {
            decision: "pass",
            fwd: "",
            because: Vec::new(),
            key: String::from_utf8_lossy(&bytes).into_owned(),
            rule: self.rule_name(rule).map(str::to_owned),
            stored: None,
            last,
            last_words: last.and_then(|last| explain::reason(last.reason)),
        };
        judge(self, request, (rule, hash, bytes), &mut why);
        if request.partition == FORWARD && request.url.scheme == Scheme::Https {
            why.because.push(TUNNEL.to_owned());
        }
        why
    }

    /// Returns one line for each access rule, up to and including the rule that decides about a request. The
    /// list is empty if the settings contain no access control.
    #[must_use]
    pub fn explain_access(&self, question: &AccessQuestion) -> Vec<String> {
        let gate = self.config.gatekeeper.as_ref();
        gate.map_or_else(Vec::new, |gate| gate.explain(question, self.clock.wall()))
    }
}

fn judge(
    proxy: &Proxy,
    request: &WhyRequest<'_>,
    (rule, hash, key): (RuleId, KeyHash, Vec<u8>),
    why: &mut Why,
) {
    let config = proxy.rules(rule);
    let now = proxy.clock.wall();
    let facts = RequestFacts::new(request.method.as_bytes(), request.fields).under(config);
    let looked = look(proxy, hash, key, request, config);
    let stored = looked
        .peek
        .as_ref()
        .and_then(|peek| proxy.admitted(&peek.object, rule));
    if let (Some(peek), Some(stored)) = (&looked.peek, &stored) {
        why.stored = Some(stored_why(peek, stored, now));
    }
    if passes(request, &facts, proxy.config.user_rules.get(rule), why) {
        return;
    }
    let (Some(peek), Some(stored)) = (&looked.peek, stored) else {
        not_there(&looked, &facts, why);
        return;
    };
    if stored.flags.has(Flags::PARTIAL) {
        let words = "only a part of the body is stored";
        why.because.push(words.to_owned());
    }
    let decision = decide(&facts, &stored, now, config);
    set(&decision, why);
    let words = explain::decision(&decision, &facts, &stored, now, config);
    why.because.extend(words);
    if conditions(request, &facts, peek, &stored, now, why) {
        fragments(proxy, request, &facts, &peek.object, why);
    }
}

/// Corrects the decision for a hit if some bytes of the answer are not stored.
fn fragments(
    proxy: &Proxy,
    request: &WhyRequest<'_>,
    facts: &RequestFacts,
    object: &Object,
    why: &mut Why,
) {
    if facts.method != Method::Get || !object.is_large() {
        return;
    }
    let unit = u64::from(object.fragment_size().max(1));
    let length = object.total_length();
    let ranges = Ranges::of(request.fields).filter(|_| facts.range);
    let spans: Vec<Span> = match &ranges {
        Some(ranges) => ranges
            .specs()
            .iter()
            .filter_map(|spec| spec.resolve(length))
            .collect(),
        None => Span::new(0, length).into_iter().collect(),
    };
    let numbers = |span: &Span| span.start / unit..=(span.end - 1) / unit;
    let absent = |n: u64| {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        !proxy.engine.has_fragment(object, n)
    };
    if !spans.iter().flat_map(numbers).any(absent) {
        return;
    }
    let words = if facts.only_if_cached {
        (why.decision, why.fwd) = ("only-if-cached", "");
        "bytes of it are not stored, and the request says only-if-cached: it is answered with 504"
    } else {
        (why.decision, why.fwd) = ("fetch", "partial");
        "bytes of it are not stored: what is missing is fetched by range requests"
    };
    why.because.insert(0, words.to_owned());
}

fn look(
    proxy: &Proxy,
    hash: KeyHash,
    key: Vec<u8>,
    request: &WhyRequest<'_>,
    config: &Config,
) -> Looked {
    // The request counts as a request of a client on this machine.
    let identity = ClientIdentity::imagined(Ipv4Addr::LOCALHOST.into());
    let site = (request.partition, request.rewriting);
    let hop = Hop::imagined(proxy, site, &identity);
    let sent = Sent::imagined(request.fields, &hop);
    let mut looked = Looked {
        peek: None,
        other_variants: false,
        without_parts: false,
    };
    let Some(peek) = proxy.engine.reads().peek(hash, &key) else {
        return looked;
    };
    let list = key::split_vary(&peek.object).map_or(&[][..], |(list, _)| list);
    if !vary::has_parts(list, &config.key_parts) {
        looked.without_parts = true;
        return looked;
    }
    let Some((list, values)) = key::split_vary(&peek.object) else {
        looked.peek = Some(peek);
        return looked;
    };
    if sent.matches(list, values) {
        looked.peek = Some(peek);
        return looked;
    }
    looked.other_variants = true;
    let (mut key, mut wanted) = (key, Vec::new());
    sent.selecting_values(list, &mut wanted);
    key::push_variant(peek.object.meta().nonce, &wanted, &mut key);
    looked.peek = proxy
        .engine
        .reads()
        .peek(proxy.engine.keys().hash(&key), &key)
        .or_else(|| {
            let object = peek.object.fields();
            sent.satisfied_by_language(list, values, object)
                .then(|| peek.clone())
        });
    looked
}

/// Returns true if the request bypasses the cache, and adds the reason to `why`.
fn passes(
    request: &WhyRequest<'_>,
    facts: &RequestFacts,
    rule: Option<&foxy_http_rules::rules::Rule>,
    why: &mut Why,
) -> bool {
    if !matches!(facts.method, Method::Get | Method::Head) {
        why.fwd = "method";
        let words = format!(
            "{} goes to the origin: only GET and HEAD are answered from the cache",
            request.method
        );
        why.because.push(words);
        if facts.method.invalidates() {
            let words = "a successful answer invalidates what is stored under this URL";
            why.because.push(words.to_owned());
        }
        return true;
    }
    if facts.body {
        why.fwd = "bypass";
        let words = "the request has content, which the cache key does not cover";
        why.because.push(words.to_owned());
        return true;
    }
    let bypass = rule.and_then(|rule| Some((rule, rule.bypass.of(request.fields)?)));
    if let Some((rule, bypass)) = bypass {
        why.fwd = "bypass";
        let words = explain::reason(bypass.as_str()).unwrap_or_default();
        why.because.push(format!("{words} (rule {})", rule.name));
        return true;
    }
    false
}

fn not_there(looked: &Looked, facts: &RequestFacts, why: &mut Why) {
    let miss = if looked.other_variants {
        Miss::Vary
    } else {
        Miss::Uri
    };
    set(&decide_miss(facts, miss), why);
    why.because.push(
        match () {
            () if looked.other_variants => {
                "other variants are stored under this URL, none for these request headers (Vary, or key parts of a rule)"
            }
            () if looked.without_parts => {
                "what is stored was stored before the rule's key parts were set, and answers nobody"
            }
            () if looked.peek.is_some() => {
                "an older Foxy stored it under rules that no longer apply: it is not used, and the next answer replaces it"
            }
            () => "nothing is stored under this key",
        }
        .to_owned(),
    );
    if why.decision == "only-if-cached" {
        let words = "the request says only-if-cached: it is answered with 504";
        why.because.push(words.to_owned());
    }
    if let Some(words) = why.last_words {
        why.because
            .push(format!("the last answer was not kept: {words}"));
    }
}

/// Sets the words for a decision: [`Why::decision`] and [`Why::fwd`].
fn set(decision: &Decision, why: &mut Why) {
    (why.decision, why.fwd) = match decision {
        Decision::Fresh { .. } => ("hit", ""),
        Decision::Stale { .. } => ("stale-hit", ""),
        Decision::Revalidate { reason, .. } => ("revalidate", reason.as_str()),
        Decision::Forward { reason } => ("fetch", reason.as_str()),
        Decision::OnlyIfCached504 => ("only-if-cached", ""),
    };
}

/// Applies the request's own conditions and ranges to a hit. Returns true if the answer remains a hit with a
/// body.
fn conditions(
    request: &WhyRequest<'_>,
    facts: &RequestFacts,
    peek: &Peek,
    stored: &CachingFacts,
    now: WallTime,
    why: &mut Why,
) -> bool {
    if !matches!(why.decision, "hit" | "stale-hit") {
        return false;
    }
    let judged = conditional::evaluate(request.fields, peek.object.fields(), stored, now);
    let words = match judged {
        Condition::NotModified => "the request's condition holds: it is answered with 304",
        Condition::AskOrigin => {
            (why.decision, why.fwd) = ("pass", "request");
            "If-Match or If-Unmodified-Since fails for what is stored: the origin is to judge it"
        }
        Condition::Send if facts.range && stored.status == 200 => {
            "the request asks for a range: a part is sent"
        }
        Condition::Send => return true,
    };
    why.because.insert(0, words.to_owned());
    judged == Condition::Send
}

fn stored_why(peek: &Peek, stored: &CachingFacts, now: WallTime) -> StoredWhy {
    let (list, values) = key::split_vary(&peek.object).unwrap_or_default();
    let variant = if list.is_empty() { &[][..] } else { values };
    StoredWhy {
        status: stored.status,
        age: freshness::age(stored, now),
        ttl: freshness::ttl_ms(stored, now).div_euclid(1000),
        lifetime: stored.lifetime_s,
        lifetime_from: stored.source.as_str(),
        length: peek.object.total_length(),
        partial: stored.flags.has(Flags::PARTIAL),
        variant: String::from_utf8_lossy(variant).trim_end().to_owned(),
        tier: if peek.in_memory { "memory" } else { "disk" },
        place: peek.place.clone(),
    }
}
