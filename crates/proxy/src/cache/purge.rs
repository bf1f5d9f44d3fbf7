//! A purge removes stored objects, or makes them stale (soft purge). An object that is being fetched during
//! its purge is not stored, or counts as purged if it is stored later. The answer to a purge waits until the
//! purge survives a power failure, but at most for the time [`DURABLE`].

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{KeyHash, rule};
use foxy_http1::{Escapes, Url};
use foxy_store::{
    Durable, KeyParts, Places, Purge, PurgeError, PurgeKind, PurgeStatus, SyncTicket,
};

use crate::Proxy;
use crate::cache::key;
use crate::fill::Fill;
use crate::fill::fetch::FillHead;
use crate::http::route::escapes;

/// Longest wait for a purge to become durable. After this time, the answer states that the purge is not
/// durable.
const DURABLE: Duration = Duration::from_secs(10);

/// Limit for purges by clients. A purge is active while stored objects have to be compared with it. If at
/// least this number of purges is active, a client cannot add another active purge. The limit is a small part
/// of the number of purges that can be active, so that clients leave places for operators.
const CLIENTS_ACTIVE: usize = 64;

/// Limit of the numbers that users see for purges of this process: these numbers are below this value. For a
/// purge of an earlier process, users see the store's own number, which is at least this value.
const SMALL: u64 = 1 << 32;

/// The result of the purge of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Number of objects that were stored under the URL. This number includes the variants that the table of
    /// variants contains. If the table does not contain this URL, the number includes no variants, although
    /// they are removed too.
    pub objects: u64,
    /// Number of the purge that counts the variants. It is set if the stored primary entry (the object under
    /// the primary key) has a Vary list and the table of variants does not contain the URL, for example after
    /// a restart. It is not set if the caller does not permit a second purge, or if the store does not accept
    /// one.
    pub counting: Option<u64>,
    /// True if the removal survives a power failure. If false, the removal is valid only for this process.
    pub durable: bool,
}

/// The start of a purge of many objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// Number of the purge. It is used to ask for the progress.
    pub number: u64,
    /// True if the purge survives a power failure. If false, the purge is valid only for this process.
    pub durable: bool,
}

impl Proxy {
    /// Removes the object that is stored under `url` in this partition, and all of its variants. If a fetch
    /// for `url` runs now, its result is not stored, and later requests do not join it. Once started, the
    /// removal is valid even if the future is dropped.
    pub async fn purge(&self, partition: &str, url: &Url<'_>) -> Purged {
        let mut bytes = Vec::new();
        key::primary(&self.config.user_rules, partition, url, &mut bytes);
        let hash = self.engine.keys().hash(&bytes);
        self.purge_key(hash, &bytes, true).await
    }

    /// Returns true if a client may add an active purge. All clients share this limit ([`CLIENTS_ACTIVE`]),
    /// so that operators can still add purges.
    pub(crate) fn room_for_clients(&self) -> bool {
        self.engine.purges().active_purges() < CLIENTS_ACTIVE
    }

    /// Purges one key. If `may_count` is true and the table of variants does not contain this key, a second
    /// purge may be added, which finds and counts the variants.
    pub(crate) async fn purge_key(&self, hash: KeyHash, key: &[u8], may_count: bool) -> Purged {
        // The running fetches of the key are invalidated first. An object that such a fetch has already
        // stored is removed below. An object that it has not stored yet will not be stored.
        self.invalidate(hash);
        let (objects, counting) = match self.variants.take(hash) {
            Some(others) => {
                let primary = u64::from(self.engine.supersede(hash, key));
                // Without the primary entry (the object under the primary key), no request can find the
                // variants. The variants are removed here only to count them.
                let others = others.into_iter();
                let others = others.filter(|other| self.engine.supersede(*other, key));
                (primary + others.count() as u64, None)
            }
            None => remove_unknown(self, hash, key, may_count).await,
        };
        let ticket = self.engine.purge(hash, key);
        Purged {
            objects,
            counting,
            durable: rule!(
                "purge: its answer waits until it survives a power cut",
                durable(ticket).await,
                true
            ),
        }
    }

    /// Returns the progress of the purge with this number. Returns `None` if the number is unknown or was
    /// forgotten.
    #[must_use]
    pub fn purge_status(&self, number: u64) -> Option<PurgeStatus> {
        // A number below `SMALL` is the shown number of a purge of this process. Other numbers are the
        // store's own.
        let number = match number {
            0..SMALL => self.purges_before.checked_add(number)?,
            _ => number,
        };
        let status = self.engine.purges().purge_status(number)?;
        Some(shown_status(self, status))
    }

    /// Returns the latest purges, newest first.
    #[must_use]
    pub fn purge_statuses(&self, limit: usize) -> Vec<PurgeStatus> {
        let latest = self.engine.purges().purge_statuses(limit).into_iter();
        latest.map(|status| shown_status(self, status)).collect()
    }

    /// Returns the text of a [`PurgeKind::Url`] purge of this URL. The text is the URL in the form that it
    /// has in the keys of the partition, after the operator's rules were applied.
    #[must_use]
    pub fn purge_text(&self, partition: &str, url: &Url<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        key::primary(&self.config.user_rules, partition, url, &mut bytes);
        KeyParts::of(&bytes).url.to_vec()
    }

    /// Returns the text of a [`PurgeKind::Prefix`] purge: the prefix in the form that URLs have in the keys
    /// of the partition.
    #[must_use]
    pub fn prefix_text(&self, partition: &str, text: &str) -> Vec<u8> {
        prefix(text, escapes(&self.config.user_rules, partition))
    }

    /// Purges all objects that `purge` covers. The purge is valid for every later request. A covered object
    /// that is being fetched now counts as purged even if it is stored later. The text must be normalised
    /// ([`normalised`]). Once started, the purge is valid even if the future is dropped. The number of active
    /// purges is limited. `places` states whether this purge may take one of the places that are reserved for
    /// operators.
    ///
    /// # Errors
    /// Returns the reason why the purge is not accepted. Nothing was changed then.
    pub async fn purge_many(&self, purge: &Purge, places: Places) -> Result<Began, PurgeError> {
        let (number, ticket) = self.engine.purges().purge_many(purge, places)?;
        // A fetch that began before the purge may return older content, so no more requests may join it.
        for fills in self.all_fills() {
            rule!(
                "purge: nobody joins a fetch from before a purge of many",
                fills.close_where(|fill| covers(purge, fill)),
                ()
            );
        }
        Ok(Began {
            number: shown_number(self, number),
            durable: rule!(
                "purge: the answer to a purge of many waits until it survives a power cut",
                durable(ticket).await,
                true
            ),
        })
    }
}

/// Removes a key that the table of variants does not contain. Returns the number of objects that were
/// removed, and the number of the purge that counts the variants.
async fn remove_unknown(
    proxy: &Proxy,
    hash: KeyHash,
    key: &[u8],
    may_count: bool,
) -> (u64, Option<u64>) {
    let (engine, own) = (Arc::clone(&proxy.engine), key.to_vec());
    let removed = aside(move || {
        let peek = engine.reads().peek(hash, &own);
        let varies = peek.is_some_and(|peek| !peek.object.vary().is_empty());
        (engine.supersede(hash, &own), varies)
    });
    let (existed, varies) = removed.await;
    let counting = (varies && may_count).then(|| count_variants(proxy, key));
    let counting = counting.flatten();
    (u64::from(existed), counting)
}

/// Starts a purge of all objects that are still stored under a URL, in order to count them. Returns the
/// number of the purge, by which users ask for its progress. The progress contains the number of objects.
fn count_variants(proxy: &Proxy, key: &[u8]) -> Option<u64> {
    let parts = KeyParts::of(key);
    let purge = Purge {
        kind: PurgeKind::Url,
        text: parts.url.to_vec(),
        partition: String::from_utf8_lossy(parts.partition).into_owned(),
        soft: false,
    };
    proxy
        .engine
        .purges()
        .purge_many(&purge, Places::Shared)
        .ok()
        .map(|(number, _)| shown_number(proxy, number))
}

/// Converts the store's number of a purge to the number that users see. For the purges since the start of the
/// process, the numbers that users see begin at 1. The store's own numbers are never reused: after the n-th
/// start they begin at n times 4,294,967,296.
fn shown_number(proxy: &Proxy, number: u64) -> u64 {
    match number.checked_sub(proxy.purges_before) {
        Some(since @ 1..SMALL) => since,
        _ => number,
    }
}

fn shown_status(proxy: &Proxy, status: PurgeStatus) -> PurgeStatus {
    PurgeStatus {
        number: shown_number(proxy, status.number),
        merged_into: status.merged_into.map(|number| shown_number(proxy, number)),
        ..status
    }
}

/// Runs `work`, which reads a disk, on another thread. The work is completed even if the caller does not wait
/// for it.
async fn aside<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // A simulation uses only one thread, so that it can be repeated exactly.
    #[cfg(test)]
    if crate::simulation::is_running() {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

async fn durable(ticket: SyncTicket) -> bool {
    let ended = tokio::time::timeout(DURABLE, ticket).await;
    matches!(ended, Ok(Durable::Yes))
}

/// Returns true if a purge may cover the object that a fill (running fetch) will store. Before the head of
/// the answer has arrived, the tags of the object are unknown, so any purge by tag may cover it. A purge by
/// expression is not evaluated here. It counts as covering every fill in its partition, or in all partitions
/// if it names none.
fn covers(purge: &Purge, fill: &Fill<FillHead>) -> bool {
    let key = KeyParts::of(fill.key());
    let text = &purge.text[..];
    let here = purge.partition.is_empty() || purge.partition.as_bytes() == key.partition;
    here && match purge.kind {
        PurgeKind::All | PurgeKind::Expression => true,
        PurgeKind::Url => key.url == text,
        PurgeKind::Prefix => key.url.starts_with(text) || key.bare.starts_with(text),
        PurgeKind::Host => key.host == text || key.authority == text,
        PurgeKind::Tag => fill.published().is_none_or(|head| {
            let mut found = false;
            foxy_store::for_each_tag(&head.fields, |tag| found |= tag == text);
            found
        }),
    }
}

/// Returns the text of a purge in the form that is compared with keys. URLs, hosts and prefixes get their
/// normal form. A prefix need not be a complete URL. Tags and expressions do not change.
///
/// # Errors
/// Returns a sentence that describes the error in the text.
pub fn normalised(kind: PurgeKind, text: &str) -> Result<Vec<u8>, String> {
    match kind {
        PurgeKind::All => Ok(Vec::new()),
        PurgeKind::Tag | PurgeKind::Expression => Ok(text.as_bytes().to_vec()),
        PurgeKind::Host => Ok(host(text)),
        PurgeKind::Url => {
            let url = Url::parse(text.as_bytes());
            let url = url.map_err(|_| format!("{text} is not an http URL with a host"))?;
            Ok(written(&url, Escapes::Normal))
        }
        PurgeKind::Prefix => Ok(prefix(text, Escapes::Normal)),
    }
}

fn written(url: &Url<'_>, escapes: Escapes) -> Vec<u8> {
    let mut out = Vec::new();
    url.write(escapes, &mut out);
    out
}

fn host(text: &str) -> Vec<u8> {
    let text = text.trim().trim_end_matches('/').to_ascii_lowercase();
    text.strip_suffix(":80")
        .unwrap_or(&text)
        .as_bytes()
        .to_vec()
}

/// Normalises a prefix. The host gets its normal form only if a path follows it. Otherwise the prefix may end
/// within the host. Then the letters of the prefix become lower case, and nothing else changes.
fn prefix(text: &str, escapes: Escapes) -> Vec<u8> {
    let (with_scheme, added) = match text.contains("://") {
        true => (text.to_owned(), 0),
        false => (format!("http://{text}"), 7),
    };
    let path = with_scheme.get(with_scheme.find("://").map_or(0, |at| at + 3)..);
    let whole = path.is_some_and(|rest| rest.contains('/'));
    match Url::parse(with_scheme.as_bytes()) {
        Ok(url) if whole => written(&url, escapes).split_off(added),
        _ => text.to_ascii_lowercase().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_get_the_form_of_keys() {
        let check = |kind, text| String::from_utf8(normalised(kind, text).unwrap()).unwrap();
        for (text, expected) in [
            ("http://EXAMPLE.com:80/A", "http://example.com/A"),
            ("Example.com/A/", "example.com/A/"),
            ("http://Example.com", "http://example.com"),
            ("EXAMPLE", "example"),
            ("e.com/%41%2f?%41", "e.com/A%2F?%41"),
        ] {
            assert_eq!(check(PurgeKind::Prefix, text), expected);
        }
        assert_eq!(check(PurgeKind::Host, "Example.COM:80"), "example.com");
        assert_eq!(check(PurgeKind::Url, "http://E.com"), "http://e.com/");
        assert_eq!(check(PurgeKind::Url, "http://e/%7e"), "http://e/~");
        assert_eq!(check(PurgeKind::Tag, "Tag 1"), "Tag 1");
        assert!(normalised(PurgeKind::Url, "nothing").is_err());
    }
}
