//! The range that is requested on behalf of a client, and the part of the answer that is sent to the client.

use foxy_base::{KeyHash, first};
use foxy_http_rules::range::{ContentRange, RangeSpec, Ranges, Span};

use super::join::Want;
use crate::cache::owned_request::OwnedRequest;
use crate::fill::fetch::{FillHead, Ranged};
use crate::state::local::Local;

/// Returns the range to request. The range consists of whole fragments if the answer can become a sparse
/// object (a large object that may lack fragments).
pub(super) fn ranged(local: &Local, req: &OwnedRequest, want: &Want, hash: KeyHash) -> Ranged {
    // A small object is validated as a whole.
    let whole = match &want.stored {
        Some(stored) if want.validate => !stored.is_large(),
        _ => !want.range,
    };
    if whole || !req.facts.range || req.comes_whole() {
        return Ranged::No;
    }
    let unable = if want.validate {
        Ranged::No
    } else {
        Ranged::Own
    };
    let conditional = req.facts.conditional || req.facts.precondition;
    let known = local.proxy.undivided.has(hash, local.wall());
    if want.exact || conditional || known || req.facts.no_store {
        return unable;
    }
    let unit = u64::from(local.proxy.engine.fragment_bytes());
    let ranges = Ranges::of(&req.head());
    let first = ranges.as_ref().and_then(|ranges| ranges.specs().first());
    first
        .and_then(|spec| spec.aligned(unit))
        .map_or(unable, |range| Ranged::Aligned(range.to_string()))
}

/// The part of a fetched answer that is sent to one client. The fetched range may be wider than the client's
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientSlice {
    /// The complete answer, unchanged.
    All,
    /// This part of the answer.
    Slice {
        /// Bytes to leave out at the start.
        skip: u64,
        /// The range that is sent, as a range of the complete object.
        range: ContentRange,
        /// True if this part ends before the end of the client's range.
        short: bool,
    },
    /// The answer does not contain the first bytes of the client's range.
    Elsewhere,
}

/// Returns the bytes of the answer `head` that are sent to this client.
pub(super) fn client_slice(req: &OwnedRequest, head: &FillHead) -> ClientSlice {
    if head.status != 206 {
        return ClientSlice::All;
    }
    let said = head.part.and_then(|part| part.span).map(Span::len);
    let request = req.head();
    let wanted = first(&request, "Range").filter(|_| head.range.is_some());
    if !head.ranged || wanted.is_some() && wanted == head.range.as_deref() {
        return own(head, said);
    }
    // The fetch requested a range that may differ from the range of this client. Without a valid
    // Content-Range, the position of the received bytes is unknown.
    let Some(part) = head
        .part
        .filter(|_| head.length.is_none() || head.length == said)
    else {
        return ClientSlice::Elsewhere;
    };
    let ranges = Ranges::of(&req.head());
    let (Some([spec]), Some(got)) = (ranges.as_ref().map(Ranges::specs), part.span) else {
        return ClientSlice::Elsewhere;
    };
    let wanted = match (*spec, part.complete) {
        (spec, Some(length)) => spec.resolve(length),
        (RangeSpec::From { first, last }, None) => {
            Span::new(first, last.map_or(got.end, |last| last.saturating_add(1)))
        }
        (RangeSpec::Suffix(_), None) => None,
    };
    let sent = wanted.and_then(|wanted| wanted.intersect(got));
    match sent.filter(|sent| wanted.is_some_and(|wanted| wanted.start == sent.start)) {
        Some(sent) => ClientSlice::Slice {
            skip: sent.start - got.start,
            range: ContentRange {
                span: Some(sent),
                complete: part.complete,
            },
            short: wanted.is_some_and(|wanted| sent.end < wanted.end),
        },
        None => ClientSlice::Elsewhere,
    }
}

/// True if `head`, which another request fetched, announces all bytes that this request wants. A shorter part
/// would be valid (RFC 9110 section 15.3.7). But most clients do not notice that it is shorter than the range
/// that they requested.
pub(super) fn has_all(req: &OwnedRequest, head: &FillHead) -> bool {
    match client_slice(req, head) {
        ClientSlice::All => true,
        ClientSlice::Slice { short, .. } => !short,
        ClientSlice::Elsewhere => false,
    }
}

/// Returns the slice for a client whose own range was fetched. The client gets the origin's answer, limited
/// to the length in Content-Range.
fn own(head: &FillHead, said: Option<u64>) -> ClientSlice {
    let longer = said.zip(head.length).is_some_and(|(said, all)| said < all);
    match head.part.filter(|_| longer) {
        Some(range) => ClientSlice::Slice {
            skip: 0,
            range,
            short: false,
        },
        None => ClientSlice::All,
    }
}
