//! Build caches: sites whose objects are stored by the clients. There is no origin.
//!
//! A path names an object. After a segment `cas`, the name is the SHA-256 of the object. After a segment
//! `ac`, the object is the result of an action (a build step), and the name is a digest of this action.
//! Clients need a separate right to store results of actions. Bazel uses `cas` and `ac` in this way. Every
//! other path is a plain name, as Gradle and ccache use it.

use foxy_access::Principal;
use foxy_base::rule;
use foxy_http1::{Method, RequestHead};

use crate::access::refusal::Refusal;

/// Longest path of an object in bytes.
const PATH_MAX: usize = 1024;

/// The methods that a build cache allows.
pub(crate) const METHODS: &str = "GET, HEAD, PUT, DELETE";

/// Refusal of a request for an object that does not exist.
pub(crate) const NO_OBJECT: Refusal = refusal(404, "no-such-object");

/// The settings of a build cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Largest number of bytes of an object.
    pub size_max: u64,
    /// Users who may store and remove objects that are not results of actions.
    pub writers: Writers,
    /// Users who may store and remove results of actions.
    pub action_writers: Writers,
}

/// Users who have the right to store and remove objects. Clients that have not logged in never have this
/// right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    /// True if every user who has logged in has the right.
    pub all: bool,
    /// Names of users.
    pub users: Vec<String>,
    /// Names of groups.
    pub groups: Vec<String>,
}

/// The kind of an object, as its path states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// An object with a plain name.
    Plain,
    /// The result of an action.
    Action,
    /// The object with this SHA-256.
    Content([u8; 32]),
}

/// The operation that a request to a build cache wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectWish {
    Read,
    Store(ObjectKind),
    Remove(ObjectKind),
    Refused(Refusal),
}

impl Writers {
    fn has(&self, user: &Principal) -> bool {
        let named = self.users.iter().any(|name| **name == *user.name());
        let mut groups = user.groups().iter();
        let mut grouped = || groups.any(|group| self.groups.iter().any(|own| **own == **group));
        rule!(
            "objects: only those with the right write",
            self.all || named || grouped(),
            true
        )
    }

    /// True if nobody has the right.
    #[must_use]
    pub const fn is_nobody(&self) -> bool {
        !self.all && self.users.is_empty() && self.groups.is_empty()
    }
}

impl Objects {
    /// Returns a refusal if this user may not store or remove an object of this kind.
    pub(crate) fn refuses(&self, kind: ObjectKind, user: &Principal) -> Option<Refusal> {
        let (writers, reason) = match kind {
            ObjectKind::Action => (
                rule!(
                    "objects: results of actions have a right of their own",
                    &self.action_writers,
                    &self.writers
                ),
                "action-write-not-allowed",
            ),
            _ => (&self.writers, "object-write-not-allowed"),
        };
        (!writers.has(user)).then_some(refusal(403, reason))
    }
}

/// Returns the operation that a request wants.
pub(crate) fn wish(head: &RequestHead<'_>) -> ObjectWish {
    let (method, kind) = (head.method(), kind(head.target().path));
    match (method, kind) {
        (Method::Get | Method::Head, _) if !head.framing().is_empty() => {
            ObjectWish::Refused(refusal(400, "body-not-expected"))
        }
        (Method::Get | Method::Head, Some(_)) => ObjectWish::Read,
        (Method::Get | Method::Head, None) => ObjectWish::Refused(NO_OBJECT),
        (Method::Put, Some(kind)) => ObjectWish::Store(kind),
        (Method::Delete, Some(kind)) => ObjectWish::Remove(kind),
        (Method::Put | Method::Delete, None) => {
            ObjectWish::Refused(refusal(400, "not-the-name-of-an-object"))
        }
        _ => ObjectWish::Refused(refusal(405, "method-not-of-objects")),
    }
}

/// Returns the kind of the object that a path names. Returns `None` if the path names no object. A name can
/// be written in only one way: there are no escapes, no query, and no segments that some programs remove
/// (empty, `.` or `..`).
fn kind(path: &[u8]) -> Option<ObjectKind> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+=@,".contains(byte);
    let segments = path.strip_prefix(b"/")?;
    if path.len() > PATH_MAX {
        return None;
    }
    let (mut before, mut last) = (&b""[..], &b""[..]);
    for segment in segments.split(|byte| *byte == b'/') {
        let odd = matches!(segment, b"" | b"." | b"..") || !segment.iter().all(fits);
        if rule!("objects: a name has one way to be written", odd, false) {
            return None;
        }
        (before, last) = (last, segment);
    }
    match before {
        b"ac" => digest(last).map(|_| ObjectKind::Action),
        b"cas" => digest(last).map(ObjectKind::Content),
        _ => Some(ObjectKind::Plain),
    }
}

/// Parses a SHA-256 in lower-case hexadecimal.
fn digest(text: &[u8]) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    if pairs.len() != out.len() {
        return None;
    }
    for (byte, [high, low]) in out.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(out)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

pub(crate) const fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_object_in_one_way() {
        let sha = "ab".repeat(32);
        let content = Some(ObjectKind::Content([0xab; 32]));
        for (path, expected) in [
            ("/a", Some(ObjectKind::Plain)),
            ("/cache/0f~1.x_y-z", Some(ObjectKind::Plain)),
            (&format!("/cas/{sha}"), content),
            (&format!("/deep/er/cas/{sha}"), content),
            (&format!("/ac/{sha}"), Some(ObjectKind::Action)),
            (&format!("/deep/ac/{sha}"), Some(ObjectKind::Action)),
            // Only the last two segments decide about the kind, because Bazel writes `ac` or `cas` directly
            // before the digest.
            (&format!("/ac/x/{sha}"), Some(ObjectKind::Plain)),
            (&format!("/cas/{}", sha.to_uppercase()), None),
            (&format!("/cas/{}", &sha[2..]), None),
            (&format!("/cas/{sha}0"), None),
            (&format!("/ac/{sha}?x"), None),
            (&format!("/ac//{sha}"), None),
            (&format!("/%61c/{sha}"), None),
            (&format!("/x/../ac/{sha}"), None),
            ("/ac/x", None),
            ("/", None),
            ("/a/", None),
            ("/a/.", None),
            ("/a b", None),
            ("/a\\b", None),
            ("*", None),
            ("", None),
            (&format!("/{}", "a".repeat(PATH_MAX)), None),
        ] {
            assert_eq!(kind(path.as_bytes()), expected, "{path}");
        }
    }
}
