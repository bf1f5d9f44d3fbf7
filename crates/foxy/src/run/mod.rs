//! Starts the threads of Foxy from a configuration, and ends them.
//!
//! [`start`] opens stores, binds listeners, and starts one thread for each worker, for each store, for the
//! admin listener and for the access log. Foxy serves no request before every store can answer. After a start
//! that fails, nothing is left running.

mod background;
mod certificates;
mod error;
mod keeper;
mod limits;
mod local;
mod notify;
mod passed;
mod preflight;
mod reloadable;
mod resident;
mod roster;
mod running;
mod start;
mod stores;
mod sweeper;
pub(crate) mod token;
mod workers;

pub use error::StartError;
pub use keeper::Absent;
pub(crate) use keeper::{KeeperError, StoreKeeper};
pub(crate) use limits::raise_open_files;
pub(crate) use notify::notify;
pub use passed::Passed;
pub(crate) use preflight::{Finding, examine};
pub(crate) use reloadable::ReloadRequest;
pub use reloadable::Reloaded;
pub(crate) use running::Addresses;
pub use running::Running;
pub use start::{Parts, start};
