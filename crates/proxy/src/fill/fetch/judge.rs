//! Decisions when a head arrives: the fields that the clients get, whether the answer is stored, and the key
//! under which it is stored.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{
    FieldBlock, FieldBlockBuilder, FieldBlockError, Fields, KeyHash, WallTime, eq_name, first,
    hash64, rule,
};
use foxy_http_rules as rules;
use foxy_http_rules::range::ContentRange;
use foxy_http_rules::{Failure, RequestFacts, RuleId, StorePlan, etag, freshness, invalidation};
use foxy_http1::{RequestHead, ResponseHead};
use foxy_store::{Object, ObjectMeta};

use super::FillHead;
use super::part::{self, Piece};
use crate::cache::key;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::Primary;
use crate::cache::stored::stored_facts;
use crate::fill::Fill;
use crate::state::local::Local;
use crate::{Collapse, Role};

/// The times of an exchange with the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) request: WallTime,
    pub(crate) response: WallTime,
    /// The number of the newest purge before the request was sent.
    pub(crate) purge: u64,
}

/// The key under which an answer is stored, and the data that are stored with it.
#[derive(Clone, Debug)]
pub(crate) struct StoreTarget {
    pub(crate) key: Bytes,
    pub(crate) hash: KeyHash,
    pub(crate) group: u64,
    pub(crate) meta: ObjectMeta,
    pub(crate) vary: Bytes,
    pub(crate) fields: FieldBlock,
    /// For a body that is stored as a part: its range, and the stored part that it extends.
    pub(super) piece: Option<Piece>,
    /// For a large object: the range of its bytes that the answer contains.
    pub(super) sparse: Option<ContentRange>,
    /// True if the received prefix is worth storing when the body ends early.
    pub(super) has_usable_prefix: bool,
    /// The operator's rule (`[[rule]]`) that applies to the request.
    pub(super) rule: RuleId,
}

/// The facts about a request to the origin by which its answer is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginRequest<'a> {
    pub(crate) req: &'a OwnedRequest,
    /// The request as it was sent.
    pub(crate) facts: RequestFacts,
    /// The complete stored object, if it may still be used.
    pub(crate) stored: Option<&'a Arc<Object>>,
    /// The facts about the object under the primary key, if that object has a Vary list.
    pub(crate) primary: Option<&'a Primary>,
    /// The stored part of the object, if a part is stored under the same key.
    pub(crate) part: Option<&'a Arc<Object>>,
    /// True if the fetch requested a range of whole fragments. Then the answer may begin a sparse object (a
    /// large object that may lack fragments).
    pub(crate) aligned: bool,
    /// True if the range of whole fragments differs from the client's own range.
    pub(crate) widened: bool,
    pub(crate) times: Times,
}

/// Number of days that a validator adds to the time for which an object is useful. The origin can still
/// revalidate the object during these days.
const VALIDATOR_DAYS: i64 = 7;

/// Returns true if an answer with this status shows that the object stored under the same key is outdated.
pub(super) fn superseded(asked: &OriginRequest<'_>, status: u16) -> bool {
    rules::supersedes(&asked.facts, status)
}

/// Returns the request as the fill sends it. The method is always GET.
pub(super) fn as_get(req: &OwnedRequest) -> RequestFacts {
    RequestFacts {
        method: rules::Method::Get,
        range: false,
        ..req.facts
    }
}

/// Judges the head of a final answer. `peer` is the address that sent it.
pub(crate) fn judge(
    local: &Local,
    asked: &OriginRequest<'_>,
    fill: &Fill<FillHead>,
    head: &ResponseHead<'_>,
    length: Option<u64>,
    peer: SocketAddr,
) -> (FillHead, Option<StoreTarget>) {
    // An access rule may deny the origin's address to other clients. This rule could not be applied to a
    // stored object, because the object does not contain the address that it came from. So the answer is not
    // stored.
    let apart = rule!(
        "fetch: an answer from an address that a rule names is not stored",
        asked.req.client.keeps_apart(peer.ip()),
        false
    );
    let plan = match apart {
        true => Err("address-of-a-rule"),
        false => storable(local, asked, head, length),
    };
    let plan = plan.and_then(|plan| {
        // A field may be too large for a stored record. Then the answer is not stored, but the clients get
        // it.
        let both = vary_and_target(local, asked, fill, &plan, head);
        Ok((both.map_err(|_| "field-too-large")?, plan))
    });
    let (both, plan, not_stored) = match plan {
        Ok((both, plan)) => (Some(both), Some(plan), ""),
        Err(reason) => (None, None, reason),
    };
    let (vary, target) = both.map_or((None, None), |(vary, target)| (vary, Some(target)));
    // An answer that has expired when its head arrives is not stored. Requests that already waited when the
    // origin was asked may still get it.
    let passing = match not_stored == rules::NoStore::ExpiredOnArrival.as_str() {
        true => passing(local, asked, head),
        false => None,
    };
    let vary = match &passing {
        Some(plan) => selecting(local, plan, asked.req),
        None => vary,
    };
    let known = plan.as_ref().or(passing.as_ref());
    let fields = match (&plan, &target) {
        // For a stored answer, the clients usually get the stored fields, so these fields are built only
        // once. If fields are stripped, or if the answer is a part, the clients get other fields.
        (Some(plan), Some(target)) if !plan.strip_listed && head.status() != 206 => {
            target.fields.clone()
        }
        _ => {
            let cookies = plan.as_ref().is_none_or(|plan| !plan.strip_set_cookie);
            client_fields(local, head, asked.times.response, cookies)
        }
    };
    let vary_list = vary.as_ref().map(|(list, _)| list.clone());
    let fill_head = FillHead {
        length,
        facts: known.map(|plan| plan.facts),
        age: first(head, "Age").map(Bytes::copy_from_slice),
        vary,
        part: part_of(head),
        ranged: asked.aligned,
        range: first(&asked.req.head(), "Range")
            .filter(|_| asked.aligned && !asked.widened)
            .map(Bytes::copy_from_slice),
        primary: target.as_ref().and_then(|target| {
            let (list, nonce) = (vary_list.clone()?, target.meta.nonce);
            Some(Primary { nonce, list })
        }),
        shared: known.is_some_and(|plan| {
            rule!(
                "share: a response in progress with fields for one user is not shared",
                !plan.strip_listed,
                true
            )
        }),
        not_stored,
        strong_etag: strong_etag(head),
        ..FillHead::bare(head.status(), peer, fields)
    };
    (fill_head, target)
}

/// The Vary list of an answer, and the request's values for this list; `None` without a Vary list.
type Varies = Option<(Bytes, Bytes)>;

/// Returns the Vary values of a storable answer, and the target under which it is stored.
fn vary_and_target(
    local: &Local,
    asked: &OriginRequest<'_>,
    fill: &Fill<FillHead>,
    plan: &StorePlan,
    head: &ResponseHead<'_>,
) -> Result<(Varies, StoreTarget), FieldBlockError> {
    let vary = selecting(local, plan, asked.req);
    let target = store_target(local, asked, fill, plan, head, &vary)?;
    let target = part::part_target(local, asked, plan, head, target)?;
    Ok((vary, target))
}

/// Returns the plan for an answer that is stale when it arrives, because the origin took longer than the
/// answer's lifetime. By this plan, the requests that waited for the answer may share it. Only a site with
/// `collapse = "arrived"` shares such answers. Returns `None` for all other sites, for a 206, and for an
/// answer that may not be stored for another reason.
fn passing(local: &Local, asked: &OriginRequest<'_>, head: &ResponseHead<'_>) -> Option<StorePlan> {
    let site = matches!(&*asked.req.role, Role::Site(site) if site.collapse == Collapse::Arrived);
    if !site || head.status() == 206 {
        return None;
    }
    let request_head = asked.req.head();
    let at_once = rules::Response {
        response_time: asked.times.request,
        ..rules_response(asked, head.status(), head)
    };
    let config = local.proxy.rules(asked.req.rule);
    let mut plan = rules::can_store(&rules_request(asked, &request_head), &at_once, config).ok()?;
    let delay = asked.times.response.0.saturating_sub(asked.times.request.0);
    plan.facts.response_time = asked.times.response;
    plan.facts.initial_age_ms += delay.max(0);
    Some(plan)
}

/// Returns the range of the bytes of a 206.
fn part_of(head: &ResponseHead<'_>) -> Option<ContentRange> {
    (head.status() == 206)
        .then(|| ContentRange::of_part(head))
        .flatten()
}

/// True if the Content-Range field of a 206 contradicts `length`, the length of its body. Then the offsets of
/// its bytes are uncertain.
pub(super) fn contradicts(head: &ResponseHead<'_>, length: Option<u64>) -> bool {
    let said = part_of(head)
        .and_then(|part| part.span)
        .map(|span| span.len());
    said.zip(length)
        .is_some_and(|(said, length)| said != length)
}

/// Returns the request in the form that the caching rules need.
pub(super) fn rules_request<'a>(
    asked: &'a OriginRequest<'_>,
    head: &'a RequestHead<'a>,
) -> rules::Request<'a, RequestHead<'a>> {
    rules::Request {
        facts: &asked.facts,
        target: invalidation::TargetUri::default(),
        fields: head,
    }
}

/// Returns the answer in the form that the caching rules need.
pub(crate) fn rules_response<'a, F: Fields>(
    asked: &OriginRequest<'_>,
    status: u16,
    fields: &'a F,
) -> rules::Response<'a, F> {
    rules::Response {
        status,
        fields,
        request_time: asked.times.request,
        response_time: asked.times.response,
    }
}

fn storable(
    local: &Local,
    asked: &OriginRequest<'_>,
    head: &ResponseHead<'_>,
    length: Option<u64>,
) -> Result<StorePlan, &'static str> {
    let request_head = asked.req.head();
    let post = asked.facts.method == rules::Method::Post;
    let target = post.then(|| Target::of(asked.req));
    let request = rules::Request {
        target: target.as_ref().map(Target::uri).unwrap_or_default(),
        ..rules_request(asked, &request_head)
    };
    let response = rules_response(asked, head.status(), head);
    let config = local.proxy.rules(asked.req.rule);
    let plan = rules::can_store(&request, &response, config).map_err(|reason| reason.as_str())?;
    let whole = plan.part.as_ref().map_or(length, |part| part.complete);
    if let Some(whole) = whole {
        rules::check_size(whole, config).map_err(|reason| reason.as_str())?;
    }
    if let Some(range) = plan.part {
        if rule!(
            "parts: one that contradicts its length is not stored",
            asked.widened && contradicts(head, length),
            false
        ) {
            return Err("part-contradicts-itself");
        }
        let fits = length.is_some_and(|n| n <= u64::from(local.proxy.engine.fragment_bytes()));
        let sparse = part::is_sparse(local, asked, &range, head);
        let newer = |old: &Arc<Object>| !part::same_version(old, head);
        return match asked.stored {
            _ if sparse && asked.stored.is_none_or(newer) => Ok(plan),
            // A part must not replace a complete stored object, even a stale one.
            Some(_) => Err("whole-is-better"),
            None if !fits => Err("part-too-large"),
            None => Ok(plan),
        };
    }
    // An error must not replace a stored answer that may still be sent in place of the error.
    let failure = Failure::Status(head.status());
    let better = asked.stored.and_then(|object| {
        let stored = stored_facts(object)?;
        rules::stale_on_failure(&asked.facts, &stored, asked.times.response, failure, config)
    });
    if better.is_some() {
        return Err("stale-is-better");
    }
    Ok(plan)
}

/// The parts of the target URI of a request, as owned values.
pub(crate) struct Target {
    scheme: &'static str,
    authority: String,
    path: String,
}

impl Target {
    pub(crate) fn of(req: &OwnedRequest) -> Self {
        let mut authority = Vec::new();
        let url = req.url();
        if let Some(url) = &url {
            url.authority.write_normalised(url.scheme, &mut authority);
        }
        Self {
            scheme: url.map_or("", |url| url.scheme.as_str()),
            authority: String::from_utf8(authority).unwrap_or_default(),
            path: String::from_utf8_lossy(req.target()).into_owned(),
        }
    }

    pub(crate) fn uri(&self) -> invalidation::TargetUri<'_> {
        invalidation::TargetUri {
            scheme: self.scheme,
            authority: &self.authority,
            path: &self.path,
        }
    }
}

/// Returns the fields for the clients: the end-to-end fields without Content-Length and Age. A missing Date
/// is added.
fn client_fields(
    local: &Local,
    head: &ResponseHead<'_>,
    now: WallTime,
    cookies: bool,
) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in head.forward_fields() {
        let strips = rule!(
            "share: a cookie that is stripped is sent to nobody",
            !cookies,
            false
        );
        let cookie = strips && eq_name(name, b"set-cookie");
        if !cookie && !eq_name(name, b"content-length") && !eq_name(name, b"age") {
            builder.push_any(name, value);
        }
    }
    if first(head, "Date").is_none() {
        builder.push_any(b"Date", &local.date(now));
    }
    builder.finish()
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

fn selecting(local: &Local, plan: &StorePlan, req: &OwnedRequest) -> Varies {
    let list = plan.vary.as_ref()?.as_bytes();
    let mut values = Vec::new();
    req.sent(local).selecting_values(list, &mut values);
    Some((Bytes::copy_from_slice(list), values.into()))
}

fn store_target(
    local: &Local,
    asked: &OriginRequest<'_>,
    fill: &Fill<FillHead>,
    plan: &StorePlan,
    head: &ResponseHead<'_>,
    vary: &Varies,
) -> Result<StoreTarget, FieldBlockError> {
    let known = asked.primary;
    let same_list = match (vary, known) {
        (Some((list, _)), Some(primary)) => *list == primary.list,
        _ => false,
    };
    // The primary entry is the object under the primary key. If the answer has the same Vary list as the
    // known primary entry, it is stored under the fill's key with the nonce of that entry. Otherwise it
    // becomes the new primary entry, with a new nonce (0 if it has no Vary list). Requests then no longer
    // find the older variants, because the keys of variants contain the nonce.
    let (key, nonce) = match known {
        Some(primary) if same_list => (fill.key().clone(), primary.nonce),
        _ if vary.is_some() => {
            let nonce = rule!(
                "variants: those of an older primary are out of reach",
                local.nonce(),
                1
            );
            (asked.req.base.clone(), nonce)
        }
        _ => (asked.req.base.clone(), 0),
    };
    let hash = local.proxy.engine.keys().hash(&key);
    let fields = stored_fields(local, head, plan, asked.times.response)?;
    if vary.is_some() {
        let (variants, base) = (&local.proxy.variants, asked.req.base_hash);
        variants.note(base, nonce, hash, !same_list);
    }
    let vary = vary
        .as_ref()
        .map(|(list, values)| key::join_vary(list, values));
    Ok(StoreTarget {
        hash,
        vary: vary.unwrap_or_default(),
        fields,
        has_usable_prefix: rules::may_keep_incomplete(plan).is_ok(),
        key,
        ..primary_target(local, asked, &plan.facts, nonce)
    })
}

/// Returns the store target for an answer with these facts that is stored under the primary key. The caller
/// sets the fields.
pub(super) fn primary_target(
    local: &Local,
    asked: &OriginRequest<'_>,
    facts: &rules::CachingFacts,
    nonce: u64,
) -> StoreTarget {
    StoreTarget {
        key: asked.req.base.clone(),
        hash: asked.req.base_hash,
        group: hash64(0, asked.req.to.host.as_bytes()),
        meta: ObjectMeta {
            status: facts.status,
            request_time: asked.times.request,
            response_time: asked.times.response,
            expires: useless_at(local.proxy.rules(asked.req.rule), facts),
            rules: facts.encode(),
            nonce,
            purge_sequence: rule!(
                "purge: it covers answers that were asked for before it",
                asked.times.purge,
                local.proxy.engine.purges().purge_sequence()
            ),
            ..ObjectMeta::default()
        },
        vary: Bytes::new(),
        fields: FieldBlockBuilder::default().finish(),
        piece: None,
        sparse: None,
        has_usable_prefix: false,
        rule: asked.req.rule,
    }
}

/// Returns the time after which an object has no use.
pub(super) fn useless_at(config: &rules::Config, facts: &rules::CachingFacts) -> WallTime {
    let useless = freshness::useless_at(facts, config);
    let flags = facts.flags;
    if flags.has(rules::Flags::HAS_ETAG) || flags.has(rules::Flags::HAS_LAST_MODIFIED) {
        return WallTime(useless.0.saturating_add(VALIDATOR_DAYS * 86_400_000));
    }
    useless
}

/// Returns the ETag if it is strong. Pieces of a body may be combined only under a strong ETag.
pub(crate) fn strong_etag<F: Fields>(fields: &F) -> Option<Bytes> {
    let text = etag::of(fields)?;
    etag::ETag::parse(text)
        .is_strong()
        .then(|| Bytes::copy_from_slice(text))
}
