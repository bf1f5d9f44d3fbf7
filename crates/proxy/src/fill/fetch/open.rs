//! Handles an answer when its head arrives. The answer gets its position in the order of versions (see
//! `fill::order`), and older stored answers are removed. Foxy also notes whether later requests for the key
//! may share one answer.

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use foxy_http_rules::range::{ContentRange, Span};
use foxy_http_rules::{CachingFacts, Flags, NoStore, freshness};
use foxy_http1::{BodyFraming, Method, ResponseParts};

use super::judge::{self, OriginRequest, StoreTarget};
use super::part::{self, Completion};
use super::{FillHead, refresh};
use crate::cache::key;
use crate::fill::{Claim, FillWriter, Order, Selection, Version};
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// The reason word for an answer that is not stored because it is not the newest answer for its key.
const NOT_NEWEST: &str = "newer-answer";

/// An answer that is about to be streamed.
pub(super) struct Opened {
    pub(super) head: FillHead,
    pub(super) target: Option<StoreTarget>,
    /// Stored bytes that precede the bytes of the answer.
    pub(super) before: Option<Bytes>,
}

/// Judges the head, and removes older stored answers.
pub(super) fn open(
    local: &Local,
    asked: &OriginRequest<'_>,
    writer: &FillWriter<FillHead>,
    leased: &Leased,
    parts: ResponseParts,
) -> Result<Opened, UpstreamError> {
    let framing = parts.framing(Method::Get);
    if rule!(
        "fetch: an upgrade that nobody asked for is refused",
        framing == BodyFraming::Tunnel,
        false
    ) {
        return Err(UpstreamError::BadResponse("unexpected-upgrade"));
    }
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    // The length of a rewritten body is not known yet, because rewriting changes it.
    let rewritten = asked.req.is_document() && head.status() == 200;
    let (length, peer) = (framing.length().filter(|_| !rewritten), leased.up.peer);
    if asked.req.comes_whole() && head.status() == 206 {
        return Err(UpstreamError::BadResponse("part-not-asked-for"));
    }
    let (mut fill_head, mut target) =
        judge::judge(local, asked, writer.fill(), &head, length, peer);
    let superseded = judge::superseded(asked, head.status())
        || part::ends_stored(asked, &head, target.is_some());
    let storable = target.is_some() || superseded && speaks_for_all(fill_head.not_stored);
    let order = publish(local, asked, writer, &fill_head, storable);
    if order != Order::Newest {
        if rule!(
            "order: of two answers without order none stays stored",
            order == Order::Unclear,
            false
        ) {
            forget(local, writer, target.as_ref());
        }
        target = None;
        fill_head.not_stored = NOT_NEWEST;
    } else if rule!(
        "fetch: a new answer supersedes the stored one",
        superseded,
        false
    ) {
        let store = target.as_ref().map(|target| (target.hash, &target.key));
        supersede(local, writer, store);
    }
    learn(local, asked, writer, &fill_head, target.as_ref());
    Ok(Opened {
        head: fill_head,
        target,
        before: None,
    })
}

/// True if an answer that is not stored still proves that older answers of its key are outdated. `not_stored`
/// is the reason why the answer is not stored. An answer for one user, or an answer with `Vary: *`, proves
/// nothing about the answers to other requests.
fn speaks_for_all(not_stored: &str) -> bool {
    let about_one_user = [NoStore::Private, NoStore::Authorization, NoStore::VaryStar];
    !about_one_user.iter().any(|why| why.as_str() == not_stored)
}

/// Gives the answer its position in the order of versions.
fn publish(
    local: &Local,
    asked: &OriginRequest<'_>,
    writer: &FillWriter<FillHead>,
    head: &FillHead,
    storable: bool,
) -> Order {
    let selects = |selection: &Selection| {
        let matches = |(list, values): &(Bytes, Bytes)| asked.req.selected_by(local, list, values);
        selection.as_ref().is_none_or(matches)
    };
    let claim = Claim {
        storable,
        selection: head.vary.clone(),
        version: Version {
            validator: refresh::validator(&head.fields),
            date: head.facts.and_then(|facts| facts.date),
            known_before: false,
            part: head.status == 206,
        },
        same: &selects,
        replaces: |other: &FillHead| {
            // A part does not replace a complete answer of the same version.
            let etag = &head.strong_etag;
            let part = head.status == 206 && etag.is_some() && other.strong_etag == *etag;
            !part && selects(&other.vary)
        },
    };
    local.proxy.fills.publish(writer.fill(), claim)
}

/// Records what this answer shows about later requests for the same key.
fn learn(
    local: &Local,
    asked: &OriginRequest<'_>,
    writer: &FillWriter<FillHead>,
    head: &FillHead,
    target: Option<&StoreTarget>,
) {
    let (key, now) = (writer.fill().hash(), asked.times.response);
    // Requests for a key in the table `unshared` do not wait for each other's fetches. After a server error,
    // the key is not added, because the error shows nothing about the next answer. If a complete object is
    // stored, the key is not added either. Then the only reason for not sharing the new answer may be that it
    // must not replace the stored object.
    if head.status < 500 && asked.stored.is_none() && !head.shared {
        local.proxy.unshared.note(asked.req.crowd(key), true, now);
    }
    let fresh = head.facts.is_some_and(|facts| {
        freshness::ttl_ms(&facts, now) > 0 && !facts.flags.has(Flags::NO_CACHE)
    });
    if head.shared && fresh {
        local.proxy.unshared.note(asked.req.crowd(key), false, now);
    }
    if asked.aligned {
        let kept = target.is_some_and(|target| {
            let whole = |range: &ContentRange| {
                let all = range.complete.and_then(|length| Span::new(0, length));
                all.is_some() && range.span == all
            };
            target.sparse.is_some() || head.status != 206 || head.part.as_ref().is_some_and(whole)
        });
        local.proxy.undivided.note(key, !kept, now);
    }
}

/// Combines the stored prefix and this answer into the complete object; `None` if they do not fit
/// together.
pub(super) fn complete(
    local: &Local,
    asked: &OriginRequest<'_>,
    rest: &Completion,
    writer: &FillWriter<FillHead>,
    leased: &Leased,
    parts: ResponseParts,
) -> Option<Opened> {
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    let length = parts.framing(Method::Get).length();
    let (target, whole) = rest.judge(local, asked, &head, length)?;
    let vary = key::split_vary(&rest.object);
    let slice = |part: &[u8]| rest.object.vary().slice_ref(part);
    let mut head = FillHead {
        length: Some(whole),
        facts: CachingFacts::decode(&target.meta.rules),
        vary: vary.map(|(list, values)| (slice(list), slice(values))),
        strong_etag: Some(rest.etag.clone()),
        ..FillHead::bare(200, leased.up.peer, target.fields.clone())
    };
    let order = publish(local, asked, writer, &head, true);
    if order == Order::Unclear {
        forget(local, writer, Some(&target));
    }
    let is_newest = order == Order::Newest;
    if !is_newest {
        head.not_stored = NOT_NEWEST;
    }
    Some(Opened {
        head,
        target: is_newest.then_some(target),
        before: Some(rest.object.body().clone()),
    })
}

/// Removes older stored answers before the new answer is stored. Does so even if a purge or an unsafe request
/// forbids storing the new answer, because the stored answers are older than the new answer in any case.
fn supersede(local: &Local, writer: &FillWriter<FillHead>, store: Option<(KeyHash, &Bytes)>) {
    let (engine, fill) = (&local.proxy.engine, writer.fill());
    engine.supersede(fill.hash(), fill.key());
    if let Some((hash, key)) = store
        && hash != fill.hash()
    {
        engine.supersede(hash, key);
    }
}

/// Removes the stored answers of two fetches that overlapped, because their order is unknown.
fn forget(local: &Local, writer: &FillWriter<FillHead>, target: Option<&StoreTarget>) {
    let (engine, fill) = (&local.proxy.engine, writer.fill());
    engine.supersede(fill.hash(), fill.key());
    if let Some(target) = target.filter(|target| target.hash != fill.hash()) {
        engine.supersede(target.hash, &target.key);
    }
}
