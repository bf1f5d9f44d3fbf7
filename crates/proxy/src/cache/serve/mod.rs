//! Answers from the cache: finding stored objects, and sending them.

pub(crate) mod coded;
pub(crate) mod find;
pub(crate) mod fragments;
pub(crate) mod memory;
pub(crate) mod multipart;
pub(crate) mod part;
