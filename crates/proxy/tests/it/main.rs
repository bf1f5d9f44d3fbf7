//! Tests of the proxy on real sockets, from the point of view of clients and origins. All files form one test
//! program. A separate program for each file would take ten times as long to build.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a helper or in an origin's thread fails the test"
)]

mod access;
mod access_rules;
mod access_users;
mod artefacts;
mod bodies;
mod broken;
mod caching;
mod chaos;
mod chaos_ranges;
mod client_certificates;
mod client_logins;
mod common;
mod compression;
mod cookies;
mod cooldown;
mod crowds;
mod disk;
mod ends;
mod figures;
mod hostile_tls;
mod images;
mod in_progress;
mod keys;
mod large;
mod leaders;
mod local_responses;
mod methods;
mod mirror_attacks;
mod mirrors;
mod objects;
mod old_rules;
mod origins;
mod over_tls;
mod parents;
mod parts;
mod private_names;
mod proxy_protocol;
mod purge_load;
mod purge_meets;
mod ranges;
mod rates;
mod renewal;
mod rewriting;
mod rules;
mod sharing;
mod short_answers;
mod shortened;
mod sites;
mod spent;
mod supersede;
mod tls_clients;
mod tls_origin;
mod together;
mod unanswered;
mod uncollapsed;
mod versions;
mod why;
mod wire;
