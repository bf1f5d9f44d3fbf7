//! Purging by the admin listener: `POST /purge`, `GET /purges`, `GET /purges/NUMBER`.

use foxy_http1::Url;
use foxy_proxy::normalised;
use foxy_store::{Places, Purge, PurgeError, PurgeKind, PurgeStatus};
use serde::{Deserialize, Serialize};

use super::State;
use super::connection::Answer;
use super::names::without_fragment;
use super::query::parameter;

/// Largest number of purges in a list.
const LISTED: usize = 100;

/// The requested purge, from the query or a JSON body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PurgeRequest {
    url: Option<String>,
    prefix: Option<String>,
    host: Option<String>,
    regex: Option<String>,
    tag: Option<String>,
    all: bool,
    soft: bool,
    site: Option<String>,
}

/// The result of the purge of a URL.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Removed {
    pub(crate) url: String,
    /// Number of partitions in which the URL was purged. All partitions of a mirror count as one.
    pub(crate) partitions: usize,
    /// Number of stored objects that were purged, variants included.
    pub(crate) objects: u64,
    /// Numbers of the purges that count further objects of this URL while they search the stores (sweep).
    /// These objects are variants that the table in memory does not contain, and objects of mirrors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) variants_counted_by: Vec<u64>,
    pub(crate) durable: bool,
}

/// The start of a purge of many objects.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) purge: u64,
    /// Numbers of the other purges that the same request started. One purge is not enough, for example, if
    /// the keys of several sites contain the URL in different forms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<u64>,
    pub(crate) durable: bool,
}

/// The progress of a purge.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) purge: u64,
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) site: Option<String>,
    pub(crate) soft: bool,
    pub(crate) at_ms: i64,
    /// Number of objects that were found and removed (or made stale) so far.
    pub(crate) objects: u64,
    /// True if all stored contents were searched.
    pub(crate) done: bool,
    /// The later purge into which this purge was merged. From then on, the later purge counts the removed
    /// objects of both.
    pub(crate) merged_into: Option<u64>,
}

const ADVICE: &str = "say what to purge, one of: url, prefix, host, regex, tag, all; such as \
                      /purge?url=http%3A%2F%2Fexample.com%2F, or as a JSON body";

/// Carries out a purge. Answers when the purge is durable, or when it is known that it is not durable.
pub(super) async fn purge(query: &str, body: &[u8], state: &State) -> Answer {
    let request = if body.is_empty() {
        of_query(query)
    } else {
        match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => return Answer::text(400, &format!("the body is wrong: {error}")),
        }
    };
    let site = request.site.clone();
    let soft = request.soft;
    let Some((kind, text)) = request.one() else {
        return Answer::text(400, ADVICE);
    };
    if let Some(name) = &site
        && !state.names.partitions.contains(name)
    {
        return match state.proxy.mirror_hosts(name) {
            Some(hosts) => within_mirror((kind, &text, soft), (name, hosts), state).await,
            None => Answer::text(404, "there is no such site"),
        };
    }
    if kind == PurgeKind::Url && !soft {
        return url(&text, site.as_deref(), state).await;
    }
    let text = match kind {
        PurgeKind::Url => without_fragment(&text),
        _ => &text,
    };
    let normal = match normalised(kind, text) {
        Ok(normal) => normal,
        Err(problem) => return Answer::text(400, &problem),
    };
    let places = places_of(kind, text, normal, site.as_deref(), state);
    let purge = |(partition, text)| Purge {
        kind,
        text,
        partition,
        soft,
    };
    let purges: Vec<_> = places.into_iter().map(purge).collect();
    if purges.is_empty() {
        return Answer::text(404, "no site is for this URL");
    }
    many(&purges, state).await
}

/// Purges objects of one mirror only. A mirror stores a URL in many partitions, so all partitions are
/// searched.
async fn within_mirror(
    (kind, text, soft): (PurgeKind, &str, bool),
    (name, hosts): (&str, Vec<Vec<u8>>),
    state: &State,
) -> Answer {
    let (kind, texts) = match kind {
        PurgeKind::All => (PurgeKind::Host, hosts),
        PurgeKind::Url | PurgeKind::Prefix => {
            let parsed = Url::parse(without_fragment(text).as_bytes()).ok();
            let text = parsed.and_then(|url| state.proxy.mirrored_text(&url, Some(name)));
            let Some(text) = text else {
                let text = format!(
                    "the mirror `{name}` does not serve this; give the URL that its clients use"
                );
                return Answer::text(404, &text);
            };
            (kind, vec![text])
        }
        PurgeKind::Host | PurgeKind::Expression | PurgeKind::Tag => {
            let text = format!("of the mirror `{name}`, a url, a prefix or all can be purged");
            return Answer::text(400, &text);
        }
    };
    let purge = |text| Purge {
        kind,
        text,
        partition: String::new(),
        soft,
    };
    let purges: Vec<_> = texts.into_iter().map(purge).collect();
    many(&purges, state).await
}

/// Returns a pair for each partition to which a purge of this kind applies: the name of the partition, and
/// the text to purge (such as the URL) in the form that the keys of this partition contain. An empty name
/// stands for all partitions.
fn places_of(
    kind: PurgeKind,
    text: &str,
    normal: Vec<u8>,
    site: Option<&str>,
    state: &State,
) -> Vec<(String, Vec<u8>)> {
    let parsed = Url::parse(text.as_bytes());
    let of_mirror = match (kind, &parsed) {
        (PurgeKind::Url | PurgeKind::Prefix, Ok(parsed)) => of_mirror(parsed, site, state),
        _ => None,
    };
    let mut places = match (kind, &parsed) {
        (PurgeKind::Url, Ok(parsed)) => {
            let chosen = state.names.of_url(parsed, site);
            places(chosen, site.is_none(), state, |partition, sure| {
                let url = state.names.url(parsed, partition, sure)?;
                Some(state.proxy.purge_text(partition, &url))
            })
        }
        (PurgeKind::Prefix, _) => {
            let (chosen, sure) = state.names.chosen(site);
            let chosen = chosen.into_iter().map(|name| (name, sure)).collect();
            places(chosen, site.is_none(), state, |partition, sure| {
                let named = match sure {
                    true => state.names.prefix(text.as_bytes(), partition),
                    false => text.as_bytes().to_vec(),
                };
                let named = String::from_utf8_lossy(&named);
                Some(state.proxy.prefix_text(partition, &named))
            })
        }
        _ => vec![one_place(kind, normal, site, state)],
    };
    places.extend(of_mirror.map(|text| (String::new(), text)));
    places
}

async fn many(purges: &[Purge], state: &State) -> Answer {
    let (mut numbers, mut durable) = (Vec::new(), true);
    for purge in purges {
        match state.proxy.purge_many(purge, Places::Reserved).await {
            Ok(began) => {
                numbers.push(began.number);
                durable &= began.durable;
            }
            Err(error) => return not_begun(&error),
        }
    }
    let purge = numbers.pop().unwrap_or(0);
    let also = numbers;
    Answer::json(
        200,
        &Started {
            purge,
            also,
            durable,
        },
    )
}

/// Returns a pair for each chosen partition: the partition, and the result of the function `text` for this
/// partition. Partitions without a result are left out. The arguments of `text` are a partition and a flag.
/// The flag is true if the request is certainly about this partition. If `all` is true, and the forward proxy
/// and all sites have the same result, only one pair is returned. Its empty name stands for all partitions.
fn places(
    chosen: Vec<(&str, bool)>,
    all: bool,
    state: &State,
    text: impl Fn(&str, bool) -> Option<Vec<u8>>,
) -> Vec<(String, Vec<u8>)> {
    let here =
        |(partition, sure): (&str, bool)| Some((partition.to_owned(), text(partition, sure)?));
    let mut places: Vec<_> = chosen.into_iter().filter_map(here).collect();
    let same = places.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if all && same && places.len() == state.names.partitions.len() {
        places.truncate(1);
        places
            .iter_mut()
            .for_each(|(partition, _)| partition.clear());
    }
    places
}

/// Returns the partition and the text for a purge of many objects. In a purge of a host, the given text is
/// the host. If the request identifies exactly one partition, the host in the keys of this partition is
/// returned instead.
fn one_place(
    kind: PurgeKind,
    text: Vec<u8>,
    site: Option<&str>,
    state: &State,
) -> (String, Vec<u8>) {
    let text = match (kind, &state.names.chosen(site)) {
        (PurgeKind::Host, (only, true)) => state.names.host(&text, only.first().unwrap_or(&"")),
        _ => text,
    };
    (site.unwrap_or_default().to_owned(), text)
}

fn of_query(query: &str) -> PurgeRequest {
    let text = |name| parameter(query, name);
    let flag = |name| parameter(query, name).is_some_and(|v| matches!(&v[..], "1" | "true"));
    PurgeRequest {
        url: text("url"),
        prefix: text("prefix"),
        host: text("host"),
        regex: text("regex"),
        tag: text("tag"),
        all: flag("all"),
        soft: flag("soft"),
        site: text("site"),
    }
}

impl PurgeRequest {
    /// Returns the kind and text of the purge, if the request names exactly one kind.
    fn one(self) -> Option<(PurgeKind, String)> {
        let all = self.all.then(String::new);
        let mut named = [
            (PurgeKind::Url, self.url),
            (PurgeKind::Prefix, self.prefix),
            (PurgeKind::Host, self.host),
            (PurgeKind::Expression, self.regex),
            (PurgeKind::Tag, self.tag),
            (PurgeKind::All, all),
        ]
        .into_iter()
        .filter_map(|(kind, text)| Some((kind, text?)));
        let one = named.next()?;
        named.next().is_none().then_some(one)
    }
}

async fn url(url: &str, site: Option<&str>, state: &State) -> Answer {
    let Ok(parsed) = Url::parse(without_fragment(url).as_bytes()) else {
        return Answer::text(400, "url is not an http URL with a host");
    };
    let mut normalised = Vec::new();
    parsed.write_normalised(&mut normalised);
    let mut removed = Removed {
        url: String::from_utf8_lossy(&normalised).into_owned(),
        partitions: 0,
        objects: 0,
        variants_counted_by: Vec::new(),
        durable: true,
    };
    for (partition, sure) in state.names.of_url(&parsed, site) {
        let Some(here) = state.names.url(&parsed, partition, sure) else {
            continue;
        };
        let purged = state.proxy.purge(partition, &here).await;
        removed.durable &= purged.durable;
        removed.objects += purged.objects;
        removed.variants_counted_by.extend(purged.counting);
        removed.partitions += 1;
    }
    if let Some(text) = of_mirror(&parsed, site, state) {
        let purge = Purge {
            kind: PurgeKind::Url,
            text,
            partition: String::new(),
            soft: false,
        };
        let began = match state.proxy.purge_many(&purge, Places::Reserved).await {
            Ok(began) => began,
            Err(error) => return not_begun(&error),
        };
        removed.durable &= began.durable;
        removed.variants_counted_by.push(began.number);
        removed.partitions += 1;
    }
    Answer::json(200, &removed)
}

/// Returns the URL or prefix in the form that the keys of a mirror contain, for a purge of all partitions. A
/// mirror has several partitions: one for each form of a document and for each host name by which clients
/// reach Foxy. Returns `None` if the request names a site, because a site has none of these partitions.
fn of_mirror(url: &Url<'_>, site: Option<&str>, state: &State) -> Option<Vec<u8>> {
    match site {
        Some(_) => None,
        None => state.proxy.mirrored_text(url, None),
    }
}

fn not_begun(error: &PurgeError) -> Answer {
    // One request can need several purges, and a purge can fail after earlier purges have begun. The earlier
    // purges stay valid.
    let status = if error.is_busy() { 429 } else { 400 };
    Answer::text(status, &format!("the purge {error}"))
}

/// Answers with the latest purges.
pub(super) fn list(state: &State) -> Answer {
    let latest = state.proxy.purge_statuses(LISTED);
    let latest: Vec<_> = latest.into_iter().map(operation).collect();
    Answer::json(200, &latest)
}

/// Answers with the state of one purge.
pub(super) fn status(number: &str, state: &State) -> Answer {
    let status = number
        .parse()
        .ok()
        .and_then(|n| state.proxy.purge_status(n));
    match status {
        Some(status) => Answer::json(200, &operation(status)),
        None => Answer::text(404, "this purge is not known, or not any more"),
    }
}

fn operation(status: PurgeStatus) -> Operation {
    Operation {
        purge: status.number,
        kind: kind_name(status.kind).to_owned(),
        text: status.text,
        site: (!status.partition.is_empty()).then_some(status.partition),
        soft: status.soft,
        at_ms: status.at.millis(),
        objects: status.objects,
        done: status.done,
        merged_into: status.merged_into,
    }
}

const fn kind_name(kind: PurgeKind) -> &'static str {
    match kind {
        PurgeKind::All => "all",
        PurgeKind::Url => "url",
        PurgeKind::Prefix => "prefix",
        PurgeKind::Host => "host",
        PurgeKind::Tag => "tag",
        PurgeKind::Expression => "regex",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_named() {
        let kind = |query| of_query(query).one().map(|(kind, _)| kind);
        assert_eq!(kind("tag=a"), Some(PurgeKind::Tag));
        assert_eq!(kind("all=1&soft=1"), Some(PurgeKind::All));
        assert_eq!(kind("all=0"), None);
        assert_eq!(kind("tag=a&host=b"), None);
        assert_eq!(kind(""), None);
    }
}
