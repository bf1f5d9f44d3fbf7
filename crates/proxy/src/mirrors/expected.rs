//! A bounded table of digests. The index documents of a mirror contain the digests of its artefacts, and Foxy
//! compares each artefact with its digest.

use foxy_base::{KeyHash, first, key_hash};
use foxy_http1::Escapes;
use foxy_mirror::{Digest, Found, digests_of_field};
use foxy_store::Object;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Mirrored;

/// Largest number of entries of one generation. There are two generations, and new entries go to the younger
/// one. When it is full, the older generation is forgotten, the younger one becomes the older one, and a new
/// one begins. So the table contains only digests from documents that were read since the older generation
/// began. One generation fits into 131,072 buckets of 104 bytes, so both generations need 27 MB at most.
const GENERATION: usize = (128 << 10) / 8 * 7;

/// Largest number of documents that one generation of `documents` remembers. Both generations need 1.2 MB at
/// most.
const DOCUMENTS: usize = (32 << 10) / 8 * 7;

/// Largest number of tasks, over all workers, that hash a stored artefact or read a stored document again at
/// the same time. If many clients request one artefact, other requests wait for the first comparisons and use
/// their result.
const COMPARISONS_AT_ONCE: usize = 2;

/// The table of digests, by mirror and path.
#[derive(Debug)]
pub(crate) struct Expected {
    table: Mutex<Generations>,
    comparisons: Semaphore,
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            comparisons: Semaphore::new(COMPARISONS_AT_ONCE),
        }
    }
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<KeyHash, Entry>,
    old: HashMap<KeyHash, Entry>,
    /// The documents whose digests are in the table, by their keys in the store. The array has the younger
    /// and the older generation. A document is never remembered longer than its digests.
    documents: [HashSet<KeyHash>; 2],
}

/// The digest of an artefact, and the findings about the stored artefact.
#[derive(Clone, Copy, Debug)]
struct Entry {
    digest: Digest,
    /// True if the bytes that were last stored or fetched did not have this digest. Caches between Foxy and
    /// the upstream may contain the wrong bytes.
    doubted: bool,
    /// The version of the stored object that a comparison has shown to have this digest. 0 if there is no
    /// such version.
    right: u64,
}

/// The result of checking a stored artefact against the digest that documents contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DigestCheck {
    /// The artefact has the digest, or documents contain no digest for it.
    Right,
    /// The artefact does not have the digest.
    Wrong,
    /// The artefact was stored before a document contained its digest.
    Unknown(Digest),
}

/// Returns the key in the table for a path of a mirror. The path has no query. Percent escapes are converted
/// to their normal form, as in cache keys.
fn key(scope: &str, path: &[u8]) -> KeyHash {
    let mut text = scope.as_bytes().to_vec();
    text.push(b' ');
    Escapes::Normal.write(path, &mut text);
    key_hash(&text)
}

/// Returns the key in the table for the artefact at a path. The path may have a query.
fn key_of(part: &Mirrored, path: &[u8]) -> KeyHash {
    key(part.scope(), &part.named_path(path))
}

impl Generations {
    /// Forgets the older generation of documents. A document that neither generation remembers will be read
    /// again.
    fn age_documents(&mut self) {
        let [young, old] = &mut self.documents;
        *old = std::mem::take(young);
    }

    fn get(&self, key: &KeyHash) -> Option<&Entry> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn get_mut(&mut self, key: &KeyHash) -> Option<&mut Entry> {
        let young = self.young.get_mut(key);
        young.or_else(|| self.old.get_mut(key))
    }
}

impl Expected {
    /// Notes the digests that a fetched document contains. They replace older digests of the same scope
    /// ([`Mirrored::scope`]).
    pub(crate) fn note(&self, scope: &str, found: Vec<Found>) {
        self.add(scope, found, true);
    }

    /// Notes the digests that a stored document contains. Known digests of the same scope are not replaced,
    /// because they may come from documents that were fetched later.
    pub(crate) fn recall(&self, scope: &str, found: Vec<Found>) {
        self.add(scope, found, false);
    }

    fn add(&self, scope: &str, found: Vec<Found>, newest: bool) {
        if found.is_empty() {
            return;
        }
        let mut generations = self.table.lock();
        for found in found {
            if generations.young.len() >= GENERATION {
                generations.old = std::mem::take(&mut generations.young);
                generations.age_documents();
            }
            let key = key(scope, &found.path);
            let known = generations.get(&key).copied();
            let entry = known.filter(|known| !newest || known.digest == found.digest);
            let entry = entry.unwrap_or(Entry {
                digest: found.digest,
                doubted: false,
                right: 0,
            });
            generations.young.insert(key, entry);
        }
    }

    /// Notes that the digests of the document with this key are in the table.
    pub(crate) fn learn(&self, document: KeyHash) {
        let mut generations = self.table.lock();
        if generations.documents[0].len() >= DOCUMENTS {
            generations.age_documents();
        }
        generations.documents[0].insert(document);
    }

    /// Returns true if it is known that the digests of the document with this key are in the table.
    pub(crate) fn has_learnt(&self, document: &KeyHash) -> bool {
        let generations = self.table.lock();
        let mut documents = generations.documents.iter();
        documents.any(|known| known.contains(document))
    }

    /// Returns the digest of the artefact at this path. The path may have a query.
    pub(crate) fn of(&self, part: &Mirrored, path: &[u8]) -> Option<Digest> {
        let key = key_of(part, path);
        let generations = self.table.lock();
        Some(generations.get(&key)?.digest)
    }

    /// Compares the digest of a stored object with the expected digest of the artefact at this path.
    pub(crate) fn digest_check(
        &self,
        part: &Mirrored,
        path: &[u8],
        object: &Object,
    ) -> DigestCheck {
        if !part.is_named_by_documents() {
            return DigestCheck::Right;
        }
        let key = key_of(part, path);
        let generations = self.table.lock();
        let Some(entry) = generations.get(&key) else {
            return DigestCheck::Right;
        };
        if entry.right == object.meta().version {
            return DigestCheck::Right;
        }
        let said = first(object.fields(), "Repr-Digest").unwrap_or_default();
        let said = digests_of_field(said).find(|said| said.is_like(&entry.digest));
        match said {
            None => DigestCheck::Unknown(entry.digest),
            Some(said) if said == entry.digest => DigestCheck::Right,
            Some(_) => DigestCheck::Wrong,
        }
    }

    /// Waits for a permit to hash a stored artefact or to read a stored document again. Cancel safe.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.comparisons.acquire().await.ok()
    }

    /// Notes that the bytes of this version of an object have this digest.
    pub(crate) fn prove(&self, part: &Mirrored, path: &[u8], (digest, version): (Digest, u64)) {
        let key = key_of(part, path);
        let mut generations = self.table.lock();
        let entry = generations.get_mut(&key);
        if let Some(entry) = entry.filter(|entry| entry.digest == digest) {
            entry.right = version;
        }
    }

    /// Notes the result of the last comparison of an artefact. `doubted` is true if the bytes did not have
    /// the expected digest.
    pub(crate) fn doubt(&self, part: &Mirrored, path: &[u8], doubted: bool) {
        self.set_doubt(&key_of(part, path), doubted);
    }

    fn set_doubt(&self, key: &KeyHash, doubted: bool) {
        let mut generations = self.table.lock();
        if let Some(entry) = generations.get_mut(key) {
            entry.doubted = doubted;
        }
    }

    /// Returns true if, at the last comparison, the bytes of the artefact did not have the expected digest.
    pub(crate) fn is_doubted(&self, part: &Mirrored, path: &[u8]) -> bool {
        self.has_doubt(&key_of(part, path))
    }

    fn has_doubt(&self, key: &KeyHash) -> bool {
        let generations = self.table.lock();
        let entry = generations.get(key);
        entry.is_some_and(|entry| entry.doubted)
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

    fn of(expected: &Expected, scope: &str, path: &[u8]) -> Option<Digest> {
        let generations = expected.table.lock();
        Some(generations.get(&key(scope, path))?.digest)
    }

    #[test]
    fn mirrors_have_digests_of_their_own_and_the_last_one_counts() {
        let expected = Expected::default();
        expected.note(
            "a",
            vec![found("/a/x%7e".into(), 1), found("/a/x~".into(), 2)],
        );
        assert_eq!(of(&expected, "a", b"/a/x~"), Some(Digest::Sha256([2; 32])));
        expected.recall("a", vec![found("/a/x~".into(), 3), found("/a/z".into(), 3)]);
        assert_eq!(of(&expected, "a", b"/a/x~"), Some(Digest::Sha256([2; 32])));
        assert_eq!(of(&expected, "a", b"/a/z"), Some(Digest::Sha256([3; 32])));
        assert_eq!(of(&expected, "b", b"/a/x~"), None);
        assert_eq!(of(&expected, "a", b"/a/y"), None);
    }

    #[test]
    fn a_doubt_lasts_until_right_bytes_or_another_digest_come() {
        let expected = Expected::default();
        let note = |n| expected.note("a", vec![found("/x".into(), n)]);
        note(1);
        assert!(!expected.has_doubt(&key("a", b"/x")));
        expected.set_doubt(&key("a", b"/x"), true);
        note(1);
        assert!(expected.has_doubt(&key("a", b"/x")) && !expected.has_doubt(&key("b", b"/x")));
        expected.set_doubt(&key("a", b"/x"), false);
        assert!(!expected.has_doubt(&key("a", b"/x")));
        expected.set_doubt(&key("a", b"/x"), true);
        note(2);
        assert!(!expected.has_doubt(&key("a", b"/x")));
        expected.set_doubt(&key("a", b"/unnamed"), true);
        assert!(!expected.has_doubt(&key("a", b"/unnamed")));
    }

    #[test]
    fn documents_are_forgotten_with_their_digests() {
        let expected = Expected::default();
        let document = |n: usize| key("documents", &n.to_le_bytes());
        expected.note("a", vec![found("/x".into(), 1)]);
        expected.learn(document(0));
        let rotate = |round: usize| {
            let all = (0..GENERATION).map(|n| found(format!("/{round}/{n}"), 0));
            expected.note("a", all.collect());
        };
        rotate(1);
        rotate(2);
        let knows = (
            of(&expected, "a", b"/x").is_some(),
            expected.has_learnt(&document(0)),
        );
        assert_eq!(knows, (false, false));
        for n in 0..3 * DOCUMENTS {
            expected.learn(document(n));
        }
        let known = |n: usize| expected.has_learnt(&document(n));
        assert!(known(3 * DOCUMENTS - 1) && !known(0));
        let generations = expected.table.lock();
        assert!(
            generations
                .documents
                .iter()
                .all(|known| known.capacity() <= DOCUMENTS)
        );
    }

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_old() {
        let expected = Expected::default();
        let name = |n: usize| format!("/a/{n}");
        for start in (0..3 * GENERATION).step_by(1024) {
            let some = (start..start + 1024).map(|n| found(name(n), 0));
            expected.note("a", some.collect());
        }
        let generations = expected.table.lock();
        let buckets = generations.young.capacity().max(generations.old.capacity());
        assert!(buckets <= GENERATION, "{buckets}");
        assert!(size_of::<(KeyHash, Entry)>() < 104);
        drop(generations);
        assert!(of(&expected, "a", name(3 * GENERATION - 1).as_bytes()).is_some());
        assert!(of(&expected, "a", name(0).as_bytes()).is_none());
    }
}
