//! Checks: requests that Foxy itself sends to origins, to find out whether the origins work.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Origins;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Longest wait of a check for its answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The settings for checks of a site's origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Path and query of the request.
    pub path: String,
    /// The `Host` field of the request.
    pub host: String,
    /// Time between two checks of an origin.
    pub every: Duration,
    /// The status that a working origin returns.
    pub status: u16,
}

/// Starts the checks of these origins on this worker, with a task for each origin. The tasks end when they
/// are aborted.
pub(crate) fn spawn(local: &Rc<Local>, origins: &Origins) -> Vec<JoinHandle<()>> {
    let Some(check) = origins.check() else {
        return Vec::new();
    };
    let task = |at| {
        let (local, origins, check) = (Rc::clone(local), origins.clone(), check.clone());
        tokio::task::spawn_local(async move {
            while !local.proxy.is_shutting_down() {
                once(&local, &origins, &check, at).await;
                tokio::time::sleep(check.every).await;
            }
        })
    };
    (0..origins.0.members.len()).map(task).collect()
}

async fn once(local: &Local, origins: &Origins, check: &Check, at: usize) {
    let limit = check.every.min(WAIT_MAX);
    let status = tokio::time::timeout(limit, status(local, origins, check, at)).await;
    let good = matches!(status, Ok(Ok(status)) if status == check.status);
    let changed = origins.0.group.lock().checked(at, good, local.mono());
    let Some(health_state) = changed else { return };
    let (site, origin) = (&origins.0.site, &origins.0.members[at].1);
    if health_state.is_in() {
        tracing::info!(%site, %origin, "checks of this origin succeed: it gets requests again");
    } else {
        let why = match status {
            Ok(Ok(status)) => format!("status {status}"),
            Ok(Err(error)) => error.reason().to_owned(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(%site, %origin, %why, "checks of this origin fail: it gets no requests");
    }
}

/// Returns the status of the answer to one check.
async fn status(
    local: &Local,
    origins: &Origins,
    check: &Check,
    at: usize,
) -> Result<u16, UpstreamError> {
    let to = &origins.0.members[at].0;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: foxy-check\r\nConnection: close\r\n\r\n",
        check.path, check.host
    );
    let mut leased = Leased::open_one(local, to, request.as_bytes()).await?;
    let first = leased.up.next_head(local).await?;
    let parts = leased.up.final_head(local, first, |_| {}).await?;
    leased.count(local);
    Ok(parts.status())
}
