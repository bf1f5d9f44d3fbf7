//! Answers with stored objects that are in memory: with the complete object, a part of it, a compressed form,
//! or only a head.

use std::io;
use std::sync::Arc;

use foxy_http_rules::coding::Coding;
use foxy_http_rules::{CachingFacts, Fwd, RequestFacts};
use foxy_http1::{Method, RequestHead};
use foxy_store::Object;

use super::Finish;
use super::answer::{Instead, Long};
use super::large_hit::LargeHit;
use crate::cache::gate::Shown;
use crate::cache::serve::coded;
use crate::cache::serve::find::Primary;
use crate::cache::serve::memory::{self, Sent, Shape};
use crate::exchange::{spans, unfit};
use crate::http::net::{Io, Transport};
use crate::http::reply::Scratch;
use crate::http::rewriting::ResponseContext;
use crate::state::local::Local;

/// A stored object in memory that may answer the request.
pub(super) struct Hot<'a> {
    pub(super) head: &'a RequestHead<'a>,
    pub(super) request: &'a RequestFacts,
    pub(super) object: &'a Arc<Object>,
    pub(super) stored: &'a CachingFacts,
    pub(super) shown: &'a Shown,
    pub(super) primary: &'a Option<Primary>,
    pub(super) to: ResponseContext<'a>,
}

impl Hot<'_> {
    /// Returns the shape of the answer (complete body, ranges, 304 and so on), if the answer can be sent from
    /// memory.
    ///
    /// # Errors
    /// Returns the next step if the body is stored in fragments, or if only the origin can evaluate the
    /// request's conditions. In a build cache, the next step may also be a refusal.
    #[inline]
    pub(super) fn shape(&self, local: &Local) -> Result<Shape, Instead> {
        // For most requests this condition is false, because most requests want a complete object that is not
        // stored in fragments.
        match self.is_conditional_or_partial()
            || self.object.is_large()
            || self.to.role.objects().is_some()
        {
            true => self.shape_asked_for(local),
            false => Ok(Shape::Whole),
        }
    }

    /// True if the request has conditions, or asks for ranges.
    #[inline]
    fn is_conditional_or_partial(&self) -> bool {
        self.request.range || self.request.conditional || self.request.precondition
    }

    fn shape_asked_for(&self, local: &Local) -> Result<Shape, Instead> {
        let (head, request, object) = (self.head, self.request, self.object);
        let shape = match self.is_conditional_or_partial() {
            true => memory::shape(local, head, request, object, self.stored, local.wall()),
            false => Shape::Whole,
        };
        if self.to.role.objects().is_some()
            && let Some((refusal, outcome)) = unfit(local, object, &shape)
        {
            return Err(Instead::Refuse(refusal, outcome));
        }
        // The origin cannot evaluate conditions on a rewritten document, because it does not know the
        // rewritten form.
        let shape = match shape {
            Shape::AskOrigin if self.to.role.is_document() => Shape::Whole,
            Shape::AskOrigin => return Err(Instead::Long(Long::Pass(Fwd::Request))),
            shape => shape,
        };
        if object.is_large()
            && head.method() == Method::Get
            && let Some(spans) = spans(object, &shape)
        {
            return Err(Instead::Large(Box::new(LargeHit {
                object: Arc::clone(object),
                shape,
                spans,
                shown: *self.shown,
                primary: self.primary.clone(),
            })));
        }
        Ok(shape)
    }

    /// Returns the coding (such as gzip) that the client prefers to the stored form, if the site compresses
    /// answers.
    #[inline]
    pub(super) fn coding(&self) -> Option<Coding> {
        let compress = self.to.role.compress()?;
        coded::choose(compress, self.head, self.request, self.object)
    }

    /// Sends the compressed form of the object, if that form is stored.
    pub(super) async fn send_coded<T: Transport>(
        &self,
        local: &Local,
        io: &Io<T>,
        scratch: &mut Scratch,
        coding: Coding,
        keep: bool,
    ) -> Option<Finish> {
        let form = coded::find(local, self.object, coding).await?;
        let hit = self.shown.hit(&local.proxy, self.to, keep);
        let asked = (self.head, self.request);
        let given = (&**self.object, self.stored, &*form, coding);
        let sent = coded::send(local, io, scratch, asked, given, &hit).await;
        Some(self.done(&sent, keep))
    }

    /// Returns the result of a request that was answered with this object.
    pub(super) fn done(&self, sent: &io::Result<Sent>, keep: bool) -> Finish {
        match sent {
            Ok(sent) => Finish {
                outcome: self.shown.outcome,
                status: sent.status,
                body: sent.body,
                object: Some(Arc::clone(self.object)),
                keep,
                ..Finish::default()
            },
            Err(_) => Finish::gone(self.stored.status),
        }
    }
}
