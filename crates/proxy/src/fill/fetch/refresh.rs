//! Handling of a 304 that answers a revalidation: the stored object stays, with new fields.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{FieldBlock, Fields, first, rule};
use foxy_http_rules as rules;
use foxy_http_rules::vary::{self, Vary};
use foxy_http_rules::{CachingFacts, RefreshEffect, update};
use foxy_http1::ResponseParts;
use foxy_store::{Lookup, Object, ObjectMeta};

use super::FillHead;
use super::judge::{OriginRequest, rules_request, rules_response, strong_etag, useless_at};
use crate::cache::key;
use crate::fill::{Claim, FillWriter, Order, Selection, Version};
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Returns the refreshed object. Returns `None` if the 304 is not about `old`, if the 304 forbids keeping
/// `old`, or if the stored object was replaced or purged meanwhile. Then the complete object must be fetched.
pub(super) fn apply(
    local: &Local,
    asked: &OriginRequest<'_>,
    writer: &FillWriter<FillHead>,
    leased: &Leased,
    parts: ResponseParts,
    old: &Arc<Object>,
) -> Option<Arc<Object>> {
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    if !update::selects(old.fields(), &head) {
        return None;
    }
    let old = &newest_form(local, old);
    let (meta, fields) = updated(local, asked, 304, &head, old)?;
    let (etag, vary) = (strong_etag(&fields), old.vary().clone());
    let claim = Claim {
        storable: true,
        selection: key::split_vary(old)
            .map(|(list, values)| (vary.slice_ref(list), vary.slice_ref(values))),
        version: Version {
            validator: validator(&fields),
            date: None,
            known_before: true,
            part: false,
        },
        same: |selection: &Selection| {
            let matches =
                |(list, values): &(Bytes, Bytes)| asked.req.selected_by(local, list, values);
            selection.as_ref().is_none_or(matches)
        },
        // Responses in progress of the same version are not replaced.
        replaces: |other: &FillHead| etag.is_none() || other.strong_etag != etag,
    };
    let order = local.proxy.fills.publish(writer.fill(), claim);
    if rule!(
        "refresh: a 304 that is not the newest answer changes nothing stored",
        order != Order::Newest,
        false
    ) {
        // The 304 may be older than another answer. So the 304 changes nothing in the store. The request that
        // started this fetch gets the object with its old fields.
        return Some(Arc::clone(old));
    }
    let put = writer.fill().if_storable(|| {
        let tags = old.tags().clone();
        local.proxy.engine.refresh(old, meta, vary, tags, fields)
    });
    Some(put??.object)
}

/// Returns the text that identifies the version of an answer: ETag, or else Last-Modified.
pub(super) fn validator<F: Fields>(fields: &F) -> Option<Bytes> {
    let text = first(fields, "ETag").or_else(|| first(fields, "Last-Modified"))?;
    Some(Bytes::copy_from_slice(text))
}

/// Returns the object that is stored now, because other requests may have refreshed its fields meanwhile.
/// Returns `old` if the stored object is not in memory or has another version than `old`.
fn newest_form(local: &Local, old: &Arc<Object>) -> Arc<Object> {
    match local.proxy.engine.reads().lookup(old.hash(), old.key()) {
        Lookup::Memory(now)
            if now.meta().version == old.meta().version && now.key() == old.key() =>
        {
            now
        }
        _ => Arc::clone(old),
    }
}

/// Applies a 304 to a response in progress, which another fetch is receiving. Returns `None` if the 304 does
/// not match that response or forbids keeping it. Then the complete object must be fetched.
pub(super) fn in_progress(
    local: &Local,
    asked: &OriginRequest<'_>,
    leased: &Leased,
    parts: ResponseParts,
    old: &Arc<FillHead>,
) -> Option<FillHead> {
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    if !update::selects(&old.fields, &head) {
        return None;
    }
    let stored = old.facts?;
    let request_head = asked.req.head();
    let request = rules_request(asked, &request_head);
    let date = local.date(asked.times.response);
    let dated = Dated {
        fields: &head,
        date: first(&head, "Date").is_none().then_some(&date),
    };
    let response = rules_response(asked, 304, &dated);
    let config = local.proxy.rules(asked.req.rule);
    let refreshed = rules::refresh(&request, &old.fields, &stored, &response, config).ok()?;
    let parts = &config.key_parts;
    let same_list = match vary::of_with(&refreshed.fields, parts) {
        Vary::None => old.vary.is_none(),
        Vary::Star => false,
        Vary::List(list) => old.vary.as_ref().is_some_and(|(l, _)| l == list.as_bytes()),
    };
    let lost = matches!(refreshed.effect, RefreshEffect::Unstorable(_)) || !same_list;
    if rule!(
        "refresh: a response in progress that may not be kept is not shared",
        lost,
        false
    ) {
        return None;
    }
    let updated = old.updated(refreshed.fields, refreshed.facts);
    Some(FillHead {
        facts: Some(refreshed.facts),
        validated: Some(Arc::new(updated)),
        ..FillHead::bare(304, leased.up.peer, old.fields.clone())
    })
}

/// Returns the updated head of a stored object, after a 304, or after an answer to a HEAD request that agrees
/// with the object. Returns `None` if the object may not be kept with the new fields. If the reason concerns
/// other requests too, the object is removed.
pub(crate) fn updated<F: Fields>(
    local: &Local,
    asked: &OriginRequest<'_>,
    status: u16,
    fields: &F,
    old: &Arc<Object>,
) -> Option<(ObjectMeta, FieldBlock)> {
    let stored = CachingFacts::decode(&old.meta().rules)?;
    let request_head = asked.req.head();
    let request = rules_request(asked, &request_head);
    let date = local.date(asked.times.response);
    let dated = Dated {
        fields,
        date: first(fields, "Date").is_none().then_some(&date),
    };
    let response = rules_response(asked, status, &dated);
    let config = local.proxy.rules(asked.req.rule);
    let refreshed = rules::refresh(&request, old.fields(), &stored, &response, config).ok()?;
    if let RefreshEffect::Unstorable(why) = refreshed.effect {
        if rule!(
            "refresh: what may not be kept any more is removed",
            !why.is_about_request(),
            false
        ) {
            // The object must not stay stored, even if the next attempt to fetch fails. So it is removed now.
            local.proxy.engine.supersede(old.hash(), old.key());
        }
        return None;
    }
    let list = match vary::of_with(&refreshed.fields, &config.key_parts) {
        Vary::None => None,
        Vary::Star => return None,
        Vary::List(list) => Some(list),
    };
    let meta = ObjectMeta {
        request_time: asked.times.request,
        response_time: asked.times.response,
        expires: useless_at(config, &refreshed.facts),
        rules: refreshed.facts.encode(),
        purge_sequence: rule!(
            "purge: it covers a 304 that was asked for before it",
            asked.times.purge,
            local.proxy.engine.purges().purge_sequence()
        ),
        ..*old.meta()
    };
    let same_list = rule!(
        "refresh: an object with another Vary list is fetched anew",
        key::split_vary(old).map(|(list, _)| list) == list.as_ref().map(|l| l.as_bytes()),
        true
    );
    same_list.then_some((meta, refreshed.fields))
}

/// The fields of an answer. If the origin sent no Date, the time of receipt is added as Date (RFC 9110
/// section 6.6.1). Without the added Date, the refreshed object would keep its old Date, and seem too old.
struct Dated<'a, F> {
    fields: &'a F,
    date: Option<&'a [u8; 29]>,
}

impl<F: Fields> Fields for Dated<'_, F> {
    fn count(&self) -> usize {
        self.fields.count() + usize::from(self.date.is_some())
    }

    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        match self.date {
            Some(date) if i == self.fields.count() => (b"Date", date),
            _ => self.fields.field(i),
        }
    }
}

/// Returns the head that the followers receive.
pub(super) fn head(object: Arc<Object>, origin: SocketAddr) -> FillHead {
    let fields = object.fields().clone();
    FillHead {
        facts: CachingFacts::decode(&object.meta().rules),
        object: Some(object),
        ..FillHead::bare(304, origin, fields)
    }
}
