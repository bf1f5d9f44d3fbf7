//! Settings of sites: the table of their names and paths, and how a site answers apart from its origins.
//!
//! `table` finds the site of a request, `manner` has redirects, maintenance and error pages, `objects` the
//! rules of build caches, `compress` the compression of stored answers. It may use access. The site itself
//! is `Site` in `state::config`.

pub(crate) mod compress;
pub(crate) mod manner;
pub(crate) mod objects;
pub(crate) mod table;
