//! Users who log in at mirrors.

use foxy_http_rules::rules::FORWARD;

use super::Mirrors;
use crate::Gatekeeper;

impl Gatekeeper {
    /// Returns true if users log in to Foxy at one or more of these mirrors. At such a mirror, the field
    /// `Authorization` contains a login for Foxy, and not for the registry.
    #[must_use]
    pub fn has_logins_at(&self, mirrors: &Mirrors) -> bool {
        let named = |at: &String| mirrors.sites.iter().any(|site| site.mirror.name == *at);
        let takes = |at: &String| at == FORWARD || named(at);
        let logins = self.logins();
        logins.is_some_and(|logins| logins.config().at.iter().any(takes))
    }
}
