//! Header time: what the clients get, whether it is stored, and under which key.

use bytes::Bytes;
use foxy_base::{
    FieldBlock, FieldBlockBuilder, FieldBlockError, Fields, KeyHash, WallTime, eq_name, first,
    hash64, key_hash,
};
use foxy_http_rules as rules;
use foxy_http_rules::{Failure, RequestDigest, StorePlan, etag, freshness, invalidation, vary};
use foxy_http1::{Method, ResponseHead, ResponseParts};
use foxy_store::ObjectMeta;

use super::{FillHead, Job};
use crate::ask::Ask;
use crate::fill::Fill;
use crate::key;
use crate::local::Local;
use crate::upstream::exchange::Leased;

/// When the exchange happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) request: WallTime,
    pub(crate) response: WallTime,
}

/// Under which key an answer is stored, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) key: Bytes,
    pub(crate) hash: KeyHash,
    pub(crate) group: u64,
    pub(crate) meta: ObjectMeta,
    pub(crate) vary: Bytes,
    pub(crate) fields: FieldBlock,
}

/// How long a validator keeps an expired object useful.
const VALIDATOR_DAYS: i64 = 7;

/// Whether this answer ends the life of what is stored under the same key.
pub(super) fn superseded(ask: &Ask, status: u16) -> bool {
    rules::supersedes(&as_get(ask), status)
}

/// The request as the fill sends it: always GET.
pub(super) fn as_get(ask: &Ask) -> RequestDigest {
    RequestDigest {
        method: rules::Method::Get,
        range: false,
        ..ask.digest
    }
}

/// Judges a final head.
pub(super) fn judge(
    local: &Local,
    job: &Job,
    fill: &Fill<FillHead>,
    leased: &Leased,
    parts: ResponseParts,
    times: Times,
) -> Result<(FillHead, Option<Place>), FieldBlockError> {
    let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
    let plan = storable(local, job, &head, times);
    let fields = client_fields(local, &head, times.response)?;
    let (plan, not_stored) = match plan {
        Ok(plan) => (Some(plan), ""),
        Err(reason) => (None, reason),
    };
    let vary = plan.as_ref().and_then(|plan| selecting(plan, &job.ask));
    let place = match &plan {
        Some(plan) => Some(place(local, job, fill, plan, &head, &vary, times)?),
        None => None,
    };
    let fill_head = FillHead {
        status: parts.status(),
        origin: leased.up.peer,
        length: parts.framing(Method::Get).length(),
        digest: plan.as_ref().map(|plan| plan.digest),
        age: first(&head, "Age").map(Bytes::copy_from_slice),
        vary,
        object: None,
        shared: plan.as_ref().is_some_and(|plan| !plan.strip_listed),
        not_stored,
        strong_etag: strong_etag(&head),
        fields,
    };
    Ok((fill_head, place))
}

fn storable(
    local: &Local,
    job: &Job,
    head: &ResponseHead<'_>,
    times: Times,
) -> Result<StorePlan, &'static str> {
    let request = job.ask.head();
    let digest = as_get(&job.ask);
    let asked = rules::Request {
        digest: &digest,
        target: invalidation::TargetUri::default(),
        fields: &request,
    };
    let response = rules::Response {
        status: head.status(),
        fields: head,
        request_time: times.request,
        response_time: times.response,
    };
    let config = &local.proxy.config.rules;
    let plan = rules::can_store(&asked, &response, config).map_err(|reason| reason.as_str())?;
    if plan.part.is_some() || head.status() == 206 {
        return Err("partial");
    }
    // An error must not push out what may still be served in its place.
    let failure = Failure::Status(head.status());
    let better = job.stale.as_ref().and_then(|object| {
        let stored = rules::Digest::decode(&object.meta().rules)?;
        rules::stale_on_failure(&digest, &stored, times.response, failure, config)
    });
    if better.is_some() {
        return Err("stale-is-better");
    }
    Ok(plan)
}

/// Fields for the clients: end-to-end, with a Date, without length and Age.
fn client_fields(
    local: &Local,
    head: &ResponseHead<'_>,
    now: WallTime,
) -> Result<FieldBlock, FieldBlockError> {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in head.forward_fields() {
        if !eq_name(name, b"content-length") && !eq_name(name, b"age") {
            builder.push(name, value)?;
        }
    }
    if first(head, "Date").is_none() {
        builder.push(b"Date", &local.date(now))?;
    }
    Ok(builder.finish())
}

fn stored_fields(
    local: &Local,
    head: &ResponseHead<'_>,
    plan: &StorePlan,
    now: WallTime,
) -> Result<FieldBlock, FieldBlockError> {
    let fields = rules::stored_fields(head, plan)?;
    if first(&fields, "Date").is_some() {
        return Ok(fields);
    }
    let mut builder = FieldBlockBuilder::default();
    for i in 0..fields.count() {
        let (name, value) = fields.field(i);
        builder.push(name, value)?;
    }
    builder.push(b"Date", &local.date(now))?;
    Ok(builder.finish())
}

fn selecting(plan: &StorePlan, ask: &Ask) -> Option<(Bytes, Bytes)> {
    let list = plan.vary.as_ref()?.as_bytes();
    let mut values = Vec::new();
    vary::selecting_values(list, &ask.head(), &mut values);
    Some((Bytes::copy_from_slice(list), values.into()))
}

fn place(
    local: &Local,
    job: &Job,
    fill: &Fill<FillHead>,
    plan: &StorePlan,
    head: &ResponseHead<'_>,
    vary: &Option<(Bytes, Bytes)>,
    times: Times,
) -> Result<Place, FieldBlockError> {
    let known = job.primary.as_ref();
    let same_list = match (vary, known) {
        (Some((list, _)), Some(primary)) => *list == primary.list,
        _ => false,
    };
    // With the primary's own list, the fill's key (primary or variant) is right and the nonce
    // stays. Otherwise this becomes the primary, and older variants are out of reach.
    let (key, nonce) = match known {
        Some(primary) if same_list => (fill.key().clone(), primary.nonce),
        _ if vary.is_some() => (job.ask.base.clone(), local.nonce()),
        _ => (job.ask.base.clone(), 0),
    };
    let vary = vary
        .as_ref()
        .map(|(list, values)| key::join_vary(list, values));
    Ok(Place {
        hash: key_hash(&key),
        group: hash64(0, job.ask.to.host.as_bytes()),
        meta: meta(local, plan, nonce, times),
        vary: vary.unwrap_or_default(),
        fields: stored_fields(local, head, plan, times.response)?,
        key,
    })
}

fn meta(local: &Local, plan: &StorePlan, nonce: u64, times: Times) -> ObjectMeta {
    ObjectMeta {
        status: plan.digest.status,
        request_time: times.request,
        response_time: times.response,
        expires: useless_at(local, &plan.digest),
        rules: plan.digest.encode(),
        nonce,
        ..ObjectMeta::default()
    }
}

/// When an object is past every use.
pub(super) fn useless_at(local: &Local, digest: &rules::Digest) -> WallTime {
    let useless = freshness::useless_at(digest, &local.proxy.config.rules);
    let flags = digest.flags;
    if flags.has(rules::Flags::HAS_ETAG) || flags.has(rules::Flags::HAS_LAST_MODIFIED) {
        return WallTime(useless.0.saturating_add(VALIDATOR_DAYS * 86_400_000));
    }
    useless
}

/// The ETag, if it is strong: only then may pieces of a body be put together.
pub(crate) fn strong_etag<F: Fields>(fields: &F) -> Option<Bytes> {
    let text = etag::of(fields)?;
    etag::ETag::parse(text)
        .is_strong()
        .then(|| Bytes::copy_from_slice(text))
}
