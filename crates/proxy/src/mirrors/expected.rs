//! Digests of artefacts that documents of mirrors have named: a bounded table.

use foxy_base::{KeyHash, key_hash};
use foxy_http1::Escapes;
use foxy_mirror::{Digest, Found};
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Entries of one generation. There are two: what was named in neither is forgotten. An entry takes
/// 96 bytes at most, so all take 25 MB.
const GENERATION: usize = 128 << 10;

/// Digests by mirror and path.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<KeyHash, Digest>,
    old: HashMap<KeyHash, Digest>,
}

/// A path of a mirror, without query, in the form of keys.
fn key(mirror: &str, path: &[u8]) -> KeyHash {
    let mut text = mirror.as_bytes().to_vec();
    text.push(b' ');
    Escapes::Normal.write(path, &mut text);
    key_hash(&text)
}

impl Expected {
    /// Notes what a document of a mirror has named. The last one counts.
    pub(crate) fn note(&self, mirror: &str, found: Vec<Found>) {
        if found.is_empty() {
            return;
        }
        let mut generations = self.0.lock();
        for found in found {
            if generations.young.len() >= GENERATION {
                generations.old = std::mem::take(&mut generations.young);
            }
            let key = key(mirror, &found.path);
            generations.young.insert(key, found.digest);
        }
    }

    /// The digest of what is below this path; a query may follow it.
    pub(crate) fn of(&self, mirror: &str, path: &[u8]) -> Option<Digest> {
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let key = key(mirror, &path[..end]);
        let generations = self.0.lock();
        let found = generations.young.get(&key).or(generations.old.get(&key));
        found.copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: String, n: u8) -> Found {
        Found {
            path: path.into_bytes(),
            digest: Digest::Sha256([n; 32]),
        }
    }

    #[test]
    fn mirrors_have_digests_of_their_own_and_the_last_one_counts() {
        let expected = Expected::default();
        expected.note(
            "a",
            vec![found("/a/x%7e".into(), 1), found("/a/x~".into(), 2)],
        );
        assert_eq!(expected.of("a", b"/a/x~?q"), Some(Digest::Sha256([2; 32])));
        assert_eq!(expected.of("b", b"/a/x~"), None);
        assert_eq!(expected.of("a", b"/a/y"), None);
    }

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_old() {
        let expected = Expected::default();
        let name = |n: usize| format!("/a/{n}");
        for start in (0..3 * GENERATION).step_by(1024) {
            let some = (start..start + 1024).map(|n| found(name(n), 0));
            expected.note("a", some.collect());
        }
        let generations = expected.0.lock();
        assert!(generations.young.len() <= GENERATION && generations.old.len() <= GENERATION);
        drop(generations);
        assert!(
            expected
                .of("a", name(3 * GENERATION - 1).as_bytes())
                .is_some()
        );
        assert!(expected.of("a", name(0).as_bytes()).is_none());
    }
}
