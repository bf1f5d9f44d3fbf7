//! Finds the stored object for a request, in memory or by one disk read. If the response varies (Vary), finds
//! the variant for the request. `cache::key` explains primary keys, nonces and selecting values.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use foxy_http_rules::vary;
use foxy_store::{Lookup, Object, ReadMiss};

use crate::Event;
use crate::cache::key;
use crate::http::rewriting::Requested;
use crate::http::sent::Sent;
use crate::state::local::Local;

/// Longest wait of a request for a disk before the request goes to the origin instead.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait of a request for a disk if the origin cannot send the bytes instead. With a shorter wait,
/// answers that have begun would be truncated.
const LAST_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The tier in which an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Memory,
    Disk,
}

/// The facts from which the keys of variants are made. They are part of the primary entry (the object under
/// the primary key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) nonce: u64,
    pub(crate) list: Bytes,
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) struct Found {
    /// The object whose key and selecting values match the request.
    pub(crate) object: Option<(Arc<Object>, Tier)>,
    /// The primary entry, if it has a Vary list.
    pub(crate) primary: Option<Primary>,
}

/// Looks up the object whose key is `key`, the primary key of the request. If this object (the primary entry)
/// has selecting values that do not match the request, the function also looks up the variant for the
/// request. For this, it changes `key` to the key of the variant. `parts` are request fields or cookies by
/// which a rule of the operator selects among stored objects. An object whose Vary list lacks one of these
/// parts counts as missing.
pub(crate) async fn find<F: Requested>(
    local: &Local,
    key: &mut Vec<u8>,
    request: &Sent<'_, F>,
    parts: &[String],
) -> Found {
    let hash = local.proxy.engine.keys().hash(key);
    let found = get(local, hash, key).await;
    let Some((object, tier)) = found.filter(|(object, _)| has_parts(object, parts)) else {
        return Found {
            object: None,
            primary: None,
        };
    };
    let Some((list, values)) = key::split_vary(&object) else {
        return Found {
            object: Some((object, tier)),
            primary: None,
        };
    };
    let matches = rule!(
        "lookup: the primary entry is for requests with its values",
        request.matches(list, values),
        true
    );
    let primary = Some(Primary {
        nonce: object.meta().nonce,
        list: object.vary().slice_ref(list),
    });
    if matches {
        return Found {
            object: Some((object, tier)),
            primary,
        };
    }
    let primary_len = key.len();
    let mut wanted = Vec::new();
    request.selecting_values(list, &mut wanted);
    key::push_variant(object.meta().nonce, &wanted, key);
    let variant = get(local, local.proxy.engine.keys().hash(key), key).await;
    // The key of the variant contains the selecting values of the request. But the variant may have been
    // stored under another Vary list, so its own list and values are compared too.
    let variant = variant
        .filter(|(object, _)| key::split_vary(object).is_some_and(|(l, v)| request.matches(l, v)));
    if variant.is_none() && request.satisfied_by_language(list, values, object.fields()) {
        key.truncate(primary_len);
        return Found {
            object: Some((object, tier)),
            primary,
        };
    }
    Found {
        object: variant,
        primary,
    }
}

fn has_parts(object: &Object, parts: &[String]) -> bool {
    let list = || key::split_vary(object).map_or(&[][..], |(list, _)| list);
    parts.is_empty() || vary::has_parts(list(), parts)
}

/// Returns the object under exactly this key.
pub(crate) async fn get(local: &Local, hash: KeyHash, key: &[u8]) -> Option<(Arc<Object>, Tier)> {
    // The store may move an object on the disk while it is read. Then the lookup is repeated, but only once.
    for _ in 0..2 {
        match local.proxy.engine.reads().lookup(hash, key) {
            #[cfg(feature = "stand-in")]
            Lookup::Memory(object) => {
                return crate::cache::stand_in::confirmed(local, object).await;
            }
            #[cfg(not(feature = "stand-in"))]
            Lookup::Memory(object) => return Some((object, Tier::Memory)),
            Lookup::Miss => return None,
            Lookup::Disk(plan) if local.disk.declines(&plan) => {
                local.count(Event::DiskReadsDeclined);
                return None;
            }
            Lookup::Disk(plan) => {
                let owned = key.to_vec();
                let read = local
                    .disk
                    .read(plan, READ_TIMEOUT, move |engine, plan, buf| {
                        engine.reads().finish_read(plan, &owned, buf)
                    });
                let (answer, shared) = read.await;
                count(local, shared, answer.is_err());
                match answer {
                    Ok(object) if object.key() == key => return Some((object, Tier::Disk)),
                    Ok(_) => return None,
                    Err(ReadMiss::Moved) => {}
                    Err(_) => return None,
                }
            }
        }
    }
    None
}

/// Returns fragment `n` of a large object. `last` is true if no other source has the bytes. The function then
/// waits even for a slow disk, or for a disk that other requests have given up.
pub(crate) async fn fragment(
    local: &Local,
    head: &Arc<Object>,
    n: u32,
    last: bool,
) -> Option<Arc<Object>> {
    let engine = &local.proxy.engine;
    let timeout = if last {
        LAST_READ_TIMEOUT
    } else {
        READ_TIMEOUT
    };
    for _ in 0..3 {
        let found = match last {
            true => engine.reads().fragment_lookup_patient(head, n),
            false => engine.reads().fragment_lookup(head, n),
        };
        let plan = match found {
            Lookup::Memory(object) => return Some(object),
            Lookup::Miss => return None,
            Lookup::Disk(plan) => plan,
        };
        let owner = Arc::clone(head);
        let read = local.disk.read(plan, timeout, move |engine, plan, buf| {
            engine.reads().finish_fragment(plan, &owner, n, buf)
        });
        let (answer, shared) = read.await;
        count(local, shared, answer.is_err());
        match answer {
            Ok(object) => return Some(object),
            Err(ReadMiss::Moved) => {}
            // The read was shared with a request that had a shorter timeout and gave the read up. So the read
            // is tried again.
            Err(ReadMiss::Device) if last && shared => {}
            Err(_) => return None,
        }
    }
    None
}

fn count(local: &Local, shared: bool, missed: bool) {
    local.count(if shared {
        Event::DiskReadsShared
    } else {
        Event::DiskReads
    });
    if missed {
        local.count(Event::DiskReadMisses);
    }
}
