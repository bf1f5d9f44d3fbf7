//! Settings and state of the process and of its workers, and their counters.
//!
//! `config` contains the settings. `shared` is the state that remains after a reload. `proxy` is the state
//! that all workers share under one set of settings. `local` is the state of one worker. `ledger` accounts
//! for the memory of requests. `entrance` keeps the connections that wait for memory. `poll_budgets` limits
//! how often the tasks of one client are polled, so that other clients need not wait. `turns` limits the
//! bytes that answers with long bodies send before other tasks are polled. In both, tasks wait in a
//! `round_queue`. `outcome`, `counters`, `recent`, `finish` and `log` record results.
//!
//! This room (top-level module) may use `sites` and `access`. It also contains tables of other rooms (fills,
//! pools, mirrors, disk reads), because these tables exist as long as the worker or the process. The code of
//! this room makes no decisions with these tables.

pub(crate) mod config;
pub(crate) mod counters;
pub(crate) mod entrance;
pub(crate) mod finish;
pub(crate) mod ledger;
pub(crate) mod local;
pub(crate) mod log;
pub(crate) mod outcome;
mod poll_budgets;
pub(crate) mod proxy;
pub(crate) mod recent;
pub(crate) mod request_id;
mod round_queue;
pub(crate) mod shared;
pub(crate) mod turns;
