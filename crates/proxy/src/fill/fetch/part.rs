//! Stored parts of representations. The body of a 206 becomes a stored part or extends a stored part. If a
//! prefix of a representation is stored, only the rest is requested from the origin.
//!
//! A stored part is an object under the usual key. So everything that removes a complete object also removes
//! a part. The caching facts of a part have `Flags::PARTIAL`, and its Content-Range field states its range.
//! Bytes are combined only if they have the same strong validator.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use foxy_base::{FieldBlock, FieldBlockBuilder, FieldBlockError, rule};
use foxy_http_rules::range::{self, ContentRange, Parts, RangeSpec, Span};
use foxy_http_rules::vary::{self, Vary};
use foxy_http_rules::{self as rules, CachingFacts, RefreshEffect, etag};
use foxy_http1::ResponseHead;
use foxy_store::Object;

use super::judge::{
    OriginRequest, StoreTarget, primary_target, rules_request, rules_response, strong_etag,
    useless_at,
};
use crate::cache::stored::held;
use crate::state::local::Local;

const FIELD: &str = "Content-Range";

/// The range of a body that is stored as a part, and the stored part that the body extends.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The range of the body.
    range: ContentRange,
    /// A stored part with the same strong validator as the 206.
    old: Option<(Span, Bytes)>,
    /// Largest number of bytes to store.
    limit: u64,
}

/// Changes the `target` of a storable answer (the key and the data with which the answer is stored) if the
/// answer is a 206. A 206 is stored as a sparse object (a large object that may lack fragments), as a new
/// part, or as an extension of a stored part.
///
/// # Errors
/// Returned if a field is too large to be stored.
pub(super) fn part_target(
    local: &Local,
    asked: &OriginRequest<'_>,
    plan: &rules::StorePlan,
    head: &ResponseHead<'_>,
    mut target: StoreTarget,
) -> Result<StoreTarget, FieldBlockError> {
    let Some(mut range) = plan.part else {
        return Ok(target);
    };
    if is_sparse(local, asked, &range, head) {
        let facts = plan.facts.completed();
        target.meta.status = facts.status;
        target.meta.rules = facts.encode();
        target.meta.expires = useless_at(local.proxy.rules(asked.req.rule), &facts);
        target.fields = without_range(&target.fields);
        target.sparse = Some(range);
        target.has_usable_prefix = true;
        return Ok(target);
    }
    let mut old = None;
    if let Some(object) = asked.part
        && let Some(merged) = merge(local, asked, object, head, &range)?
        && let Some(held) = held(object)
        && let Some(span) = held.span
    {
        target = merged;
        range.complete = range.complete.or(held.complete);
        old = Some((span, object.body().clone()));
    }
    let limit = u64::from(local.proxy.engine.fragment_bytes());
    target.piece = Some(Piece { range, old, limit });
    Ok(target)
}

/// Returns the target of a stored part that a 206 extends, with updated fields (RFC 9111 section 3.4).
/// Returns `None` if the part and the 206 must not be combined, or if the result must not be stored.
fn merge(
    local: &Local,
    asked: &OriginRequest<'_>,
    old: &Object,
    head: &ResponseHead<'_>,
    range: &ContentRange,
) -> Result<Option<StoreTarget>, FieldBlockError> {
    let (Some(held), Some(facts)) = (held(old), CachingFacts::decode(&old.meta().rules)) else {
        return Ok(None);
    };
    let now = asked.times.response;
    if !range::may_combine(old.fields(), &facts, held.complete, head, range, now) {
        return Ok(None);
    }
    let request_head = asked.req.head();
    let request = rules_request(asked, &request_head);
    let response = rules_response(asked, head.status(), head);
    let config = local.proxy.rules(asked.req.rule);
    let refreshed = rules::refresh(&request, old.fields(), &facts, &response, config)?;
    let same_vary = match (vary::of(old.fields()), vary::of(&refreshed.fields)) {
        (Vary::Star, _) | (_, Vary::Star) => false,
        (a, b) => a == b,
    };
    if matches!(refreshed.effect, RefreshEffect::Unstorable(_)) || !same_vary {
        return Ok(None);
    }
    let mut target = primary_target(local, asked, &refreshed.facts, old.meta().nonce);
    // The merged part contains old bytes. So a purge that is newer than the lookup of these bytes covers the
    // merged part too.
    let checked = old.purge_checked();
    target.meta.purge_sequence = rule!(
        "purge: it covers the old bytes of a part that grows",
        target.meta.purge_sequence.min(checked),
        target.meta.purge_sequence
    );
    target.key = old.key().clone();
    target.hash = old.hash();
    target.vary = old.vary().clone();
    target.fields = without_range(&refreshed.fields);
    target.has_usable_prefix = true;
    Ok(Some(target))
}

/// Returns true if a 206 may begin a sparse object (a large object that may lack fragments). The request must
/// have had a range of complete fragments. The object must be longer than a fragment, and have a known length
/// and a strong validator.
pub(super) fn is_sparse(
    local: &Local,
    asked: &OriginRequest<'_>,
    range: &ContentRange,
    head: &ResponseHead<'_>,
) -> bool {
    let fragment = u64::from(local.proxy.engine.fragment_bytes());
    let large = range.complete.is_some_and(|length| length > fragment);
    // The answer must begin at the start of a fragment, as requested, or extend to the end of the object.
    let fits = range.span.is_some_and(|span| {
        span.start.is_multiple_of(fragment) || Some(span.end) == range.complete
    });
    asked.aligned && large && fits && strong_etag(head).is_some()
}

/// Returns true if an answer with these fields is of the same version as the stored object `old`: both have
/// the same strong ETag.
pub(super) fn same_version<F: foxy_base::Fields>(old: &Object, fields: &F) -> bool {
    let tag = strong_etag(fields);
    tag.is_some() && tag == strong_etag(old.fields())
}

fn without_range(fields: &FieldBlock) -> FieldBlock {
    fields.filtered(|name, _| !foxy_base::eq_name(name, FIELD.as_bytes()))
}

/// Returns true if the stored part must be removed because of a 206. Either the 206 is stored in its place,
/// or the 206 is of another version.
pub(super) fn ends_stored(
    asked: &OriginRequest<'_>,
    head: &ResponseHead<'_>,
    stored: bool,
) -> bool {
    let Some(object) = asked.part.filter(|_| head.status() == 206) else {
        return false;
    };
    let range = ContentRange::of_part(head);
    let facts = CachingFacts::decode(&object.meta().rules);
    let same = |new: &ContentRange| {
        let complete = held(object).and_then(|held| held.complete);
        let now = asked.times.response;
        facts.is_some_and(|facts| {
            range::may_combine(object.fields(), &facts, complete, head, new, now)
        })
    };
    stored || !range.as_ref().is_some_and(same)
}

impl Piece {
    /// Returns the piece for a body of `complete` bytes that ended early, after `received` bytes.
    pub(super) fn prefix(received: usize, complete: u64) -> Option<Self> {
        Some(Self {
            range: ContentRange {
                span: Span::new(0, received as u64),
                complete: Some(complete),
            },
            old: None,
            limit: complete,
        })
    }

    /// Returns the body to store, and its range; `None` if the origin sent more than it announced.
    pub(super) fn assemble(self, received: Bytes) -> Option<(ContentRange, Bytes)> {
        let new = self.range.received(received.len() as u64)?;
        let complete = self.range.complete;
        let both = self.old.and_then(|(span, bytes)| {
            let all = range::joined(span, new).filter(|all| all.len() <= self.limit)?;
            Some((all, combined(all, (span, &bytes), (new, &received))))
        });
        let (span, body) = both.unwrap_or((new, received));
        let span = Some(span);
        Some((ContentRange { span, complete }, body))
    }
}

/// Returns the bytes of `all`: the new bytes, and old bytes where there are no new bytes.
fn combined(all: Span, old: (Span, &[u8]), new: (Span, &[u8])) -> Bytes {
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let before = at(new.0.start.saturating_sub(old.0.start)).min(old.1.len());
    let after = at(new.0.end.saturating_sub(old.0.start)).min(old.1.len());
    let mut body = BytesMut::with_capacity(at(all.len()));
    body.extend_from_slice(&old.1[..before]);
    body.extend_from_slice(new.1);
    body.extend_from_slice(&old.1[after..]);
    body.freeze()
}

impl StoreTarget {
    /// Returns this target, changed for the part `range` of a representation. If `range` is the complete
    /// representation, the target is that of the complete object.
    ///
    /// # Errors
    /// Returned if all fields together are too large to be stored.
    pub(super) fn for_part(
        mut self,
        local: &Local,
        range: ContentRange,
    ) -> Result<Self, FieldBlockError> {
        let facts = CachingFacts::decode(&self.meta.rules).ok_or(FieldBlockError::TooLarge)?;
        let whole = range.complete.and_then(|length| Span::new(0, length));
        let facts = if whole.is_some() && range.span == whole {
            facts.completed()
        } else {
            self.fields = with_range(&self.fields, &range)?;
            facts.as_part()
        };
        self.meta.status = facts.status;
        self.meta.rules = facts.encode();
        self.meta.expires = useless_at(local.proxy.rules(self.rule), &facts);
        Ok(self)
    }
}

fn with_range(fields: &FieldBlock, range: &ContentRange) -> Result<FieldBlock, FieldBlockError> {
    let mut builder = FieldBlockBuilder::default();
    for i in 0..foxy_base::Fields::count(fields) {
        let (name, value) = foxy_base::Fields::field(fields, i);
        builder.push(name, value)?;
    }
    let mut text = Vec::new();
    range.write(&mut text);
    builder.push(FIELD.as_bytes(), &text)?;
    Ok(builder.finish())
}

/// The request for the rest of a stored prefix, and the data needed to combine the prefix and the rest.
#[derive(Clone, Debug)]
pub(super) struct Completion {
    pub(super) object: Arc<Object>,
    /// Value of the Range field in the request.
    pub(super) range: String,
    /// Value of the If-Range field in the request.
    pub(super) etag: Bytes,
    /// The requested bytes: from the end of the stored prefix to the end of the object.
    rest: Span,
    complete: u64,
}

impl Completion {
    /// Returns the request that completes a stored part. A part is completed only if it is a prefix of an
    /// object of known length, and has a strong ETag. For a part that is not a prefix, the origin would have
    /// to send the bytes before the part and those after it.
    pub(super) fn of(object: &Arc<Object>) -> Option<Self> {
        let held = held(object)?;
        let (span, complete) = (held.span?, held.complete?);
        let tag = etag::of(object.fields())?;
        if span.start != 0 || !etag::ETag::parse(tag).is_strong() {
            return None;
        }
        let mut parts = Parts::new();
        parts.insert(span);
        let whole = Span::new(0, complete)?;
        let RangeSpec::From { first, .. } = range::completion(&parts, whole, Some(complete))?
        else {
            return None;
        };
        Some(Self {
            etag: Bytes::copy_from_slice(tag),
            range: format!("bytes={first}-"),
            rest: Span::new(first, complete)?,
            object: Arc::clone(object),
            complete,
        })
    }

    /// Returns the target of the complete object, if this 206 with a body of `length` bytes is the rest.
    pub(super) fn judge(
        &self,
        local: &Local,
        asked: &OriginRequest<'_>,
        head: &ResponseHead<'_>,
        length: Option<u64>,
    ) -> Option<(StoreTarget, u64)> {
        let range = ContentRange::of_part(head)?;
        let exact = range.span == Some(self.rest) && length == Some(self.rest.len());
        if !(exact && range.complete.is_none_or(|n| n == self.complete)) {
            return None;
        }
        let target = merge(local, asked, &self.object, head, &range).ok()??;
        let span = Span::new(0, self.complete);
        let complete = Some(self.complete);
        let target = target
            .for_part(local, ContentRange { span, complete })
            .ok()?;
        Some((target, self.complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_one_body_combine_to_its_bytes(a in 0u64..40, n in 1u64..40, b in 0u64..40, m in 1u64..40) {
            let whole: Vec<u8> = (0..80).collect();
            let bytes = |s: Span| Bytes::copy_from_slice(&whole[s.start as usize..s.end as usize]);
            let (old, new) = (Span::new(a, a + n).unwrap(), Span::new(b, b + m).unwrap());
            let range = ContentRange { span: Some(new), complete: Some(80) };
            let piece = Piece { range, old: Some((old, bytes(old))), limit: 1000 };
            let (range, body) = piece.assemble(bytes(new)).unwrap();
            let span = range.span.unwrap();
            prop_assert_eq!(&body, &bytes(span));
            prop_assert!(span.contains(new));
            prop_assert_eq!(span.contains(old), old.start <= new.end && new.start <= old.end);
        }
    }

    #[test]
    fn a_body_longer_than_it_said_is_not_stored() {
        let range = ContentRange::parse(b"bytes 0-3/9").unwrap();
        let piece = |limit| Piece {
            range,
            old: None,
            limit,
        };
        assert!(piece(9).assemble(Bytes::from_static(b"12345")).is_none());
        let (short, _) = piece(9).assemble(Bytes::from_static(b"123")).unwrap();
        assert_eq!(short.span, Span::new(0, 3));
    }
}
