//! Settings and state of the process and of its workers, and their counters.
//!
//! `config` has the settings. `shared` is the state that outlives a reload, `proxy` is the state that all
//! workers share under one set of settings, `local` is the state of one worker. `ledger` has the memory of
//! requests, `entrance` the connections that wait for memory, `turns` the connections that wait for other
//! clients. `outcome`, `counters`, `recent`, `finish` and `log` record results.
//!
//! This room (top-level module) may use `sites` and `access`. It also holds the tables of higher rooms
//! (fills, pools, mirrors, disk reads), because they live as long as the worker or the process. It makes no
//! decisions with them.

pub(crate) mod config;
pub(crate) mod counters;
mod entrance;
pub(crate) mod finish;
pub(crate) mod ledger;
pub(crate) mod local;
pub(crate) mod log;
pub(crate) mod outcome;
pub(crate) mod proxy;
pub(crate) mod recent;
pub(crate) mod request_id;
pub(crate) mod shared;
mod turns;
