//! A bounded table of credentials for requests to registries. Each entry is a value of the field
//! `Authorization`.

use std::time::Duration;

use foxy_base::MonoTime;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Largest number of entries. If the table is full, all entries are dropped. Each entry can be fetched again.
const ENTRIES: usize = 4096;
/// Foxy stops using a value this number of seconds before the value's validity ends.
const EARLY: u64 = 10;
/// Longest time in seconds for which a value is kept.
const SECONDS_MAX: u64 = 3600;

/// Values of `Authorization`, by mirror, credential and repository.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, (String, MonoTime)>>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// Returns the value for this key.
    pub(crate) fn get(&self, key: &str, now: MonoTime) -> Option<String> {
        let table = self.0.lock();
        let (value, end) = table.get(key)?;
        (now < *end).then(|| value.clone())
    }

    /// Notes a value that is valid for this number of seconds.
    pub(crate) fn put(&self, key: String, value: String, seconds: u64, now: MonoTime) {
        let Some(seconds) = seconds.min(SECONDS_MAX).checked_sub(EARLY) else {
            return;
        };
        let mut table = self.0.lock();
        if table.len() >= ENTRIES {
            table.clear();
        }
        table.insert(key, (value, now + Duration::from_secs(seconds)));
    }

    /// Forgets the value for this key.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_before_it_is_refused_and_the_table_is_bounded() {
        let tokens = Tokens::default();
        let at = |seconds| MonoTime(0) + Duration::from_secs(seconds);
        tokens.put("a".into(), "x".into(), 60, at(0));
        assert_eq!(tokens.get("a", at(49)).as_deref(), Some("x"));
        assert_eq!(tokens.get("a", at(50)), None);
        tokens.put("b".into(), "x".into(), 5, at(0));
        assert_eq!(tokens.get("b", at(0)), None);
        for n in 0..2 * ENTRIES {
            tokens.put(n.to_string(), "x".into(), 60, at(0));
        }
        assert!(tokens.0.lock().len() <= ENTRIES);
    }
}
