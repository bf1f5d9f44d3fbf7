//! The contents of memory: the tables of keys and objects, and the memory budget.
//!
//! Uses `fleet`, `shared` and `interface`. The room holds state, divides memory, and has the write budget
//! (`gate`). The rooms above decide what enters and leaves.
//!
//! | file | has |
//! |---|---|
//! | `tables`, `shards`, `shard` | the RAM tier, objects that wait to be written, the index |
//! | `held` | versions of large objects that are being read |
//! | `budget`, `shares` | the memory budget, and its division |
//! | `gate` | the write budget, and the rule for objects at its end |
//! | `numbers` | numbers and versions that are never given twice |
//! | `ground` | the parts of an engine that depend on no other part |

mod budget;
mod gate;
mod ground;
mod held;
mod numbers;
mod shard;
mod shards;
mod shares;
mod tables;

pub(crate) use self::budget::MemoryBudget;
pub use self::gate::GATE_MEMORY_PART;
pub(crate) use self::gate::Gate;
pub(crate) use self::ground::Ground;
pub(crate) use self::numbers::Numbers;
pub(crate) use self::shard::{Pending, Shard, Stage};
pub(crate) use self::shares::Memory;
pub use self::tables::INDEX_PAGES;
pub(crate) use self::tables::Tables;
