//! Rewriting that an operator sets for a site: fields of requests and answers, paths for the origin,
//! redirects. Rules are compiled once; a site without rules has none of this.
//!
//! - **Fields of requests** change on the way to the origin. `Vary` selects by the changed request.
//! - **Fields of answers** change on the way to the client. What is stored is the origin's answer.
//! - **Paths** change on the way to the origin. The key is the URL that the client sent, so the
//!   origin's path depends on nothing else: templates for it know captures and the query alone.

mod fields;
mod template;
mod url;

pub use fields::{Direction, FieldRules};
pub use template::{Template, Use, Values, Variable};
pub use url::{PathRules, Redirects};

/// Everything that is rewritten for one site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewriting {
    /// Fields of requests to the origin.
    pub requests: FieldRules,
    /// Fields of answers to clients.
    pub answers: FieldRules,
    /// Paths at the origin.
    pub paths: PathRules,
    /// Redirects of clients to other URLs.
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
