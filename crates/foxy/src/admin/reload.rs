//! `POST /reload`: reads the configuration again.

use tokio::sync::oneshot;

use super::State;
use super::connection::Answer;

/// Waits for the reload and answers with its result.
pub(super) async fn answer(state: &State) -> Answer {
    let (reply, outcome) = oneshot::channel();
    if state.reloads.send(reply).await.is_err() {
        return Answer::text(501, "this Foxy does not read its configuration again");
    }
    match outcome.await {
        Ok(Ok(line)) => Answer::text(200, &line),
        Ok(Err(problems)) => Answer::text(
            422,
            &format!(
                "{}\nthe configuration was not reloaded; the old one stays in use",
                problems.join("\n")
            ),
        ),
        Err(_) => Answer::text(503, "Foxy is shutting down"),
    }
}
