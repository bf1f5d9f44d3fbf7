//! Contents of memory: objects, the tables of keys, and the memory budget.
//!
//! This module uses `fleet`, `shared` and `interface`. It keeps state, divides memory, and applies the
//! write budget (`gate`). The modules above it decide which objects enter and leave memory.
//!
//! | file | has |
//! |---|---|
//! | `object`, `mark` | a cached object with its size; the newest purge with which it was compared |
//! | `answers` | results of a lookup and of a put |
//! | `tables`, `shards`, `shard` | the RAM tier, objects that wait to be written, the index |
//! | `hold`, `held` | versions of large objects that are being read |
//! | `budget`, `shares` | the memory budget, and its division |
//! | `gate` | the write budget, and the rule for objects once it is spent |
//! | `numbers` | numbers and versions that are never used twice |
//! | `engine_core` | the parts of an engine that depend on no other part |

mod answers;
mod budget;
mod engine_core;
mod gate;
mod held;
mod hold;
mod mark;
mod numbers;
mod object;
mod shard;
mod shards;
mod shares;
mod tables;

pub use self::answers::{Lookup, Put};
pub(crate) use self::budget::MemoryBudget;
pub(crate) use self::engine_core::EngineCore;
pub use self::gate::GATE_MEMORY_PART;
pub(crate) use self::gate::Gate;
pub(crate) use self::hold::Holds;
pub(crate) use self::mark::PurgeMark;
pub(crate) use self::numbers::Numbers;
pub(crate) use self::object::{Brought, aligned_size, good_size, is_fragment_of, place_mark};
pub use self::object::{MAX_KEY_BYTES, NewObject, Object, ObjectMeta};
pub(crate) use self::shard::{Pending, Shard, Stage};
pub(crate) use self::shares::Memory;
pub use self::tables::INDEX_PAGES;
pub(crate) use self::tables::Tables;
