//! Sends a request through one of several parents. If this parent cannot be reached, another parent is asked.

use std::sync::Arc;

use foxy_http1::ResponseParts;

use crate::Event;
use crate::access::parents::{Parent, Parents, Through, WANTS_LOGIN};
use crate::cache::owned_request::OwnedRequest;
use crate::http::destination::Destination;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Sends a request without a body and waits for the first head of the answer.
pub(crate) async fn ask(
    local: &Local,
    req: &OwnedRequest,
    request: &[u8],
    replay: bool,
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let mut failure = UpstreamError::Busy;
    for (at, parent) in order(local, req).into_iter().enumerate() {
        if at > 0 {
            local.count(Event::UpstreamElsewhere);
        }
        let (to, request) = through(req, &parent, request);
        match Leased::ask_one(local, &to, &request, replay).await {
            Ok((leased, parts)) => {
                parent.answered();
                // The parent demands a login. Foxy must not pass this demand on to the client, because only
                // Foxy can have a login for the parent.
                if parts.status() == 407 {
                    return Err(UpstreamError::BadResponse(WANTS_LOGIN));
                }
                return Ok((leased.by(to), parts));
            }
            Err(error) => failure = failed(local, &parent, error, replay)?,
        }
    }
    Err(failure)
}

/// Sends the head of a request with a body. Another parent is asked only if the first parent cannot be
/// reached. After other errors the request is not repeated, because it may have been carried out.
pub(crate) async fn open(
    local: &Local,
    req: &OwnedRequest,
    request: &[u8],
) -> Result<Leased, UpstreamError> {
    let mut failure = UpstreamError::Busy;
    for parent in order(local, req) {
        let (to, request) = through(req, &parent, request);
        match Leased::open_one(local, &to, &request).await {
            Ok(leased) => {
                parent.answered();
                return Ok(leased.by(to));
            }
            Err(error) => failure = failed(local, &parent, error, false)?,
        }
    }
    Err(failure)
}

/// Opens a tunnel to a destination.
pub(crate) async fn tunnel_through(
    local: &Local,
    parents: &Parents,
    to: Destination,
) -> Result<Leased, UpstreamError> {
    let hash = foxy_base::hash64(u64::from(to.port), to.host.as_bytes());
    let mut failure = UpstreamError::Busy;
    for parent in parents.order(hash, local.mono()) {
        let to = Destination {
            parent: Some(Through {
                parent: Arc::clone(&parent),
                tunnel: true,
            }),
            ..to.clone()
        };
        match Leased::get(local, &to, true).await {
            Ok(leased) => {
                parent.answered();
                return Ok(leased);
            }
            Err(error) => failure = failed(local, &parent, error, false)?,
        }
    }
    Err(failure)
}

fn order(local: &Local, req: &OwnedRequest) -> Vec<Arc<Parent>> {
    let order = |parents: &Parents| parents.order(req.base_hash.low(), local.mono());
    req.parents().map(order).unwrap_or_default()
}

/// Returns the destination and the head of a request through this parent. A request for https goes through a
/// tunnel to the origin, so its head does not contain the login for the parent.
fn through(req: &OwnedRequest, parent: &Arc<Parent>, request: &[u8]) -> (Destination, Vec<u8>) {
    let tunnel = req.to.tls.is_some();
    let to = Destination {
        parent: Some(Through {
            parent: Arc::clone(parent),
            tunnel,
        }),
        ..req.to.clone()
    };
    let mut head = request.to_vec();
    if !tunnel && let Some(end) = request.windows(2).position(|two| two == b"\r\n") {
        head.splice(end + 2..end + 2, parent.login().iter().copied());
    }
    (to, head)
}

/// Returns `Ok(error)` if another parent may be asked, and `Err(error)` if no other parent may be asked.
fn failed(
    local: &Local,
    parent: &Parent,
    error: UpstreamError,
    replay: bool,
) -> Result<UpstreamError, UpstreamError> {
    let unreached = matches!(
        error,
        UpstreamError::NoSuchName
            | UpstreamError::NameService
            | UpstreamError::Connect
            | UpstreamError::ConnectTimeout
            | UpstreamError::Tls(_)
    );
    if unreached {
        parent.failed(local.mono());
    }
    let again = unreached || replay && matches!(error, UpstreamError::Closed);
    if again { Ok(error) } else { Err(error) }
}
