//! Container images: the part of a mirror that a request is for, and how its registry is asked.
//!
//! A layer is stored once for a registry, under its digest. A client gets a layer only after the registry
//! has confirmed, for this client's credential, that the repository has it. That answer is the proof: an
//! object of its own, under the name that the client used.

pub(crate) mod heads;
mod tokens;

use foxy_mirror::{Digest, Image, Wanted};
use sha2::{Digest as _, Sha256};

pub(crate) use tokens::Tokens;

/// Seconds for which a proof holds; after that the registry is asked again; while the registry fails, the
/// old proof counts.
const PROOF_SECONDS: u32 = 86_400;
/// The same for a registry that fails.
const PROOF_STALE: u32 = 365 * 86_400;

/// Credential for a registry: user and password, or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// As the registry wants to see them.
    header: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    /// The login of `USER:PASSWORD`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        use base64::Engine as _;
        let coded = base64::engine::general_purpose::STANDARD.encode(text);
        Self {
            header: format!("Basic {coded}"),
        }
    }

    /// A token; `None` if it has characters that tokens do not have (RFC 6750 section 2.1).
    #[must_use]
    pub fn token(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
        let good = !text.is_empty() && text.bytes().all(plain);
        good.then(|| Self {
            header: format!("Bearer {text}"),
        })
    }

    /// The value of `Authorization`.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// The login that a client shows; `None` if it is another kind of credential.
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

/// A name that tells the objects of one credential from those of others. It reveals nothing about the
/// credential, and it is another one after each start.
pub(super) fn mark(authorization: &[u8], seed: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(authorization);
    let digest = hash.finalize();
    digest[..12].iter().map(|b| format!("{b:02x}")).collect()
}

/// The step that a request for an image is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The registry must say whether the client may have the layer.
    Proof,
    /// It may have the answer.
    Answer,
}

/// The part of a mirror of images that a request is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImagePart {
    image: Image,
    step: Step,
    login: Option<Login>,
    /// Name of the client's own credential; empty: the mirror's.
    mark: String,
}

impl ImagePart {
    /// The first step of a request. `own` is the client's credential, and the seed for its name.
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

    /// The same after the proof.
    pub(crate) fn proven(&self) -> Self {
        Self {
            step: Step::Answer,
            ..self.clone()
        }
    }

    /// True if the client has shown a credential of its own.
    pub(super) fn is_own(&self) -> bool {
        !self.mark.is_empty()
    }

    pub(crate) const fn image(&self) -> &Image {
        &self.image
    }

    /// The credential for the registry.
    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Key of the token for its repository at this mirror.
    pub(crate) fn token_key(&self, mirror: &str) -> String {
        format!("{mirror} {} {}", self.mark, self.image.repository)
    }

    pub(crate) fn is_proof(&self) -> bool {
        self.step == Step::Proof
    }

    /// True if it is a layer that the client may have.
    pub(super) fn is_layer(&self) -> bool {
        matches!(self.image.wanted, Wanted::Blob(_)) && !self.is_proof()
    }

    /// True if it asks whether the registry is there.
    pub(crate) fn is_base(&self) -> bool {
        self.image.wanted == Wanted::Base
    }

    /// The suffix of the partition: layers are shared by all that may have them, everything else belongs
    /// to a credential.
    pub(crate) fn partition(&self) -> String {
        match (&self.image.wanted, self.step) {
            (Wanted::Blob(_), Step::Answer) => "@blobs".to_owned(),
            _ if self.mark.is_empty() => String::new(),
            _ => format!("@{}", self.mark),
        }
    }

    /// Path of the URL in keys.
    pub(crate) fn key_path(&self) -> String {
        match (&self.image.wanted, self.step) {
            (Wanted::Blob(_), Step::Answer) => format!("/{}", self.image.reference),
            _ => self.image.path.clone(),
        }
    }

    /// Path and query at the registry.
    pub(crate) fn target(&self) -> &str {
        &self.image.path
    }

    /// The digest that the answer must have. `said` is that of the answer's own head.
    pub(crate) fn digest(&self, said: Option<&[u8]>) -> Option<Digest> {
        match self.image.wanted {
            // The answer to a proof has no body.
            Wanted::Blob(_) if self.is_proof() => None,
            Wanted::Blob(digest) | Wanted::Manifest(digest) => Some(digest),
            Wanted::Tag => foxy_mirror::digest_of_name(std::str::from_utf8(said?).ok()?),
            Wanted::Base | Wanted::List => None,
        }
    }

    /// True if it asks what a tag points to.
    pub(crate) fn is_tag(&self) -> bool {
        self.image.wanted == Wanted::Tag
    }

    /// True if it is answered with a manifest.
    fn is_manifest(&self) -> bool {
        matches!(self.image.wanted, Wanted::Tag | Wanted::Manifest(_))
    }

    /// Lines of the head of the registry's answer as the cache gets them.
    pub(crate) fn answer(&self, mirror: &str, status: u16, lines: &[u8]) -> Vec<u8> {
        heads::answer(self, mirror, status, lines)
    }
}
