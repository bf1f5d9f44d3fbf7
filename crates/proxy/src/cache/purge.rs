//! Purging: stored objects are removed, what is being fetched is not stored, and the answer waits until a
//! power cut cannot bring the objects back.

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

/// How long a purge may take to become durable before the client is told that it is not.
const DURABLE: Duration = Duration::from_secs(10);

/// With this many active purges that are compared with objects, clients may add none. It is a small part
/// of the store's capacity.
const CLIENTS_ACTIVE: usize = 64;

/// Numbers of purges since the start are below this; those of earlier purges are not.
const SMALL: u64 = 1 << 32;

/// The result of the purge of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Objects that were stored under the URL, variants included; without the variants if `counting`.
    pub objects: u64,
    /// The purge that counts the variants, where memory does not know them: after a restart.
    pub counting: Option<u64>,
    /// The removal survives a power cut. If not, it holds for this process only.
    pub durable: bool,
}

/// The start of a purge of many objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// Its number: what to ask for its progress with.
    pub number: u64,
    /// It survives a power cut. If not, it holds for this process only.
    pub durable: bool,
}

impl Proxy {
    /// Removes what is stored under `url` in this partition, all variants included. A fill that
    /// runs for it now is neither stored nor joined by later requests. Once started the removal
    /// holds, whether the future is awaited to its end or not.
    pub async fn purge(&self, partition: &str, url: &Url<'_>) -> Purged {
        let mut bytes = Vec::new();
        key::primary(&self.config.user_rules, partition, url, &mut bytes);
        let hash = self.engine.keys().hash(&bytes);
        self.purge_key(hash, &bytes, true).await
    }

    /// True if purges of single URLs by clients leave enough room for operators: all clients share
    /// one limit of purges that are compared with objects.
    pub(crate) fn room_for_clients(&self) -> bool {
        self.engine.purges().active_purges() < CLIENTS_ACTIVE
    }

    /// `may_count`: a further purge may be added to find variants that memory does not know.
    pub(crate) async fn purge_key(&self, hash: KeyHash, key: &[u8], may_count: bool) -> Purged {
        // Fills first: what they store before this is removed below, what they would store
        // afterwards is not stored.
        self.invalidate(hash);
        let (objects, counting) = match self.variants.take(hash) {
            Some(others) => {
                let primary = u64::from(self.engine.supersede(hash, key));
                // Without their primary they are out of reach. They are removed so that they can be
                // counted.
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

    /// Progress of the purge with this number; `None` if it is unknown, or known no longer.
    #[must_use]
    pub fn purge_status(&self, number: u64) -> Option<PurgeStatus> {
        // Purges of earlier starts have larger numbers.
        let number = match number {
            0..SMALL => self.purges_before.checked_add(number)?,
            _ => number,
        };
        let status = self.engine.purges().purge_status(number)?;
        Some(shown_status(self, status))
    }

    /// The latest purges, newest first.
    #[must_use]
    pub fn purge_statuses(&self, limit: usize) -> Vec<PurgeStatus> {
        let latest = self.engine.purges().purge_statuses(limit).into_iter();
        latest.map(|status| shown_status(self, status)).collect()
    }

    /// The text of a [`PurgeKind::Url`] purge in this partition: the URL as the operator's rules
    /// write it into keys.
    #[must_use]
    pub fn purge_text(&self, partition: &str, url: &Url<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        key::primary(&self.config.user_rules, partition, url, &mut bytes);
        KeyParts::of(&bytes).url.to_vec()
    }

    /// Text of a [`PurgeKind::Prefix`] purge in this partition, in the form of keys.
    #[must_use]
    pub fn prefix_text(&self, partition: &str, text: &str) -> Vec<u8> {
        prefix(text, escapes(&self.config.user_rules, partition))
    }

    /// Purges everything that `purge` covers. This holds for every later request, and what is being
    /// fetched now is not stored as fresh. The text has to be normalised ([`normalised`]). Once started
    /// it holds, whether the future is awaited or not. Operators may use reserved places.
    ///
    /// # Errors
    /// The purge is not accepted; nothing was done.
    pub async fn purge_many(&self, purge: &Purge, places: Places) -> Result<Began, PurgeError> {
        let (number, ticket) = self.engine.purges().purge_many(purge, places)?;
        // A fetch that began before the purge brings older content: no request joins it any more.
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

/// Removes a key whose variants memory does not know. Returns how many objects were removed, and the
/// purge that counts the others.
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

/// Starts a purge of many objects for what is left under a URL, which counts what it finds.
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

/// Public number of a purge: numbers since the start begin at 1. Store numbers are never
/// reused, so each start begins them at 4,294,967,296 times the number of the start.
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

/// Does work that reads a disk, on another thread. The work ends even if the caller does not wait for it.
async fn aside<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // A simulated history has one thread, so that it can be repeated.
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

/// Returns whether a purge may cover the object that a fill brings. Tags are known once the head of the
/// fill is. Expressions are not evaluated here: they may cover every fill.
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

/// The text of a purge as it is compared with keys: URLs and hosts in their normal form, anything
/// else as it is. A prefix may end within a URL.
///
/// # Errors
/// A sentence about what is wrong.
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

/// A prefix that reaches beyond its host has the host in its normal form.
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
