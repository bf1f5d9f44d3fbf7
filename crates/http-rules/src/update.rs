//! Freshening of stored responses by 304 (RFC 9111 sections 3.2 and 4.3.4) and by HEAD (section 4.3.5).

use foxy_base::{
    FieldBlock, FieldBlockBuilder, FieldBlockError, Fields, FieldsIter, eq_name, first, rule,
};

use crate::cache_control::{ResponseControl, for_each_listed};
use crate::config::Config;
use crate::etag::{self, ETag};
use crate::facts::{CachingFacts, Flags};
use crate::freshness::expires_at;
use crate::method::Method;
use crate::reason::NoStore;
use crate::request::RequestFacts;
use crate::stored_fields::FieldFilter;
use crate::storing::{Request, Response, can_store};
use crate::vary;

/// The update of a stored response by a 304.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// The updated fields. The caller sends them, and stores them if `effect` permits.
    pub fields: FieldBlock,
    /// The updated caching facts. They have no meaning with [`RefreshEffect::Unstorable`].
    pub facts: CachingFacts,
    /// The effect of the update on the stored response.
    pub effect: RefreshEffect,
}

/// The effect of an update. An update with the effect `Extends` need not be written immediately. After any
/// other update, the old form of the response must not be used again, not even after a restart. So the update
/// must become durable, or the entry must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshEffect {
    /// The same rules apply to the response, and its lifetime is not shorter.
    Extends,
    /// The lifetime is shorter, or a use that was permitted is now forbidden, or Vary changed.
    Shortens,
    /// The response may no longer be stored, but it may still answer the request that validated it. If the
    /// reason [is about the request](NoStore::is_about_request), the stored response stays unchanged;
    /// otherwise it must be removed.
    Unstorable(NoStore),
}

/// True if a 304 applies to this stored response (RFC 9111 section 4.3.4). A 304 without any validator is
/// accepted, because it can only mean the response whose validators were in the request. If `false`, the
/// caller must fetch the response again without conditions.
pub fn selects<S, N>(stored: &S, not_modified: &N) -> bool
where
    S: Fields + ?Sized,
    N: Fields + ?Sized,
{
    match (
        etag::of(not_modified).map(ETag::parse),
        etag::of(stored).map(ETag::parse),
    ) {
        (Some(new), Some(old)) if new.is_strong() && old.is_strong() => rule!(
            "refresh: a 304 with another strong ETag is about another version",
            new.eq_strong(&old),
            true
        ),
        (Some(new), Some(old)) => new.eq_weak(&old),
        (Some(new), None) if new.is_strong() => false,
        _ => match (
            first(not_modified, "Last-Modified"),
            first(stored, "Last-Modified"),
        ) {
            (Some(new), Some(old)) => new == old,
            _ => true,
        },
    }
}

/// True if a field of a 304 or HEAD response never replaces the stored field. Such fields describe the stored
/// bytes, and they cannot change while these bytes stay the same. (RFC 9111 section 3.2 excludes fields that
/// the integrity of the stored response needs.) A digest in a 304 describes the empty body of the 304. A
/// digest in an answer to HEAD describes bytes that were not compared with the stored bytes.
fn is_never_updated(name: &[u8]) -> bool {
    let kept = [
        "Content-Length",
        "Content-Range",
        "Content-Encoding",
        "Content-MD5",
        "Content-Digest",
        "Digest",
        "Repr-Digest",
    ];
    rule!(
        "refresh: fields that describe the stored bytes stay",
        kept.iter().any(|kept| eq_name(name, kept.as_bytes())),
        false
    )
}

/// The stored fields after an update: the fields of `new` replace stored fields of the same names (RFC 9111
/// section 3.2).
///
/// # Errors
/// Returned if a field is too large for a field block.
pub fn updated_fields<S, N>(
    stored: &S,
    new: &N,
    strip_listed: bool,
) -> Result<FieldBlock, FieldBlockError>
where
    S: Fields + ?Sized,
    N: Fields + ?Sized,
{
    let filter = FieldFilter::new(new, false, strip_listed);
    let replaces = |name: &[u8]| !is_never_updated(name) && filter.keeps(name);
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in FieldsIter::new(stored) {
        let replaced =
            replaces(name) && FieldsIter::new(new).any(|(other, _)| eq_name(other, name));
        if !replaced {
            builder.push(name, value)?;
        }
    }
    for (name, value) in FieldsIter::new(new) {
        if replaces(name) {
            builder.push(name, value)?;
        }
    }
    Ok(builder.finish())
}

/// Applies a 304, a HEAD response that freshens, or a 206 that [may be combined](crate::range::may_combine),
/// to the stored response that this new response [`selects`]. `response` is the new response, with its own
/// times.
///
/// # Errors
/// Returned if a field is too large for a field block. The caller must then remove the stored response.
pub fn refresh<Q, N>(
    request: &Request<'_, Q>,
    stored: &FieldBlock,
    old: &CachingFacts,
    response: &Response<'_, N>,
    config: &Config,
) -> Result<Refresh, FieldBlockError>
where
    Q: Fields + ?Sized,
    N: Fields + ?Sized,
{
    let updated = updated_fields(stored, response.fields, false)?;
    // The stored response is a response to GET, whatever method freshens it.
    let as_get = RequestFacts {
        method: Method::Get,
        ..*request.facts
    };
    let request = Request {
        facts: &as_get,
        target: request.target,
        fields: request.fields,
    };
    // Age is not stored, but the Age of the 304 counts for the age of the freshened response.
    let with_age = WithAge {
        fields: &updated,
        age: first(response.fields, "Age"),
    };
    let partial = old.flags.has(Flags::PARTIAL);
    let judged = Response {
        status: if partial { 200 } else { old.status },
        fields: &with_age,
        request_time: response.request_time,
        response_time: response.response_time,
    };
    let (facts, effect) = match can_store(&request, &judged, config) {
        Ok(plan) => {
            let mut facts = plan.facts;
            facts.status = old.status;
            facts.flags.set(Flags::PARTIAL, partial);
            // A response that is not for one user stays a response for all users, even if a request with
            // credentials validates it.
            if facts.is_for_one_user() && !old.is_for_one_user() {
                facts.flags.set(Flags::FETCHED_ANONYMOUSLY, true);
            }
            let same_vary = vary::of(stored) == vary::of(&updated);
            (facts, compare(old, &facts, same_vary))
        }
        Err(reason) => rule!(
            "refresh: what may not be stored any more is not kept",
            (*old, RefreshEffect::Unstorable(reason)),
            (*old, RefreshEffect::Extends)
        ),
    };
    let fields = without_listed(updated, config);
    Ok(Refresh {
        fields,
        facts,
        effect,
    })
}

/// Removes the fields that `private` or `no-cache` of the updated response lists, and Set-Cookie if the
/// configuration requires it.
fn without_listed(fields: FieldBlock, config: &Config) -> FieldBlock {
    let control = ResponseControl::of(&fields, config);
    let mut gone: Vec<&[u8]> = Vec::new();
    if rule!(
        "refresh: fields that the update lists are not stored",
        control.private_listed || control.no_cache_listed,
        false
    ) {
        for_each_listed(&fields, |name| gone.push(name));
    }
    if rule!(
        "refresh: cookies of the update are stripped too",
        config.strip_set_cookie,
        false
    ) {
        gone.push(b"Set-Cookie");
    }
    if gone.is_empty() {
        return fields;
    }
    fields.filtered(|name, _| !gone.iter().any(|listed| eq_name(listed, name)))
}

/// Fields with an Age field before them.
struct WithAge<'a, F: ?Sized> {
    fields: &'a F,
    age: Option<&'a [u8]>,
}

impl<F: Fields + ?Sized> Fields for WithAge<'_, F> {
    fn count(&self) -> usize {
        self.fields.count() + usize::from(self.age.is_some())
    }

    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        match self.age {
            Some(age) if i == 0 => (b"Age", age),
            Some(_) => self.fields.field(i - 1),
            None => self.fields.field(i),
        }
    }
}

/// Compares the caching facts after an update with the facts before it.
fn compare(old: &CachingFacts, new: &CachingFacts, same_vary: bool) -> RefreshEffect {
    let forbids_more = new.flags.0 & !old.flags.0 & Flags::FORBID_STALE.0 != 0;
    let stale_less = new.stale_while_revalidate_s < old.stale_while_revalidate_s
        || new.stale_if_error_s < old.stale_if_error_s;
    let earlier = expires_at(new) < expires_at(old);
    if earlier || forbids_more || stale_less || !same_vary {
        RefreshEffect::Shortens
    } else {
        RefreshEffect::Extends
    }
}

/// The effect of a HEAD response on the stored response to GET (RFC 9111 section 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadUpdate {
    /// Freshen the stored response as a 304 would: [`refresh`].
    Freshen,
    /// The representation has changed: make the stored response stale.
    Invalidate,
    /// The HEAD response does not concern the stored response, because it has another status.
    Nothing,
}

/// Compares a HEAD response with the stored response to GET. `length` is the length of the stored body, if
/// the body is complete.
pub fn head_update<S, N>(
    stored: &S,
    old: &CachingFacts,
    length: Option<u64>,
    response: &Response<'_, N>,
) -> HeadUpdate
where
    S: Fields + ?Sized,
    N: Fields + ?Sized,
{
    let whole_status = if old.status == 206 { 200 } else { old.status };
    if response.status != whole_status {
        return HeadUpdate::Nothing;
    }
    let same = |name| {
        let new = first(response.fields, name);
        new.is_none() || new == first(stored, name)
    };
    let new_length = first(response.fields, "Content-Length").and_then(crate::text::decimal);
    let same_length = new_length.is_none() || length.is_none() || new_length == length;
    let alike = same("ETag") && same("Last-Modified") && same_length;
    if rule!(
        "refresh: a HEAD about another version does not freshen",
        alike,
        true
    ) {
        HeadUpdate::Freshen
    } else {
        HeadUpdate::Invalidate
    }
}

#[cfg(test)]
mod tests;
