//! Container images: requests for parts of images (manifests, layers, lists of tags), and the heads of the
//! requests to the registry.
//!
//! Each layer of a registry is stored once, under its digest. A client gets a layer only after the registry
//! has confirmed that the repository has the layer, for the credential of this client. This answer of the
//! registry is called the proof. The proof is stored as a separate object, under the name that the client
//! used.

pub(crate) mod heads;
mod tokens;

use foxy_mirror::{Digest, Image, Wanted};
use sha2::{Digest as _, Sha256};

pub(crate) use tokens::Tokens;

/// Seconds for which a proof is valid. After that time, the registry is asked again. If the registry then
/// fails, the old proof is used.
const PROOF_SECONDS: u32 = 86_400;
/// Seconds for which an old proof is used while the registry fails.
const PROOF_STALE: u32 = 365 * 86_400;

/// A credential for a registry: user and password, or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The value of `Authorization`, in the form that the registry expects.
    header: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    /// Makes the login from `USER:PASSWORD`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        use base64::Engine as _;
        let coded = base64::engine::general_purpose::STANDARD.encode(text);
        Self {
            header: format!("Basic {coded}"),
        }
    }

    /// Makes a login from a token. Returns `None` if the text has characters that tokens do not have (RFC
    /// 6750 section 2.1).
    #[must_use]
    pub fn token(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
        let good = !text.is_empty() && text.bytes().all(plain);
        good.then(|| Self {
            header: format!("Bearer {text}"),
        })
    }

    /// Returns the value of `Authorization`.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// Returns the login that a client has sent. Returns `None` if the client has sent another kind of
    /// credential.
    pub(crate) fn shown(authorization: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(authorization).ok()?;
        let (scheme, coded) = text.split_once(' ')?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
        let good = scheme.eq_ignore_ascii_case("basic") && coded.bytes().all(plain);
        good.then(|| Self {
            header: format!("Basic {coded}"),
        })
    }
}

/// Returns a name for a credential. The name separates the objects that were fetched with this credential
/// from other objects. It reveals no part of the credential. With each start of Foxy, the seed changes, and
/// so the name changes too.
pub(super) fn mark(authorization: &[u8], seed: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(authorization);
    let digest = hash.finalize();
    digest[..12].iter().map(|b| format!("{b:02x}")).collect()
}

/// The step that a request for an image has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The registry must first confirm that the client may have the layer.
    Proof,
    /// The client may have the answer.
    Answer,
}

/// The part of an image that a request is for, and the state of the request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImagePart {
    image: Image,
    step: Step,
    login: Option<Login>,
    /// The name of the client's own credential (see the function `mark`). If the name is empty, the
    /// credential of the mirror is used.
    mark: String,
}

impl ImagePart {
    /// Makes the value for a new request. `own` contains the client's credential, and the seed for the name
    /// of this credential.
    pub(crate) fn new(
        image: Image,
        own: Option<(Login, u64)>,
        mirrors: Option<Login>,
        proven: bool,
    ) -> Self {
        let step = match image.wanted {
            Wanted::Blob(_) if !proven => Step::Proof,
            _ => Step::Answer,
        };
        let mark = own
            .as_ref()
            .map(|(login, seed)| mark(login.header.as_bytes(), *seed));
        Self {
            image,
            step,
            login: own.map(|(login, _)| login).or(mirrors),
            mark: mark.unwrap_or_default(),
        }
    }

    /// Returns the value for the same request in the step after the proof, in which the client may have the
    /// answer.
    pub(crate) fn proven(&self) -> Self {
        Self {
            step: Step::Answer,
            ..self.clone()
        }
    }

    /// Returns true if the client has sent its own credential.
    pub(super) fn is_own(&self) -> bool {
        !self.mark.is_empty()
    }

    pub(crate) const fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the credential that is sent to the registry.
    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Returns the key under which the table of tokens keeps the token for this request. All requests for the
    /// same repository with the same credential have the same key.
    pub(crate) fn token_key(&self, mirror: &str) -> String {
        format!("{mirror} {} {}", self.mark, self.image.repository)
    }

    pub(crate) fn is_proof(&self) -> bool {
        self.step == Step::Proof
    }

    /// Returns true if the request is for a layer, and it is known that the client may have the layer.
    pub(super) fn is_layer(&self) -> bool {
        matches!(self.image.wanted, Wanted::Blob(_)) && !self.is_proof()
    }

    /// Returns true if the request only asks whether the registry exists.
    pub(crate) fn is_base(&self) -> bool {
        self.image.wanted == Wanted::Base
    }

    /// Returns the suffix of the name of the partition for the stored answer. All clients that are permitted
    /// to get a layer share the stored layer. Every other object belongs to one credential.
    pub(crate) fn partition(&self) -> String {
        match (&self.image.wanted, self.step) {
            (Wanted::Blob(_), Step::Answer) => "@blobs".to_owned(),
            _ if self.mark.is_empty() => String::new(),
            _ => format!("@{}", self.mark),
        }
    }

    /// Returns the path that the key of the stored answer contains.
    pub(crate) fn key_path(&self) -> String {
        match (&self.image.wanted, self.step) {
            (Wanted::Blob(_), Step::Answer) => format!("/{}", self.image.reference),
            _ => self.image.path.clone(),
        }
    }

    /// Returns path and query of the request to the registry.
    pub(crate) fn target(&self) -> &str {
        &self.image.path
    }

    /// Returns the digest that the answer must have. `said` is the digest in the head of the answer.
    pub(crate) fn digest(&self, said: Option<&[u8]>) -> Option<Digest> {
        match self.image.wanted {
            // The answer to the request for a proof has no body, so it has no digest.
            Wanted::Blob(_) if self.is_proof() => None,
            Wanted::Blob(digest) | Wanted::Manifest(digest) => Some(digest),
            Wanted::Tag => foxy_mirror::digest_of_name(std::str::from_utf8(said?).ok()?),
            Wanted::Base | Wanted::List => None,
        }
    }

    /// Returns true if the request asks for the manifest that a tag points to.
    pub(crate) fn is_tag(&self) -> bool {
        self.image.wanted == Wanted::Tag
    }

    /// Returns true if the answer is a manifest.
    fn is_manifest(&self) -> bool {
        matches!(self.image.wanted, Wanted::Tag | Wanted::Manifest(_))
    }

    /// Returns the field lines of the registry's answer as the cache receives them.
    pub(crate) fn answer(&self, mirror: &str, status: u16, lines: &[u8]) -> Vec<u8> {
        heads::answer(self, mirror, status, lines)
    }
}
