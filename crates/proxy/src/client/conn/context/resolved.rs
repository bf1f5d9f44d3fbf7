//! Decides about requests for which the access rules depend on the address of the destination.

use std::sync::Arc;

use foxy_access::Judgement;

use super::{Admission, ConnectionContext};
use crate::Role;
use crate::access::gatekeeper::{Pass, Reach};
use crate::origin::UpstreamError;
use crate::origin::connect::resolve;
use crate::state::local::Local;

impl ConnectionContext {
    /// Resolves the destination of a request and applies the access rules to its addresses. The request is
    /// admitted if the rules allow at least one of the addresses.
    pub(in crate::client::conn) async fn resolved(
        &mut self,
        local: &Local,
        reach: Reach,
    ) -> Admission {
        let host = match &*self.role {
            Role::Site(site) => site.host.to_ascii_lowercase(),
            _ => String::from_utf8_lossy(&reach.host).to_ascii_lowercase(),
        };
        let addresses = match resolve(&local.proxy, local.counters(), &host).await {
            Ok(addresses) => addresses,
            Err(error) => return Admission::NoAddress(error),
        };
        let (mut refused, mut asked) = (None, false);
        for address in addresses.iter() {
            let rule = match reach.judge(*address) {
                Judgement::None => None,
                Judgement::Rule(rule) => Some(rule),
                Judgement::NeedsUser(_) => {
                    asked = true;
                    continue;
                }
                Judgement::NeedsAddress(_) => continue,
            };
            if !reach.refuses(rule) {
                self.client.pass = Some(Arc::new(self.pass_of(rule, reach)));
                return Admission::Open;
            }
            refused = refused.or(rule);
        }
        match refused {
            _ if asked => Admission::LogIn(false),
            None => Admission::NoAddress(UpstreamError::NoSuchName),
            Some(rule) => {
                self.client.pass = Some(Arc::new(Pass {
                    rule: Some(rule),
                    user: reach.user.clone(),
                    ..Pass::new(&reach.gate)
                }));
                Admission::Refused(rule)
            }
        }
    }

    fn pass_of(&self, rule: Option<usize>, reach: Reach) -> Pass {
        let site = matches!(&*self.role, Role::Site(_));
        let parents = match &*self.role {
            Role::Forward => reach.gate.parents(rule, &reach.host, reach.scheme),
            _ => None,
        };
        Pass {
            rule,
            user: reach.user.clone(),
            spent: site && reach.user.is_some() && self.client.arrival.certificate.is_none(),
            parents,
            ..Pass::new(&reach.gate)
        }
        .reaching(reach)
    }
}
