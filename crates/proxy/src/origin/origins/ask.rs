//! Sends a request to one of several origins. If this origin fails, another origin is asked.

use foxy_http1::{Method, ResponseParts};

use super::Origins;
use super::group::Tried;
use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Sends a request without a body to an origin and waits for the first head of the answer. After an error,
/// GET and HEAD are sent to another origin, as long as the budget of retries permits this. If all attempts
/// fail, the last answer is returned. If no origin has answered, the last error is returned.
pub(crate) async fn ask(
    local: &Local,
    origins: &Origins,
    req: &OwnedRequest,
    request: &[u8],
    replay: bool,
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let repeatable = matches!(req.head().method(), Method::Get | Method::Head);
    let (mut tried, mut answer, mut failure) = (Tried::default(), None, UpstreamError::Busy);
    loop {
        let Ok(outstanding) = origins.begin(local, req.base_hash, tried).await else {
            return answer.ok_or(failure);
        };
        if tried != Tried::default() {
            local.count(Event::UpstreamElsewhere);
        }
        tried = tried.with(outstanding.at);
        outstanding.wait(local);
        match Leased::ask_one(local, outstanding.destination(), request, replay).await {
            Ok((mut leased, parts)) => {
                outstanding.answered(local, parts.status());
                leased.of(outstanding);
                if parts.status() < 500 || !repeatable {
                    return Ok((leased, parts));
                }
                answer = Some((leased, parts));
            }
            Err(error) => {
                outstanding.failed(local, error);
                failure = error;
                if !repeatable || matches!(error, UpstreamError::GivenUp) {
                    return answer.ok_or(error);
                }
            }
        }
    }
}

/// Returns a connection to an origin, on which the head of a request with a body was sent. Such a request is
/// sent to only one origin, because this origin may have carried it out.
pub(crate) async fn open(
    local: &Local,
    origins: &Origins,
    req: &OwnedRequest,
    request: &[u8],
) -> Result<Leased, UpstreamError> {
    let outstanding = origins
        .begin(local, req.base_hash, Tried::default())
        .await?;
    match Leased::open_one(local, outstanding.destination(), request).await {
        Ok(mut leased) => {
            leased.of(outstanding);
            Ok(leased)
        }
        Err(error) => {
            outstanding.failed(local, error);
            Err(error)
        }
    }
}
