//! Rewriting that an operator configures for a site: fields of requests and answers, paths for the origin,
//! redirects. Rules are compiled once; a site without rules has no rewriting code to run.
//!
//! - **Fields of requests** change on the way to the origin. The changed fields also select among variants
//!   (`Vary`).
//! - **Fields of answers** change on the way to the client. The origin's answer is stored without these
//!   changes.
//! - **Paths** change on the way to the origin. The cache key is the URL that the client sent, so the
//!   origin's path must depend only on this URL. Templates of paths have only captures and the query as
//!   variables.

mod fields;
mod template;
mod url;

pub use fields::{Direction, FieldRules};
pub use template::{Template, Use, Values, Variable};
pub use url::{PathRules, Redirects};

/// All rewriting for one site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewriting {
    /// The changes to the fields of requests to the origin.
    pub requests: FieldRules,
    /// The changes to the fields of answers to clients.
    pub answers: FieldRules,
    /// Rules for paths at the origin.
    pub paths: PathRules,
    /// The redirects of clients to other URLs.
    pub redirects: Redirects,
}

impl Rewriting {
    /// True if nothing is rewritten.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if some rule depends on the path of a request: a path rule or a redirect.
    #[must_use]
    pub fn reads_paths(&self) -> bool {
        !self.paths.is_empty() || !self.redirects.is_empty()
    }
}
