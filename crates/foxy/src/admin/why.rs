//! `/why`: explains how Foxy would treat a request now, and why.

use foxy_base::{FieldBlock, FieldBlockBuilder};
use foxy_http1::Url;
use foxy_proxy::{AccessQuestion, StoredWhy, WhyRequest};
use serde::{Deserialize, Serialize};

use super::State;
use super::connection::Answer;
use super::names::without_fragment;
use super::query::{parameter, parameters};

/// The answer. Its fields are the members of the JSON object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Why {
    /// The requested URL in normal form, with the scheme and host that the keys of the site contain. Rules
    /// that rewrite paths or ignore query parameters are not applied to it.
    pub url: String,
    /// `forward`, or the name of the site or mirror.
    pub site: String,
    /// `hit`, `stale-hit`, `revalidate`, `fetch`, `pass` or `only-if-cached`.
    pub decision: String,
    /// The reason why the origin would get a request: a word of RFC 9211, or empty.
    pub fwd: String,
    /// The reasons for the decision, in sentences.
    pub because: Vec<String>,
    /// A line for each access rule, from the first rule to the rule that decides. If no rule decides, the
    /// last line states this. Empty if the configuration has neither access rules nor users, rates or
    /// parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
    /// The cache key.
    pub key: String,
    /// The rule (`[[rule]]`) that applies to the request.
    pub rule: Option<String>,
    /// The object that is stored for the request.
    pub stored: Option<Stored>,
    /// The last request for this key that needed more than a lookup, for example a disk read or a fetch.
    pub last: Option<Last>,
}

/// The facts of the stored object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stored {
    /// Status code.
    pub status: u16,
    /// Age in seconds.
    pub age: u32,
    /// Remaining lifetime in seconds; negative if the object is stale.
    pub ttl: i64,
    /// Lifetime in seconds.
    pub lifetime: u32,
    /// The source of the lifetime.
    pub lifetime_from: String,
    /// Bytes of the body.
    pub length: u64,
    /// True if only a part of the body is stored.
    pub partial: bool,
    /// The values that select this variant, one per line.
    pub variant: String,
    /// `memory` or `disk`.
    pub tier: String,
    /// The position of the object on disk.
    pub disk: Option<Place>,
}

/// A position on disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct Place {
    /// The path of the store.
    pub store: String,
    /// Number of segments that the store will overwrite before the object's segment.
    pub segments_before: u32,
    /// Number of all segments.
    pub segments: u32,
    /// Seconds until the segment is overwritten at the average rate of writing, if that rate is known.
    pub expected_seconds: Option<u64>,
}

/// The last request for a key that needed more than a lookup, for example a disk read or a fetch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Last {
    /// Seconds since that request.
    pub seconds_ago: i64,
    /// The outcome's name.
    pub outcome: String,
    /// The name of the reason of the outcome; may be empty.
    pub reason: String,
    /// The meaning of the reason.
    pub words: Option<String>,
    /// Status sent to the client.
    pub status: u16,
    /// Status of the origin's answer; 0 if there was no answer of the origin.
    pub origin_status: u16,
}

/// Answers `?url=...`, with the optional parameters `&site=NAME`, `&method=GET`, and `&h=Name: value` any
/// number of times. Access rules use `&from=ADDRESS` (default: a client on this machine) and `&user=NAME`.
pub(super) fn answer(query: &str, state: &State) -> Answer {
    match why(query, state) {
        Ok(why) => Answer::json(200, &why),
        Err((status, text)) => Answer::text(status, &text),
    }
}

fn why(query: &str, state: &State) -> Result<Why, (u16, String)> {
    let usage = "say what it is about: /why?url=http%3A%2F%2Fexample.com%2F";
    let text = parameter(query, "url").ok_or((400, usage.to_owned()))?;
    let wrong = || (400, format!("{text}: this is not an http URL with a host"));
    let asked = Url::parse(without_fragment(&text).as_bytes()).map_err(|_| wrong())?;
    let named = parameter(query, "site");
    let named = named.or_else(|| state.names.site_of(&asked).map(str::to_owned));
    let fields = fields(&parameters(query, "h")).map_err(|text| (400, text))?;
    let listeners = &state.addresses.forward;
    let part = match &named {
        None => state.proxy.mirror_part(&asked, &fields, listeners),
        Some(_) => None,
    };
    let site = match &part {
        Some(part) => part.mirror().to_owned(),
        None => site(named, state).map_err(|text| (404, text))?,
    };
    let (url, partition, rewriting) = match &part {
        Some(part) => (part.url(&asked), part.partition(), part.rewriting()),
        None => {
            let url = state.names.url(&asked, &site, true).ok_or_else(wrong)?;
            (url, &site[..], state.names.rewriting(&site))
        }
    };
    let method = parameter(query, "method").unwrap_or_else(|| "GET".to_owned());
    let answer = state.proxy.why(&WhyRequest {
        partition,
        url,
        method: &method,
        fields: &fields,
        rewriting,
    });
    let access = access(
        query,
        AccessQuestion::url(&method, &asked).of_site(&site),
        state,
    )?;
    let mut normalised = Vec::new();
    url.write_normalised(&mut normalised);
    let now = state.clock.wall();
    Ok(Why {
        url: String::from_utf8_lossy(&normalised).into_owned(),
        decision: answer.decision.to_owned(),
        fwd: answer.fwd.to_owned(),
        because: answer.because,
        access,
        key: answer.key,
        rule: answer.rule,
        stored: answer.stored.map(stored),
        last: answer.last.map(|last| Last {
            seconds_ago: now.secs().saturating_sub(last.at.secs()),
            outcome: last.outcome.as_str().to_owned(),
            reason: last.reason.to_owned(),
            words: answer.last_words.map(str::to_owned),
            status: last.status,
            origin_status: last.origin_status,
        }),
        site,
    })
}

/// Returns a line for each access rule, from the first rule to the rule that decides.
fn access(
    query: &str,
    mut question: AccessQuestion,
    state: &State,
) -> Result<Vec<String>, (u16, String)> {
    if let Some(from) = parameter(query, "from") {
        let wrong = |_| (400, format!("{from}: this is not an address of a client"));
        question.client = from.parse().map_err(wrong)?;
    }
    question.user = parameter(query, "user");
    Ok(state.proxy.explain_access(&question))
}

/// Returns the named site. If no site is named, returns `forward`, or the only site if there is no forward
/// proxy.
fn site(named: Option<String>, state: &State) -> Result<String, String> {
    let all = || state.names.partitions.join(", ");
    match (named, &state.names.partitions[..]) {
        (Some(name), all) if all.contains(&name) => Ok(name),
        (Some(name), _) => Err(format!("there is no site `{name}`; there are: {}", all())),
        (None, [first, ..]) if first == "forward" => Ok(first.clone()),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(format!("say of which site: {}", all())),
    }
}

fn fields(lines: &[String]) -> Result<FieldBlock, String> {
    let mut builder = FieldBlockBuilder::default();
    for line in lines {
        let wrong = || format!("{line}: a header is written `Name: value`");
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let name = name.trim();
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) || line.contains(['\r', '\n', '\0']) {
            return Err(wrong());
        }
        let pushed = builder.push(name.as_bytes(), value.trim().as_bytes());
        pushed.map_err(|error| format!("{line}: {error}"))?;
    }
    Ok(builder.finish())
}

fn stored(stored: StoredWhy) -> Stored {
    Stored {
        status: stored.status,
        age: stored.age,
        ttl: stored.ttl,
        lifetime: stored.lifetime,
        lifetime_from: stored.lifetime_from.to_owned(),
        length: stored.length,
        partial: stored.partial,
        variant: stored.variant,
        tier: stored.tier.to_owned(),
        disk: stored.place.map(|place| Place {
            store: place.disk,
            segments_before: place.segments_before,
            segments: place.segments,
            expected_seconds: place.expected.map(|time| time.as_secs()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_curl_writes_them() {
        let lines = ["Accept: a, b".to_owned(), "X-A:1".to_owned()];
        let block = fields(&lines).unwrap();
        assert_eq!(block.text(), b"Accept: a, b\r\nX-A: 1\r\n");
        for wrong in ["Accept", ": a", "a b: c", "a: b\r\nc: d"] {
            let error = fields(&[wrong.to_owned()]).unwrap_err();
            assert!(error.contains("`Name: value`"), "{error}");
        }
    }
}
