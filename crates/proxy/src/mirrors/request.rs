//! Questions about a request for a mirror: whether it is for container images, whether its answer is
//! screened, and which digest its answer must have.

use foxy_base::{FieldBlock, first};
use foxy_mirror::digests_of_field;
use foxy_store::Object;

use super::{DigestCheck, Mirrored};
use crate::cache::owned_request::OwnedRequest;
use crate::state::local::Local;

impl OwnedRequest {
    /// Returns the facts about the mirror, if the request is for a mirror of container images.
    pub(crate) fn registry(&self) -> Option<&Mirrored> {
        let part = self.role.mirrored()?;
        part.image().is_some().then_some(&**part)
    }

    /// Returns the facts about the mirror, if the request is for a document that is screened (that rules
    /// about versions change).
    pub(crate) fn screened(&self) -> Option<&Mirrored> {
        let part = self.role.mirrored()?;
        part.is_screened().then_some(&**part)
    }

    /// Returns true if the request is for an artefact of a mirror, and the bytes that were last stored or
    /// fetched for this artefact do not have the digest in the mirror's documents. Such a request bypasses
    /// the caches between Foxy and the upstream.
    pub(crate) fn is_doubted(&self, local: &Local) -> bool {
        let part = self.role.mirrored().filter(|part| part.is_compared());
        part.is_some_and(|part| local.proxy.expected.is_doubted(part, self.target()))
    }

    /// Compares the digest of a stored object with the digest that documents of the mirror contain for it.
    pub(crate) fn digest_check(&self, local: &Local, object: &Object) -> DigestCheck {
        let part = self.role.mirrored();
        part.map_or(DigestCheck::Right, |part| {
            local
                .proxy
                .expected
                .digest_check(part, self.target(), object)
        })
    }

    /// Returns true if the field `Repr-Digest` contains the digest that documents of the mirror contain now.
    /// Also returns true if no digest is known.
    pub(crate) fn has_digest(&self, local: &Local, fields: &FieldBlock) -> bool {
        let part = self
            .role
            .mirrored()
            .filter(|part| part.is_named_by_documents());
        let expected = part.and_then(|part| part.expected(&local.proxy.expected, self.target()));
        expected.is_none_or(|expected| {
            let said = first(fields, "Repr-Digest").unwrap_or_default();
            digests_of_field(said).any(|said| said == expected)
        })
    }
}
