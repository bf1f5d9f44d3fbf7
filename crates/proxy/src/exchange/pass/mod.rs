//! Passes a request to the origin and its answer back, without the cache. Both bodies stream at the same
//! time. The speed of each body is limited by its receiver.

mod download;
mod save;
mod unanswered;
mod upload;

use std::rc::Rc;

use foxy_base::rule;
use foxy_http_rules::{Failure, Fwd, invalidation};
use foxy_http1::{Reject, ResponseHead, ResponseParts, Url};

use super::join::Want;
use super::{Exchange, Finish};
use crate::Outcome;
use crate::cache::key;
use crate::cache::owned_request::OwnedRequest;
use crate::fill::fetch::judge::Target;
use crate::http::net::{Transport, relay};
use crate::http::via::Changes;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;
use download::{Answered, Download, Then};
use save::Sent;
use unanswered::Unanswered;
use upload::{Upload, UploadError, send_body};

/// Reason why an exchange is not complete.
#[derive(Debug)]
enum PassError {
    /// The client is gone. The value is the status that was sent to the client, or 0 if no status was sent.
    Client(u16),
    /// The origin failed before anything was sent to the client.
    Origin(UpstreamError),
    /// The request is broken, and nothing was sent to the client yet.
    Request(Reject),
    /// The origin answered with this error status. A stale answer may be sent in its place.
    Status(u16),
}

/// The facts about a request that is passed without the cache.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    reason: Fwd,
    sent: Sent,
    /// Stored answer that may be sent if the origin fails.
    instead: Option<&'a Want>,
}

impl Way<'_> {
    /// True if the origin's answer is an error, and a stale answer may be sent in its place.
    fn spares(&self, local: &Local, req: &OwnedRequest, status: u16) -> bool {
        let stored = self.instead.and_then(|want| want.stored.as_ref());
        status >= 500 && req.may_have_stale(local, stored, Failure::Status(status))
    }
}

impl<T: Transport> Exchange<'_, T> {
    /// Sends the request to the origin, and the answer to the client, without the cache.
    pub(crate) async fn pass(&mut self, reason: Fwd) -> Finish {
        let way = Way {
            reason,
            sent: Sent::now(&self.local),
            instead: None,
        };
        match self.passed(way).await {
            Ok(finish) => finish,
            Err(error) => self.error_page(error).await,
        }
    }

    /// Passes a HEAD request to the origin. If the origin fails, the client gets a stale answer under the
    /// same rules as for GET.
    pub(super) async fn pass_head(&mut self, want: &Want) -> Finish {
        if let Some(error) = self.req.fails_at_once(&self.local, want.stored.as_ref()) {
            return self.failed(want, error).await;
        }
        let way = Way {
            reason: want.reason,
            sent: Sent::now(&self.local),
            instead: Some(want),
        };
        match self.passed(way).await {
            Ok(finish) => finish,
            Err(error) => self.failed(want, error).await,
        }
    }

    /// Carries out an exchange with the origin.
    ///
    /// # Errors
    /// Returned if the origin gave no usable answer. Nothing was sent to the client then.
    async fn passed(&mut self, way: Way<'_>) -> Result<Finish, UpstreamError> {
        let (local, req) = (Rc::clone(&self.local), Rc::clone(&self.req));
        let parts = req.head().parts();
        let unanswered = Unanswered::new(&local, &req);
        let request = req.upstream_head(&local, &Changes::default());
        let bodiless = parts.framing().is_empty();
        let replay = bodiless && parts.method().is_idempotent();
        let opened = if bodiless {
            let asked = Leased::ask(&local, &req, &request, replay).await;
            asked.map(|(leased, first)| (leased, Some(first)))
        } else {
            Leased::open(&local, &req, &request)
                .await
                .map(|leased| (leased, None))
        };
        let exchanged = match opened {
            Ok((mut leased, first)) => {
                let answered = self.both_ways(way, &unanswered, &mut leased, first).await;
                if let Some(outstanding) = leased.outstanding().filter(|_| !bodiless) {
                    match &answered {
                        Ok(answered) => outstanding.answered(&local, answered.finish.origin_status),
                        Err(PassError::Origin(error)) => outstanding.failed(&local, *error),
                        Err(PassError::Status(status)) => outstanding.answered(&local, *status),
                        Err(PassError::Client(_) | PassError::Request(_)) => {}
                    }
                }
                answered.map(|answered| (leased, answered))
            }
            Err(error) => Err(PassError::Origin(error)),
        };
        match exchanged {
            Ok((mut leased, answered)) => {
                match answered.then {
                    Then::Upgraded => return Ok(self.upgraded(leased, answered.finish).await),
                    Then::Reuse => leased.give_back(&local, &req.to),
                    Then::Close => leased.count(&local),
                    Then::Abort => {
                        leased.count(&local);
                        self.link.abort(&local);
                    }
                }
                Ok(answered.finish)
            }
            Err(PassError::Client(status)) => Ok(Finish::gone(status)),
            Err(PassError::Origin(error)) => {
                unanswered.failed(error, replay);
                // If the request has a body, the body may not have been read to its end. Then the connection
                // cannot continue.
                self.keep &= bodiless;
                Err(error)
            }
            Err(PassError::Status(status)) => {
                let failure = Failure::Status(status);
                let sent = match way.instead {
                    Some(want) => self.stale(want, failure).await,
                    None => None,
                };
                let sent = sent.map(|finish| Finish {
                    origin_status: status,
                    ..finish
                });
                sent.ok_or(UpstreamError::ErrorStatus)
            }
            Err(PassError::Request(reject)) => {
                self.keep = false;
                Ok(self.refused(reject.into(), Outcome::BadRequest).await)
            }
        }
    }

    /// Sends the body of the request, and receives the answer at the same time.
    async fn both_ways(
        &mut self,
        way: Way<'_>,
        unanswered: &Unanswered<'_>,
        leased: &mut Leased,
        first: Option<ResponseParts>,
    ) -> Result<Answered, PassError> {
        let (local, req) = (&*self.local, &*self.req);
        let parts = req.head().parts();
        let bodiless = parts.framing().is_empty();
        let upload = Upload::new(local, parts.expects_continue(), bodiless);
        let (io, scratch, buf) = self.link.upload();
        let mut download = Download {
            local,
            io,
            req,
            way,
            unanswered,
            keep: self.keep,
            upload: &upload,
            scratch,
        };
        if bodiless {
            return download.receive(&mut leased.up, first).await;
        }
        let origin = Rc::clone(&leased.up.io);
        let to = (&*origin, leased.up.timeouts.progress);
        let sending = send_body(local, io, buf, parts.framing(), to, &upload);
        let receiving = download.receive(&mut leased.up, first);
        tokio::pin!(sending, receiving);
        let mut refused = false;
        loop {
            tokio::select! {
                biased;
                sent = &mut sending, if !upload.is_done() => {
                    upload.finish();
                    match sent {
                        Ok(()) => {}
                        Err(UploadError::Framing(reject)) if !upload.is_answering() => {
                            return Err(PassError::Request(reject));
                        }
                        Err(UploadError::Client | UploadError::Framing(_)) => {
                            return Err(PassError::Client(0));
                        }
                        // The origin stopped reading the body. If the origin still answers, the answer is
                        // passed on. Then both connections end.
                        Err(UploadError::Origin) => refused = true,
                    }
                }
                answered = &mut receiving => {
                    // If the answer came before the end of the request, nobody reads the rest of the request.
                    let whole = rule!(
                        "smuggling: a connection ends with an answer before the request's end",
                        upload.is_done() && !refused,
                        true
                    );
                    return answered.map(|mut answered| {
                        answered.finish.keep &= whole;
                        if answered.then == Then::Reuse && !whole {
                            answered.then = Then::Close;
                        }
                        answered
                    });
                }
            }
        }
    }

    async fn upgraded(&mut self, mut leased: Leased, finish: Finish) -> Finish {
        let (io, _, buf) = self.link.upload();
        let before = io.sent();
        let origin = (&*leased.up.io, &mut leased.up.buf);
        relay(&self.local, (io, buf), origin).await;
        leased.count(&self.local);
        Finish {
            outcome: Outcome::Upgrade,
            body: io.sent() - before,
            keep: false,
            ..finish
        }
    }
}

/// Invalidates the stored objects that a successful unsafe request changed (RFC 9111 section 4.4).
fn invalidate(local: &Local, req: &OwnedRequest, head: &ResponseHead<'_>) {
    let request = req.head();
    let method = foxy_http_rules::Method::of(request.method_text());
    if !method.invalidates() {
        return;
    }
    let Some(url) = req.url() else { return };
    let target = Target::of(req);
    let gone = invalidation::invalidated_by(method, &target.uri(), head.status(), head);
    if rule!(
        "change: what a changing request answers for is removed",
        gone.target,
        false
    ) {
        local.proxy.forget(req.base_hash, &req.base);
    }
    let mut key = Vec::new();
    for path in &gone.paths {
        let other = Url {
            path: path.as_bytes(),
            ..url
        };
        let rules = &local.proxy.config.user_rules;
        key::primary(rules, req.role.partition(), &other, &mut key);
        let hash = local.proxy.engine.keys().hash(&key);
        local.proxy.forget(hash, &key);
    }
}
