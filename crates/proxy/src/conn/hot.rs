//! Answers out of memory: whole, a part, a compressed form, or nothing but a head.

use std::sync::Arc;

use foxy_http_rules::coding::Coding;
use foxy_http_rules::{Digest, Fwd, RequestDigest};
use foxy_http1::{Method, RequestHead};
use foxy_store::Object;

use super::Finish;
use super::answer::{Long, Short};
use super::large_hit::LargeHit;
use super::objects::unfit;
use crate::gate::Shown;
use crate::local::Local;
use crate::net::{Io, Transport};
use crate::reply::Scratch;
use crate::rewriting::Recipient;
use crate::serve::find::Primary;
use crate::serve::memory::{self, Shape};
use crate::serve::{coded, large};

/// A stored object that may answer the request.
pub(super) struct Hot<'a> {
    pub(super) head: &'a RequestHead<'a>,
    pub(super) request: &'a RequestDigest,
    pub(super) object: Arc<Object>,
    pub(super) stored: &'a Digest,
    pub(super) shown: Shown,
    pub(super) primary: Option<Primary>,
    pub(super) to: Recipient<'a>,
}

impl Hot<'_> {
    /// Sends it, unless it is large or the origin must judge the request's conditions.
    pub(super) async fn send<T: Transport>(
        self,
        local: &Local,
        io: &Io<T>,
        scratch: &mut Scratch,
        keep: bool,
    ) -> Short {
        if let Some(compress) = self.to.role.compress()
            && let Some(coding) = coded::choose(compress, self.head, self.request, &self.object)
            && let Some(form) = Box::pin(coded::find(local, &self.object, coding)).await
        {
            let sent = self.send_form(local, io, scratch, (&form, coding), keep);
            return Box::pin(sent).await;
        }
        let (head, request, object) = (self.head, self.request, self.object);
        let shape = if request.range || request.conditional || request.precondition {
            memory::shape(local, head, request, &object, self.stored, local.wall())
        } else {
            Shape::Whole
        };
        if self.to.role.objects().is_some()
            && let Some(refusal) = unfit(local, &object, &shape)
        {
            return refusal;
        }
        // The origin does not know what it is rewritten to.
        let shape = match shape {
            Shape::AskOrigin if self.to.role.is_document() => Shape::Whole,
            shape => shape,
        };
        if shape == Shape::AskOrigin {
            return Short::Long(Long::Pass(Fwd::Request));
        }
        if object.is_large()
            && head.method() == Method::Get
            && let Some(spans) = large::spans(&object, &shape)
        {
            return Short::Large(Box::new(LargeHit {
                object,
                shape,
                spans,
                shown: self.shown,
                primary: self.primary,
            }));
        }
        let hit = self.shown.hit(&local.proxy, self.to, keep);
        let sent = memory::send(local, io, scratch, head, &object, &shape, &hit).await;
        Short::Done(match sent {
            Ok(sent) => Finish {
                outcome: self.shown.outcome,
                status: sent.status,
                body: sent.body,
                object: Some(object),
                keep,
                ..Finish::default()
            },
            Err(_) => Finish::gone(self.stored.status),
        })
    }
}

impl Hot<'_> {
    /// Sends the compressed form of the object.
    async fn send_form<T: Transport>(
        self,
        local: &Local,
        io: &Io<T>,
        scratch: &mut Scratch,
        (form, coding): (&Object, Coding),
        keep: bool,
    ) -> Short {
        let hit = self.shown.hit(&local.proxy, self.to, keep);
        let asked = (self.head, self.request);
        let given = (&*self.object, self.stored, form, coding);
        let sent = coded::send(local, io, scratch, asked, given, &hit).await;
        Short::Done(match sent {
            Ok(sent) => Finish {
                outcome: self.shown.outcome,
                status: sent.status,
                body: sent.body,
                object: Some(self.object),
                keep,
                ..Finish::default()
            },
            Err(_) => Finish::gone(self.stored.status),
        })
    }
}
