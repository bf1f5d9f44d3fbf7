//! Results of recent checks of logins. The key of a result is a keyed hash of the value that the client sent.

use std::hash::Hasher;
use std::sync::Arc;

use foxy_access::Principal;
use foxy_base::{MonoTime, Rng};
use hashbrown::HashMap;
use parking_lot::Mutex;
use siphasher::sip128::{Hasher128, SipHasher24};

const SHARDS: usize = 16;
/// Largest number of logins that are remembered.
pub(super) const MOST: usize = 1 << 14;

#[derive(Clone, Debug)]
struct Entry {
    /// The user. `None` means that the login was wrong.
    user: Option<Arc<Principal>>,
    until: MonoTime,
}

/// Recent results of checks, in several shards (parts with separate locks). If a shard is full, a wrong login
/// is not added, and a right login displaces all wrong logins of the shard. If a full shard contains no wrong
/// login, a right login displaces all logins of the shard. A displaced login has to be checked again.
pub(super) struct Memory {
    key: (u64, u64),
    shards: Vec<Mutex<HashMap<u128, Entry>>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

impl Memory {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            key: (rng.next_u64(), rng.next_u64()),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the keyed hash of the value that the client sent.
    pub(super) fn key(&self, value: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(value);
        hasher.finish128().as_u128()
    }

    fn shard(&self, key: u128) -> &Mutex<HashMap<u128, Entry>> {
        &self.shards[key as usize % SHARDS]
    }

    pub(super) fn get(&self, key: u128, now: MonoTime) -> Option<Option<Arc<Principal>>> {
        let shard = self.shard(key).lock();
        let entry = shard.get(&key).filter(|entry| now < entry.until)?;
        Some(entry.user.clone())
    }

    pub(super) fn put(&self, key: u128, user: Option<Arc<Principal>>, until: MonoTime) {
        let mut shard = self.shard(key).lock();
        if shard.len() >= MOST / SHARDS && !shard.contains_key(&key) {
            if user.is_none() {
                return;
            }
            shard.retain(|_, entry| entry.user.is_some());
            if shard.len() >= MOST / SHARDS {
                shard.clear();
            }
        }
        shard.insert(key, Entry { user, until });
    }
}
