//! A request to one of several origins, and to another one if that one fails.

use foxy_http1::{Method, ResponseParts};

use super::Origins;
use super::group::Tried;
use crate::Event;
use crate::cache::ask::Ask;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Sends a request without body to one of the origins and waits for the first head of the answer.
/// GET and HEAD are sent to another origin after an error, while the budget for that lasts. If all
/// of them fail, the last answer counts, else the last error.
pub(crate) async fn ask(
    local: &Local,
    origins: &Origins,
    ask: &Ask,
    request: &[u8],
    replay: bool,
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let repeatable = matches!(ask.head().method(), Method::Get | Method::Head);
    let (mut tried, mut answer, mut failure) = (Tried::default(), None, UpstreamError::Busy);
    loop {
        let Ok(turn) = origins.turn(local, ask.base_hash, tried).await else {
            return answer.ok_or(failure);
        };
        if tried != Tried::default() {
            local.count(Event::UpstreamElsewhere);
        }
        tried = tried.with(turn.at);
        turn.wait(local);
        match Leased::ask_one(local, turn.destination(), request, replay).await {
            Ok((mut leased, parts)) => {
                turn.answered(local, parts.status());
                leased.of(turn);
                if parts.status() < 500 || !repeatable {
                    return Ok((leased, parts));
                }
                answer = Some((leased, parts));
            }
            Err(error) => {
                turn.failed(local, error);
                failure = error;
                if !repeatable || matches!(error, UpstreamError::GivenUp) {
                    return answer.ok_or(error);
                }
            }
        }
    }
}

/// A connection to one of the origins on which the head of a request with body was sent. Such a
/// request is sent once: it may have been carried out.
pub(crate) async fn open(
    local: &Local,
    origins: &Origins,
    ask: &Ask,
    request: &[u8],
) -> Result<Leased, UpstreamError> {
    let turn = origins.turn(local, ask.base_hash, Tried::default()).await?;
    match Leased::open_one(local, turn.destination(), request).await {
        Ok(mut leased) => {
            leased.of(turn);
            Ok(leased)
        }
        Err(error) => {
            turn.failed(local, error);
            Err(error)
        }
    }
}
