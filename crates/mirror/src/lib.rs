//! Mirrors of package registries, without I/O. This crate has presets, classes of URLs, the mapping between
//! URLs of a mirror and URLs of its upstream (the registry's main server), and the rewriting of documents
//! that name artefacts. An artefact is a file of a package; its bytes never change. A document lists
//! artefacts, versions or index files, or it is the configuration of a registry.
//!
//! A mirror answers requests below a prefix such as `/pypi`. The rest of the path is a path at the upstream;
//! other hosts of the registry are below `/pypi/~host`. Requests go only to hosts that the mirror lists, and
//! only URLs of these hosts are rewritten. Documents are rewritten while they stream, in bounded memory.
//! Parts that are not understood stay unchanged, byte for byte.

mod answer;
mod challenge;
mod class;
mod digest;
mod etag;
mod html;
mod images;
mod json;
mod mirror;
mod preset;
mod release;
mod rewriter;
mod upstream;
mod versions;

pub use answer::{Answer, Document, Unlisted, answer};
pub use challenge::{Challenge, Token, challenge, parse_location, push_parameter, token};
pub use class::{Class, Kind, Transform};
pub use digest::{
    Digest, Found, of_field as digests_of_field, of_name as digest_of_name,
    of_path as digest_of_path,
};
pub use etag::{of_mirror, of_origin};
pub use images::{Image, NoImage, PREFIX as IMAGES_PREFIX, Wanted, image};
pub use mirror::{Mirror, MirrorTarget};
pub use preset::{Preset, preset, presets};
pub use rewriter::Rewriter;
pub use upstream::Upstream;
pub use versions::{
    Body, Listing, OwnNames, Refused, Screened, Selector, Unreadable, VersionRules,
};
