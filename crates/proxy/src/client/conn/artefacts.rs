//! Handles two kinds of stored objects of mirrors, before they are used: artefacts (files of packages), and
//! documents (in which a registry lists artefacts and their digests). If an artefact was stored before a
//! document named its digest, Foxy compares the artefact with this digest. Foxy may not know the digests in a
//! stored document: it has not read the document since its start, or the bounded table of digests has
//! forgotten them. Then Foxy reads the document again.

use std::sync::Arc;

use foxy_base::{MonoTime, first, rule};
use foxy_http_rules::{self as rules, Flags};
use foxy_http1::{RequestHead, RequestParts};
use foxy_mirror::Digest;
use foxy_store::Object;

use super::answer::{Instead, Long};
use super::{Conn, Finish};
use crate::cache::serve::find::fragment;
use crate::http::net::Transport;
use crate::mirrors::{Comparison, DigestCheck, Mirrored};
use crate::state::local::Local;
use crate::{Event, Role};

/// Number of bytes of a document that are parsed in one step. After each step, the digests found in these
/// bytes are noted.
const LEARN_AT_ONCE: usize = 64 << 10;

impl Local {
    /// Compares a stored object with the digest that documents of the mirror contain for this request.
    ///
    /// # Errors
    /// Returns the step that must come before the object is used. If the object must not be used, returns the
    /// value of `unusable`.
    #[inline]
    pub(super) fn usable(
        &self,
        role: &Role,
        head: &RequestHead<'_>,
        (object, stored): (&Arc<Object>, &rules::CachingFacts),
        unusable: impl FnOnce() -> Instead,
    ) -> Result<DigestCheck, Instead> {
        if self.has_to_learn(role, object) {
            return Err(Instead::Long(Long::Learn(Arc::clone(object))));
        }
        let digest_check = self.digest_check(role, head, (object, stored));
        digest_check.ok_or_else(unusable)
    }

    /// Compares a stored object with the digest that documents of the mirror contain for this request.
    /// Returns `None` if the object must not be used. If only a part of the object is stored, it cannot be
    /// compared with a digest now. If it was not compared earlier either, and documents contain a digest, the
    /// part must not be used. Otherwise wrong bytes in the part would also be in every object that is
    /// completed from it.
    #[inline]
    fn digest_check(
        &self,
        role: &Role,
        head: &RequestHead<'_>,
        found: (&Object, &rules::CachingFacts),
    ) -> Option<DigestCheck> {
        match role.mirrored() {
            None => Some(DigestCheck::Right),
            Some(part) => self.mirrored_digest_check(part, head.target().path, found),
        }
    }

    fn mirrored_digest_check(
        &self,
        part: &Mirrored,
        path: &[u8],
        (object, stored): (&Object, &rules::CachingFacts),
    ) -> Option<DigestCheck> {
        let table = &self.proxy.expected;
        let digest_check = table.digest_check(part, path, object);
        match digest_check {
            DigestCheck::Wrong => {
                self.count(Event::MirrorReplaced);
                table.doubt(part, path, true);
                rule!(
                    "mirror: a stored artefact with another digest is not used",
                    None,
                    Some(DigestCheck::Right)
                )
            }
            DigestCheck::Unknown(_)
                if rule!(
                    "mirror: a part that nobody has compared is not used",
                    stored.flags.has(Flags::PARTIAL),
                    false
                ) =>
            {
                None
            }
            DigestCheck::Right | DigestCheck::Unknown(_) => Some(digest_check),
        }
    }

    /// True if a stored object is a document, and Foxy does not know the digests in it. After a start, Foxy
    /// knows no digests. The table of digests is bounded, so it can also forget them later.
    #[inline]
    fn has_to_learn(&self, role: &Role, object: &Object) -> bool {
        role.is_document() && !self.proxy.expected.has_learnt(&object.hash())
    }

    /// Notes the digests that a stored document contains. If a fragment of the document is missing, notes
    /// only the digests before that fragment.
    async fn learn(&self, part: &Mirrored, path: &[u8], object: &Arc<Object>) {
        let content_type = first(object.fields(), "Content-Type").unwrap_or_default();
        let Some(mut rewriter) = part.rewriter((path, content_type)) else {
            return;
        };
        let mut out = Vec::new();
        let mut note = |bytes: &[u8]| {
            for piece in bytes.chunks(LEARN_AT_ONCE) {
                out.clear();
                rewriter.push(piece, &mut out);
                let mut found = rewriter.found();
                found.retain(|found| part.speaks_for(path, &found.path));
                self.proxy.expected.recall(part.scope(), found);
            }
        };
        note(object.body());
        for n in 0..object.fragment_count() {
            let Some(fragment) = fragment(self, object, n, true).await else {
                return;
            };
            note(fragment.body());
            // Lets other tasks of the worker run.
            tokio::task::yield_now().await;
        }
    }

    /// Returns true if the body of a stored object has this digest. Returns `None` if a part of the body is
    /// missing.
    async fn has_digest(&self, object: &Arc<Object>, digest: Digest) -> Option<bool> {
        self.count(Event::MirrorCompared);
        let mut comparison = Comparison::with(digest);
        comparison.push(object.body());
        for n in 0..object.fragment_count() {
            let fragment = fragment(self, object, n, true).await?;
            comparison.push(fragment.body());
            // Lets other tasks of the worker run.
            tokio::task::yield_now().await;
        }
        Some(rule!(
            "mirror: the bytes of a stored artefact are compared with its digest",
            comparison.is_right(),
            true
        ))
    }
}

impl<T: Transport> Conn<T> {
    /// Notes the digests that a stored document contains. Then looks the request up again.
    pub(super) async fn learnt(
        &mut self,
        parts: &RequestParts,
        object: &Arc<Object>,
        keep: bool,
    ) -> Result<Finish, Instead> {
        let (head, role) = (self.link.head(parts), self.context.role());
        let table = &self.local.proxy.expected;
        let permit = table.permit().await;
        if let Some(part) = role.mirrored()
            && self.local.has_to_learn(role, object)
        {
            self.local.learn(part, head.target().path, object).await;
            table.learn(object.hash());
        }
        drop(permit);
        self.short(parts, keep).await
    }

    /// Computes the digest of a stored artefact, unless another request has already done so. If it differs
    /// from `digest`, or if a part of the body is missing, removes the artefact. Then looks the request up
    /// again.
    pub(super) async fn compared(
        &mut self,
        parts: &RequestParts,
        object: &Arc<Object>,
        digest: Digest,
        keep: bool,
    ) -> Result<Finish, Instead> {
        self.compare(parts, object, digest).await;
        self.short(parts, keep).await
    }

    async fn compare(&self, parts: &RequestParts, object: &Arc<Object>, digest: Digest) {
        let head = self.link.head(parts);
        let (proxy, path) = (&self.local.proxy, head.target().path);
        let Some(part) = self.context.role().mirrored() else {
            return;
        };
        let table = &proxy.expected;
        let _permit = table.permit().await;
        if table.digest_check(part, path, object) != DigestCheck::Unknown(digest) {
            return;
        }
        match self.local.has_digest(object, digest).await {
            Some(true) => table.prove(part, path, (digest, object.meta().version)),
            Some(false) => {
                self.local.count(Event::MirrorMismatch);
                table.doubt(part, path, true);
                proxy.forget(object.hash(), object.key());
            }
            None => {
                proxy.forget(object.hash(), object.key());
            }
        }
    }

    /// Sends the answer to a request after it was looked up again. If another step is needed before the
    /// answer, returns that step.
    ///
    /// # Errors
    /// An `Err` means that the answer was sent. Its value is true if the connection carries another request.
    pub(super) async fn resumed(
        &mut self,
        short: Result<Finish, Instead>,
        parts: &RequestParts,
        keep: bool,
        started: MonoTime,
    ) -> Result<Long, bool> {
        let finish = match short {
            Ok(finish) => finish,
            Err(Instead::Long(long)) => return Ok(long),
            Err(Instead::Large(hit)) => {
                return Err(Box::pin(self.large_answer(parts, hit, keep, started)).await);
            }
            Err(Instead::Refuse(refusal, outcome)) => {
                self.refuse_read(refusal, outcome, parts, keep).await
            }
        };
        Err(self.done(parts, started, &finish))
    }
}
