//! Settings of sites: the table of their names and paths, and their behaviour that does not depend on
//! origins.
//!
//! `table` finds the site of a request. `local_responses` has redirects, maintenance and error pages.
//! `objects` has the rules of build caches. `compress` has the settings for the compression of stored
//! answers. This room (top-level module) may use `access`. The type of a site is `Site` in `state::config`.

pub(crate) mod compress;
pub(crate) mod local_responses;
pub(crate) mod objects;
pub(crate) mod table;
