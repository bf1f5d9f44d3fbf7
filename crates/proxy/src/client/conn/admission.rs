//! Admission of a request by the gatekeeper (the access rules, logins and limits). This module waits for
//! login checks and name look-ups that the gatekeeper needs, and answers the request if it is not admitted.

use foxy_base::MonoTime;
use foxy_http1::RequestParts;

use super::Conn;
use super::context::Admission;
use crate::http::net::Transport;

impl<T: Transport> Conn<T> {
    /// Asks the gatekeeper about a request. Returns `None` if the request is admitted. Otherwise this
    /// function has answered the request, and the result is true if the connection can carry another request.
    pub(super) async fn turned_away(
        &mut self,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> Option<bool> {
        let head = self.link.head(parts);
        match self.context.judged(&self.local, &head, T::SECURE) {
            Admission::Open => {
                self.slow();
                None
            }
            // The future is boxed. Otherwise it would enlarge the future of every request.
            admission => Box::pin(self.slowly(admission, parts, started, keep)).await,
        }
    }

    async fn slowly(
        &mut self,
        mut admission: Admission,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> Option<bool> {
        loop {
            let (local, context, head) = (&self.local, &mut self.context, self.link.head(parts));
            admission = match admission {
                Admission::Open => {
                    self.slow();
                    return None;
                }
                Admission::Check(login) => context.checked(local, &head, T::SECURE, *login).await,
                Admission::Resolve(reach) => context.resolved(local, *reach).await,
                _ => break,
            };
            admission = self.context.within_limits(&self.local, admission);
        }
        Some(self.turn_away(&admission, parts, started, keep).await)
    }

    /// Slows the answer if a limit of bytes per second requires it.
    fn slow(&self) {
        if let Some(counted) = self.context.slowed_by() {
            self.link.slow(Some(counted));
        }
    }
}
