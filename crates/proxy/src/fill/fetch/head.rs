//! The data about an answer that is known when its head has arrived.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use foxy_base::FieldBlock;
use foxy_http_rules::CachingFacts;
use foxy_http_rules::range::ContentRange;
use foxy_store::{Object, Stored};

use crate::cache::serve::find::Primary;

/// The data that followers get when the head arrives.
#[derive(Debug)]
pub(crate) struct FillHead {
    /// The origin's status.
    pub(crate) status: u16,
    pub(crate) origin: SocketAddr,
    /// Fields for the clients, without Age and the fields for framing.
    pub(crate) fields: FieldBlock,
    /// Length of the body in bytes, if known.
    pub(crate) length: Option<u64>,
    /// The caching facts of the answer, if the answer may be stored or shared.
    pub(crate) facts: Option<CachingFacts>,
    /// The value of the origin's Age field. Clients get it if `facts` is `None`.
    pub(crate) age: Option<Bytes>,
    /// The Vary list of the answer and the request values that selected the answer.
    pub(crate) vary: Option<(Bytes, Bytes)>,
    /// The stored object that the origin has validated. If there is one, the answer has no body.
    pub(crate) object: Option<Arc<Object>>,
    /// The head of another response that is still arriving, with updated fields. It is set if this answer is
    /// a 304, by which the origin has validated that response. Then this answer has no body.
    pub(crate) validated: Option<Arc<Self>>,
    /// The stored object from which the body can be read back while it arrives.
    pub(crate) readable_body: Arc<OnceLock<ReadableBody>>,
    /// The sparse object (a large object that may lack fragments) in which the answer to a range request is
    /// stored; `None` for all other answers. Requests are answered from this object.
    pub(crate) sparse: Option<Arc<Object>>,
    /// The part of the representation that the body of a 206 contains.
    pub(crate) part: Option<ContentRange>,
    /// True if the fetch requested the complete fragments that contain a client's range. Then the received
    /// part may differ from the range of a request that shares the answer.
    pub(crate) ranged: bool,
    /// The `Range` value of the leader (the request that started the fill), if the fetch requested exactly
    /// that range.
    pub(crate) range: Option<Bytes>,
    /// The nonce and the Vary list of the primary entry (the object under the primary key) after this answer
    /// is stored. The keys of other variants are made from these two values.
    pub(crate) primary: Option<Primary>,
    /// True if requests other than the leader (the request that started the fill) may have the answer.
    pub(crate) shared: bool,
    /// Reason why the answer is not stored; empty if it is stored.
    pub(crate) not_stored: &'static str,
    /// The strong ETag of the answer. A range request for the rest of a truncated body needs it.
    pub(crate) strong_etag: Option<Bytes>,
}

/// A large body that followers can read back from the store while it arrives.
#[derive(Debug)]
pub(crate) struct ReadableBody {
    /// The head of the object: its fields and length. While lookups do not find the object, its fragments can
    /// be found only through this head.
    pub(crate) head: Arc<Object>,
    /// Keeps the fragments alive before lookups find the object.
    pub(super) _stored: Option<Arc<Stored>>,
}

impl ReadableBody {
    /// True if parts of the body can be fetched separately: lookups find the object, and its length is known.
    /// For a body that is compared with a digest, this is false, because lookups find the object only after
    /// the end of the body.
    fn is_sized(&self) -> bool {
        self.head.total_length() != u64::MAX
    }
}

impl FillHead {
    /// Returns the body if it can be read back while it arrives, and if parts of it can be fetched
    /// separately.
    pub(crate) fn sized(&self) -> Option<&ReadableBody> {
        let readable_body = self.readable_body.get()?;
        (self.length.is_some() && readable_body.is_sized()).then_some(readable_body)
    }

    /// Returns a head with these fields and no body.
    pub(super) fn bare(status: u16, origin: SocketAddr, fields: FieldBlock) -> Self {
        Self {
            status,
            origin,
            fields,
            length: None,
            facts: None,
            age: None,
            vary: None,
            object: None,
            validated: None,
            readable_body: Arc::default(),
            sparse: None,
            part: None,
            ranged: false,
            range: None,
            primary: None,
            shared: true,
            not_stored: "",
            strong_etag: None,
        }
    }

    /// Returns this head after a validation: the same body with newer fields.
    pub(super) fn updated(&self, fields: FieldBlock, facts: CachingFacts) -> Self {
        Self {
            length: self.length,
            facts: Some(facts),
            vary: self.vary.clone(),
            readable_body: Arc::clone(&self.readable_body),
            sparse: self.sparse.clone(),
            part: self.part,
            ranged: self.ranged,
            range: self.range.clone(),
            primary: self.primary.clone(),
            shared: self.shared,
            not_stored: self.not_stored,
            strong_etag: self.strong_etag.clone(),
            ..Self::bare(self.status, self.origin, fields)
        }
    }
}
