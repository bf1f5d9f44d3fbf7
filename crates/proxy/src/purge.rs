//! Purging a URL: what is stored goes, what is being fetched is not stored, and the answer waits
//! until a power cut cannot bring it back.

use std::time::Duration;

use foxy_base::{KeyHash, key_hash};
use foxy_http1::Url;
use foxy_store::Durable;

use crate::{Proxy, key};

/// How long a purge may take to become durable before the client is told that it is not.
const DURABLE: Duration = Duration::from_secs(10);

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Something was stored under the URL.
    pub existed: bool,
    /// The removal survives a power cut. If not, it holds for this process only.
    pub durable: bool,
}

impl Proxy {
    /// Removes what is stored under `url` in this partition, all variants included. A fill that
    /// runs for it now is neither stored nor joined by later requests. Once started the removal
    /// holds, whether the future is awaited to its end or not.
    pub async fn purge(&self, partition: &str, url: &Url<'_>) -> Purged {
        let mut bytes = Vec::new();
        key::primary(&self.config.user_rules, partition, url, &mut bytes);
        self.purge_key(key_hash(&bytes), &bytes).await
    }

    pub(crate) async fn purge_key(&self, hash: KeyHash, key: &[u8]) -> Purged {
        // Fills first: what they store before this is removed below, what they would store
        // afterwards is not stored.
        self.fills.invalidate(hash);
        let existed = self.engine.supersede(hash, key);
        let ticket = self.engine.purge(hash, key);
        let durable = matches!(
            tokio::time::timeout(DURABLE, ticket).await,
            Ok(Durable::Yes)
        );
        Purged { existed, durable }
    }
}
