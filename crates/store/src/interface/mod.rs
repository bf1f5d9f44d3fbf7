//! Plain types of the crate's interface: options, reads, tickets and figures.
//!
//! This is the lowest module: it uses no other module. Its types refer to neither disks nor objects. Tickets
//! and counters are shared between threads.
//!
//! | file | has |
//! |---|---|
//! | `answers` | reads and their possible results, the result of storing |
//! | `spot` | the place of a record, as the index stores it |
//! | `options` | options of the engine and of a store, and the reasons why a store does not open |
//! | `ticket` | the handle by which a caller waits until something is durable |
//! | `stats` | counters, and the figures for operators that are made of them |

mod answers;
mod options;
mod spot;
mod stats;
mod ticket;

pub use self::answers::{Admission, DropReason, ReadMiss, ReadPlan, StoreId};
pub(crate) use self::options::pending;
pub use self::options::{AdmissionConfig, EngineConfig, OpenError, ReadMode, StoreOptions};
pub(crate) use self::spot::Spot;
pub use self::stats::{
    Duty, EngineCounts, Health, MemoryShares, OneStoreStats, StoreCounts, StoreStats,
};
pub(crate) use self::stats::{EngineCounters, StoreCounters, add};
pub(crate) use self::ticket::TicketPart;
pub use self::ticket::{Durable, SyncTicket};
