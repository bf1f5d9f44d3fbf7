//! The path of a request to its origin. The path leads through a parent proxy, to a registry of container
//! images, to one of several origins, or directly to the only origin.

use std::sync::Arc;

use foxy_http_rules::Failure;
use foxy_http1::{ResponseParts, Scheme};
use foxy_store::Object;

use super::exchange::Leased;
use super::origins::{self, OutstandingRequest};
use super::{UpstreamError, parents, registry, screened};
use crate::Origins;
use crate::cache::owned_request::OwnedRequest;
use crate::http::via::{self, Changes, Hop};
use crate::state::local::Local;

impl OwnedRequest {
    /// Returns the origins of the request's site.
    pub(crate) fn origins(&self) -> Option<&Origins> {
        self.role.origins()
    }

    /// Counts the request as under way at the only origin of its site. Returns `None` if the request is not
    /// for a site with origins, if an origin must be chosen, or if the request goes through a parent.
    pub(crate) fn only_origin(&self) -> Option<OutstandingRequest> {
        let origins = self.origins().filter(|_| self.parents().is_none());
        origins.and_then(Origins::only)
    }

    /// Returns the head of the request for the origin.
    pub(crate) fn upstream_head(&self, local: &Local, changes: &Changes<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head_bytes() + 128);
        let hop = Hop::of(local, &self.role, &self.client);
        if let Some(url) = self.url() {
            let target = self.target_at_origin();
            let absolute;
            let target = match self.parents() {
                // A parent receives the absolute form of the target, like any proxy. A request in a tunnel
                // reaches the origin itself, so its target has the origin form.
                Some(_) if url.scheme == Scheme::Http && target.starts_with(b"/") => {
                    let mut text = b"http://".to_vec();
                    url.authority.write_normalised(url.scheme, &mut text);
                    text.extend_from_slice(target);
                    absolute = text;
                    &absolute[..]
                }
                _ => target,
            };
            let to = (url.authority, url.scheme, target);
            via::request(&mut out, &self.head(), to, &hop, changes);
        }
        out
    }

    /// Returns the error of a recent attempt to reach the only origin, so that the request need not wait for
    /// another attempt. Returns `None` if there was no such error, or if the stale answer `stored` may not be
    /// sent instead of an error.
    pub(crate) fn fails_at_once(
        &self,
        local: &Local,
        stored: Option<&Arc<Object>>,
    ) -> Option<UpstreamError> {
        let now = local.proxy.clock.mono();
        let error = local.proxy.unreachable.recent(&self.to, now)?;
        self.may_have_stale(local, stored, Failure::Unreachable)
            .then_some(error)
    }
}

impl Leased {
    /// Sends a request without a body to its origin. Waits for the first head of the answer, which may be
    /// interim. If a connection from the pool is broken and `replay` is true, the request is sent once more
    /// on a new connection.
    pub(crate) async fn ask(
        local: &Local,
        req: &OwnedRequest,
        request: &[u8],
        replay: bool,
    ) -> Result<(Self, ResponseParts), UpstreamError> {
        if req.role.is_closed() {
            return Err(UpstreamError::Maintenance);
        }
        if let Some(part) = req.screened() {
            // The future is boxed. Otherwise it would enlarge the future of every fetch.
            let asked = Box::pin(screened::ask(local, req, part, request)).await;
            return asked.inspect_err(|error| local.origin_failed(*error));
        }
        let only = req.only_origin();
        let asked = match req.origins() {
            // The future is boxed. Otherwise it would enlarge the future of every fetch.
            _ if req.parents().is_some() => {
                Box::pin(parents::ask(local, req, request, replay)).await
            }
            // The future is boxed. Otherwise it would enlarge the future of every fetch.
            _ if let Some(part) = req.registry() => {
                Box::pin(registry::ask(local, req, part, request)).await
            }
            // The future is boxed. Otherwise it would enlarge the future of every fetch.
            Some(all) if only.is_none() => {
                Box::pin(origins::ask(local, all, req, request, replay)).await
            }
            _ => {
                only.iter().for_each(|outstanding| outstanding.wait(local));
                let asked = Self::ask_one(local, &req.to, request, replay).await;
                Self::at_only(local, only, asked, |parts| parts.status())
            }
        };
        let asked = asked.and_then(|(mut leased, parts)| {
            leased.set_mirrored(local, req);
            let parts = leased.up.seen(local, parts)?;
            Ok((leased, parts))
        });
        asked.inspect_err(|error| local.origin_failed(*error))
    }

    /// Sends the head of a request with a body to its origin.
    pub(crate) async fn open(
        local: &Local,
        req: &OwnedRequest,
        request: &[u8],
    ) -> Result<Self, UpstreamError> {
        if req.role.is_closed() {
            return Err(UpstreamError::Maintenance);
        }
        let only = req.only_origin();
        let opened = match req.origins() {
            // The future is boxed. Otherwise it would enlarge the future of every request with a body.
            _ if req.parents().is_some() => Box::pin(parents::open(local, req, request)).await,
            Some(all) if only.is_none() => Box::pin(origins::open(local, all, req, request)).await,
            _ => {
                let opened = Self::open_one(local, &req.to, request).await;
                let opened = opened.map(|leased| (leased, ()));
                Self::at_only(local, only, opened, |()| 0).map(|(leased, ())| leased)
            }
        };
        let opened = opened.map(|mut leased| {
            leased.set_mirrored(local, req);
            leased
        });
        opened.inspect_err(|error| local.origin_failed(*error))
    }

    /// Notes the result of a request to the only origin of the site. After a success, also notes in `Leased`
    /// that the connection carries this request.
    fn at_only<P>(
        local: &Local,
        only: Option<OutstandingRequest>,
        result: Result<(Self, P), UpstreamError>,
        status: impl Fn(&P) -> u16,
    ) -> Result<(Self, P), UpstreamError> {
        let Some(outstanding) = only else {
            return result;
        };
        match result {
            Ok((mut leased, parts)) => {
                outstanding.answered(local, status(&parts));
                leased.of(outstanding);
                Ok((leased, parts))
            }
            Err(error) => {
                outstanding.failed(local, error);
                Err(error)
            }
        }
    }
}
