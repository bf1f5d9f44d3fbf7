//! The cache directives of a response. They come from Cache-Control (RFC 9111 section 5.2.2, parsed
//! tolerantly), from a targeted field (RFC 9213, parsed strictly), or from Surrogate-Control.

use foxy_base::{Fields, rule, values};

use crate::config::Config;
use crate::request::lowest;
use crate::surrogate;
use crate::targeted;
use crate::text::{Argument, Directive, directives};

/// The field from which the directives were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlSource {
    /// Cache-Control; the field may be absent.
    #[default]
    CacheControl,
    /// A targeted field. Cache-Control and Expires are ignored in this case.
    Targeted,
    /// Surrogate-Control. Cache-Control and Expires are ignored in this case.
    Surrogate,
}

/// The response directives that concern a shared cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are directives, each present or not"
)]
pub struct ResponseControl {
    /// The source of these directives.
    pub source: ControlSource,
    /// `no-store`
    pub no_store: bool,
    /// `no-cache` without a list.
    pub no_cache: bool,
    /// `private` without a list.
    pub private: bool,
    /// `no-cache="..."` with a list.
    pub no_cache_listed: bool,
    /// `private="..."` with a list.
    pub private_listed: bool,
    /// `public`
    pub public: bool,
    /// `must-revalidate`
    pub must_revalidate: bool,
    /// `proxy-revalidate`
    pub proxy_revalidate: bool,
    /// `must-understand`
    pub must_understand: bool,
    /// `immutable`
    pub immutable: bool,
    /// `max-age` in seconds; a malformed value counts as 0.
    pub max_age: Option<u32>,
    /// `s-maxage` in seconds; a malformed value counts as 0.
    pub s_maxage: Option<u32>,
    /// `stale-while-revalidate` in seconds; a malformed value is ignored.
    pub stale_while_revalidate: Option<u32>,
    /// `stale-if-error` in seconds; a malformed value is ignored.
    pub stale_if_error: Option<u32>,
}

impl ResponseControl {
    /// The directives that apply to a response. They come from the first valid targeted field. Without a
    /// valid targeted field, they come from Surrogate-Control (if configured), or else from Cache-Control.
    pub fn of<F: Fields + ?Sized>(fields: &F, config: &Config) -> Self {
        for name in &config.targeted {
            if let Some(control) = targeted::read(fields, name) {
                return control;
            }
        }
        if config.surrogate_control
            && let Some(control) = surrogate::read(fields, &config.surrogate_token)
        {
            return control;
        }
        Self::read(fields, "Cache-Control")
    }

    /// Parses all lines of the field `name` tolerantly.
    pub fn read<F: Fields + ?Sized>(fields: &F, name: &str) -> Self {
        let mut control = Self::default();
        for d in values(fields, name).flat_map(directives) {
            control.add(&d);
        }
        control
    }

    /// Adds one directive. If a lifetime is repeated, the lowest value counts. RFC 9111 section 4.2.1 permits
    /// the use of the first value, and the lowest value is never longer than the first value. A malformed
    /// lifetime counts as zero, so the response is stale.
    pub(crate) fn add(&mut self, d: &Directive<'_>) {
        let seconds = d.argument.seconds();
        let or_stale = rule!(
            "freshness: a lifetime that cannot be read is none",
            Some(seconds.unwrap_or(0)),
            seconds
        );
        match d.name.len() {
            6 if d.is("public") => self.public = true,
            7 if d.is("private") && has_list(d) => self.private_listed = true,
            7 if d.is("private") => self.private = true,
            7 if d.is("max-age") => self.max_age = lowest(self.max_age, or_stale),
            8 if d.is("no-store") => self.no_store = true,
            8 if d.is("no-cache") && has_list(d) => self.no_cache_listed = true,
            8 if d.is("no-cache") => self.no_cache = true,
            8 if d.is("s-maxage") => self.s_maxage = lowest(self.s_maxage, or_stale),
            9 if d.is("immutable") => self.immutable = true,
            15 if d.is("must-revalidate") => self.must_revalidate = true,
            15 if d.is("must-understand") => self.must_understand = true,
            16 if d.is("proxy-revalidate") => self.proxy_revalidate = true,
            14 if d.is("stale-if-error") => {
                self.stale_if_error = lowest(self.stale_if_error, seconds);
            }
            22 if d.is("stale-while-revalidate") => {
                self.stale_while_revalidate = lowest(self.stale_while_revalidate, seconds);
            }
            _ => {}
        }
    }
}

/// True if a directive names at least one field. An empty or malformed list counts as no list, so the
/// directive covers the complete response.
fn has_list(d: &Directive<'_>) -> bool {
    listed_names(d.argument).next().is_some()
}

fn listed_names(argument: Argument<'_>) -> impl Iterator<Item = &[u8]> {
    let text = argument.text().unwrap_or_default();
    text.split(|b| *b == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

/// Calls a function for each name that private="..." or no-cache="..." of a response lists.
pub(crate) fn for_each_listed<'a, F: Fields + ?Sized>(
    fields: &'a F,
    mut visit: impl FnMut(&'a [u8]),
) {
    values(fields, "Cache-Control")
        .flat_map(directives)
        .filter(|d| d.is("private") || d.is("no-cache"))
        .for_each(|d| listed_names(d.argument).for_each(&mut visit));
}

#[cfg(test)]
mod tests;
