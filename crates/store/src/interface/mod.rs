//! Plain types of the crate's interface: objects, options, answers, tickets and figures.
//!
//! The lowest room: it uses no other. Its types know neither disks nor the tables of keys. `Holds`,
//! tickets and counters are shared between threads.
//!
//! | file | has |
//! |---|---|
//! | `object` | a cached object in memory, with its bytes accounted for |
//! | `mark`, `hold`, `spot` | parts of objects and reads: purges compared, versions read, places |
//! | `answers` | what a lookup, a read and a put can answer |
//! | `options` | options of the engine and of a store, and why a store does not open |
//! | `ticket` | waiting until something is durable |
//! | `stats` | counters, and the figures made of them |

mod answers;
mod hold;
mod mark;
mod object;
mod options;
mod spot;
mod stats;
mod ticket;

pub use self::answers::{Admission, DropReason, Lookup, Put, ReadMiss, ReadPlan, StoreId};
pub(crate) use self::hold::{Hold, Holds};
pub(crate) use self::mark::PurgeMark;
pub(crate) use self::object::{Brought, aligned_size, good_size, is_fragment_of, place_mark};
pub use self::object::{MAX_KEY_BYTES, NewObject, Object, ObjectMeta};
pub(crate) use self::options::pending;
pub use self::options::{AdmissionConfig, EngineConfig, OpenError, ReadMode, StoreOptions};
pub(crate) use self::spot::Spot;
pub use self::stats::{
    Duty, EngineCounts, Health, MemoryShares, OneStoreStats, StoreCounts, StoreStats,
};
pub(crate) use self::stats::{EngineCounters, StoreCounters, add};
pub(crate) use self::ticket::TicketPart;
pub use self::ticket::{Durable, SyncTicket};
