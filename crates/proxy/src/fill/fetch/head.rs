//! Knowledge of an answer once its head has arrived.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use foxy_base::FieldBlock;
use foxy_http_rules::Digest;
use foxy_http_rules::range::ContentRange;
use foxy_store::{Object, Stored};

use crate::cache::serve::find::Primary;

/// Data for followers at header time.
#[derive(Debug)]
pub(crate) struct FillHead {
    /// The origin's status.
    pub(crate) status: u16,
    pub(crate) origin: SocketAddr,
    /// Fields for the clients, without framing and Age.
    pub(crate) fields: FieldBlock,
    /// Length of the body, if known.
    pub(crate) length: Option<u64>,
    /// The rules digest, if the answer may be stored.
    pub(crate) digest: Option<Digest>,
    /// The origin's Age, for an answer that is not stored.
    pub(crate) age: Option<Bytes>,
    /// Vary list and selecting values.
    pub(crate) vary: Option<(Bytes, Bytes)>,
    /// The stored object that the origin has validated; there is no body then.
    pub(crate) object: Option<Arc<Object>>,
    /// The running answer that the origin has validated, updated; there is no body then.
    pub(crate) validated: Option<Arc<Self>>,
    /// Where the body can be read back while it arrives.
    pub(crate) running: Arc<OnceLock<Running>>,
    /// The answer to a range has become a stored object that lacks fragments: answer from it.
    pub(crate) sparse: Option<Arc<Object>>,
    /// The body is this part of the representation.
    pub(crate) part: Option<ContentRange>,
    /// The fetch is for a range that other requests may want parts of.
    pub(crate) ranged: bool,
    /// That range, if it is the leader's own.
    pub(crate) range: Option<Bytes>,
    /// The primary entry for the keys of other variants, once this is stored.
    pub(crate) primary: Option<Primary>,
    /// Requests other than the leader may have it.
    pub(crate) shared: bool,
    /// Reason for not storing it; empty if it is stored.
    pub(crate) not_stored: &'static str,
    /// The strong ETag for a range request for the rest.
    pub(crate) strong_etag: Option<Bytes>,
}

/// A large body that can be read back while it arrives.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its head; before it is visible, a head by which the fragments are found.
    pub(crate) head: Arc<Object>,
    /// Keeps the fragments alive before the object is visible.
    pub(super) _stored: Option<Arc<Stored>>,
}

impl Running {
    /// True if parts of the body can be fetched by themselves: the object is visible, and its length is
    /// known. Before its end, neither holds for a body that is compared with a digest.
    fn is_sized(&self) -> bool {
        self.head.total_length() != u64::MAX
    }
}

impl FillHead {
    /// The body, if it can be read back while it arrives, and parts of it can be fetched by themselves.
    pub(crate) fn sized(&self) -> Option<&Running> {
        let running = self.running.get()?;
        (self.length.is_some() && running.is_sized()).then_some(running)
    }

    /// A head with these fields and no body.
    pub(super) fn bare(status: u16, origin: SocketAddr, fields: FieldBlock) -> Self {
        Self {
            status,
            origin,
            fields,
            length: None,
            digest: None,
            age: None,
            vary: None,
            object: None,
            validated: None,
            running: Arc::default(),
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

    /// This head after a validation: the same body with newer fields.
    pub(super) fn updated(&self, fields: FieldBlock, digest: Digest) -> Self {
        Self {
            length: self.length,
            digest: Some(digest),
            vary: self.vary.clone(),
            running: Arc::clone(&self.running),
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
