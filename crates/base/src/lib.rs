//! Basic types of all crates of Foxy: sizes, time, hashes, seeds and header fields.
//!
//! This crate does no I/O except in [`SystemClock`], which reads the time. The other crates get
//! time, randomness and fields through these types, so that a test can control all of them.

mod budget;
mod byte_size;
mod clock;
mod field_block;
mod fields;
mod hash;
mod mutants;
mod pattern;
mod rng;
pub mod settings;

pub use budget::Budget;
pub use byte_size::{ByteSize, ByteSizeError};
pub use clock::{Clock, ManualClock, MonoTime, SystemClock, WallTime};
pub use field_block::{FieldBlock, FieldBlockBuilder, FieldBlockError};
pub use fields::{Fields, FieldsIter, eq_name, first, tokens, values};
pub use hash::{KeyHash, KeySeed, crc32c, crc32c_append, hash64, key_hash};
#[cfg(feature = "mutants")]
pub use mutants::Mutant;
pub use pattern::Pattern;
pub use rng::Rng;
