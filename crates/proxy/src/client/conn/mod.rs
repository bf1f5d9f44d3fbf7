//! One client connection: reads requests and answers them, until one side ends the connection.
//!
//! Foxy answers a hit while the request is still in the connection's read buffer. A request that takes longer
//! is copied, and its answer has its own future on the heap.

mod admission;
mod admit;
mod answer;
mod artefacts;
mod context;
mod hot;
mod images;
mod large_hit;
mod local_answers;
mod moved;
mod pac;
mod record;
mod secure;
mod tunnel;
mod turn_away;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_base::{MonoTime, rule};
use foxy_http_rules::RuleId;
use foxy_http1::RequestParts;
use foxy_tls::ServerTls;

use crate::access::refusal::Refusal;
use crate::cache::owned_request::{OwnedRequest, RequestContext};
use crate::client::listen::post::{Post, Posted};
use crate::exchange::Exchange;
use crate::http::connection::{Ends, Link, NoRequest};
use crate::http::net::Transport;
use crate::http::reply::{Extra, send_page, send_page_with};
use crate::http::route::url_of;
use crate::state::finish::Finish;
use crate::state::local::Local;
use crate::{Outcome, Role, SiteTable};

use context::ConnectionContext;

/// Number of requests after which a connection ends with its present answer. This limit applies only while
/// many other connections wait to be served. Without this limit, the connections that were admitted first
/// would use processors and memory for as long as their clients send requests.
const MANY_REQUESTS: u32 = 64;

/// A client connection.
#[derive(Debug)]
pub(crate) struct Conn<T> {
    /// The settings for the present request.
    local: Rc<Local>,
    /// The [`Post`] of the listener, which contains the newest settings. `settings` is the number of the
    /// settings that this connection uses now.
    post: Rc<Post>,
    settings: u64,
    link: Link<T>,
    context: ConnectionContext,
    /// Number of requests that were answered on the connection.
    answers: u32,
    /// The operator's caching rule (`[[rule]]`) that applies to the present request.
    rule: RuleId,
}

/// The roles that requests on the connections of a listener may have.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    /// The role of every request. On a listener of several sites, this is the role of requests for none of
    /// these sites.
    pub(crate) role: Rc<Role>,
    /// The sites, if there are several.
    pub(crate) sites: Option<Rc<Sites>>,
}

/// The sites of a listener.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(crate) table: Arc<SiteTable>,
    /// Role and certificates of each site, in the order of the table.
    pub(crate) roles: Vec<(Rc<Role>, Option<ServerTls>)>,
    /// The role of a request for none of these sites.
    pub(crate) none: Rc<Role>,
}

impl<T: Transport> Conn<T> {
    pub(crate) fn new(post: &Rc<Post>, transport: T, peer: SocketAddr) -> Self {
        let Posted { local, door, .. } = post.current();
        Self {
            link: Link::new(&local, transport, post.closed()),
            context: ConnectionContext::new(&local, door, peer, T::SECURE),
            settings: post.number(),
            post: Rc::clone(post),
            answers: 0,
            rule: RuleId::default(),
            local,
        }
    }

    /// Sets the number that distinguishes the client from other clients. The number is 0 if the client is not
    /// counted.
    pub(crate) fn set_client(&self, client: u64) {
        self.link.set_client(client);
    }

    /// Answers requests until the connection ends.
    pub(crate) async fn serve(mut self) {
        loop {
            self.rule = RuleId::default();
            let keep = match self.link.next_request(&self.local).await {
                // The listener was closed before this request was read. So the connection ends without an
                // answer, and the client may repeat the request.
                Ok(_) if self.post.is_closed() && self.answers > 0 => break,
                Ok(parts) => {
                    self.renew();
                    let keep = self.answer(&parts).await;
                    self.answers = self.answers.saturating_add(1);
                    keep
                }
                Err(NoRequest::Closed) => break,
                Err(NoRequest::Refused(refusal)) => {
                    self.refuse(refusal).await;
                    false
                }
            };
            self.link.count_bytes(&self.local);
            if self.context.end_request() {
                self.link.slow(None);
            }
            if !keep {
                self.link.end(&self.local).await;
                break;
            }
        }
        self.link.count_bytes(&self.local);
    }

    /// Applies the newest settings to the request that has arrived.
    #[inline]
    fn renew(&mut self) {
        if self.settings != self.post.number() {
            self.take_settings();
        }
    }

    #[cold]
    fn take_settings(&mut self) {
        let Posted { local, door, .. } = self.post.current();
        self.settings = self.post.number();
        self.context.renew(&local, door);
        self.local = local;
    }

    /// Returns true if the request and the state of Foxy allow the connection to be kept after this request.
    fn may_keep(&self, parts: &RequestParts) -> bool {
        let may_end = self.answers == 0 || self.answers >= MANY_REQUESTS;
        let makes_room = may_end && self.local.entrance.is_crowded(&self.local);
        parts.persistent()
            && !makes_room
            && !self.local.proxy.is_shutting_down()
            && !self.post.is_closed()
    }

    /// Refuses a request that could not be parsed.
    async fn refuse(&mut self, refusal: Refusal) {
        let started = self.local.mono();
        let page = (refusal, self.context.response_context());
        let Ends { io, scratch, .. } = self.link.ends();
        let sent = send_page(&self.local, io, scratch, page, None, false).await;
        let finish = Finish::refused(refusal, Outcome::BadRequest, false, sent);
        self.finished(None, started, &finish);
    }

    /// Sends a page that Foxy makes itself. Returns the number of body bytes.
    async fn page(
        &mut self,
        refusal: Refusal,
        extra: &Extra<'_>,
        parts: &RequestParts,
        keep: bool,
    ) -> io::Result<u64> {
        let page = (refusal, self.context.response_context());
        let ends = self.link.ends();
        let head = Some(&ends.received.head(parts));
        send_page_with(&self.local, ends.io, ends.scratch, page, extra, head, keep).await
    }

    /// Refuses a request whose body was not read. If the request has a body, the connection ends. Otherwise
    /// the body would be parsed as the next request.
    async fn refuse_read(
        &mut self,
        refusal: Refusal,
        outcome: Outcome,
        parts: &RequestParts,
        keep: bool,
    ) -> Finish {
        let keep = rule!(
            "smuggling: a connection ends with a body that nobody reads",
            keep && parts.framing().is_empty(),
            keep
        );
        let sent = self.page(refusal, &Extra::default(), parts, keep).await;
        Finish::refused(refusal, outcome, keep, sent)
    }

    /// Ends a request whose head is still in the read buffer. Returns true if the connection carries another
    /// request.
    fn done(&mut self, parts: &RequestParts, started: MonoTime, finish: &Finish) -> bool {
        let head = self.link.head(parts);
        self.finished(Some(&head), started, finish);
        self.link.consume(parts);
        self.carries_on(finish)
    }

    /// Ends a request that was copied out of the read buffer. Returns true if the connection carries another
    /// request.
    fn end(&self, req: &OwnedRequest, started: MonoTime, finish: &Finish) -> bool {
        let recent = finish.recent(self.local.wall());
        self.local.proxy.recent.note(req.base_hash, recent);
        self.finished(Some(&req.head()), started, finish);
        self.carries_on(finish)
    }

    /// Returns true if the connection carries another request. If the client left or stopped reading during
    /// an answer, the connection ends by a reset. Without a reset, an HTTP/1.0 client that reads again would
    /// treat the incomplete answer as complete.
    fn carries_on(&self, finish: &Finish) -> bool {
        if finish.outcome == Outcome::ClientGone {
            self.link.reset();
        }
        finish.keep
    }

    /// Copies the request, and removes its bytes from the read buffer. Returns `None` if the request has no
    /// URL.
    fn take_request(&mut self, parts: &RequestParts) -> Option<Rc<OwnedRequest>> {
        let req = Rc::new(self.ask(parts)?);
        self.link.consume(parts);
        self.rule = req.rule;
        Some(req)
    }

    /// Returns a copy of the request. Returns `None` if the request has no URL.
    fn ask(&self, parts: &RequestParts) -> Option<OwnedRequest> {
        let received = self.link.received();
        let head = received.head(parts);
        let url = url_of(&head, self.context.role())?;
        let context = RequestContext::new(self.context.role(), self.context.client(), &self.local);
        Some(received.ask(*parts, &url, &context))
    }

    /// Returns the exchange that answers this request.
    fn exchange(&mut self, req: Rc<OwnedRequest>, keep: bool) -> Exchange<'_, T> {
        Exchange::new(&mut self.link, &self.local, req, keep)
    }
}
