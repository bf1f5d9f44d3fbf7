//! Hummingbird: a file system for caching proxies, as a library over Foxy's store.
//!
//! The interface is that of Gabber, Shriver and Stein's Hummingbird (1999 draft; sections below are
//! its sections): a program links it in, hands over whole files under names that are any bytes, says
//! which of them belong together, and gets them back by pointer. It need not recover everything after
//! a crash (section 3), only never give a file's older or other contents. `docs/hummingbird.md` has
//! the table of calls with their tests, and what differs from the paper.
//!
//! Everything below the calls is [`foxy_store`]: there is no second write path, index or recovery
//! here. Clusters, packing and the daemons of sections 4.3 and 4.5 are the store's locality buffers,
//! clusters and writer; meta-data (4.4) is its index; recovery (4.6) is its recovery.
//!
//! All calls may be made from any number of threads. A call that needs the disk blocks its thread.
//!
//! ```
//! use foxy_hummingbird::{Config, Hummingbird};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("cache");
//! let mut config = Config::on(path, 16 << 20);
//! config.memory_bytes = 16 << 20;
//! let fs = Hummingbird::open(&config).unwrap();
//! fs.write_file(b"/index.html", "<img src=logo.png>").unwrap();
//! fs.write_file(b"/logo.png", vec![0; 4000]).unwrap();
//! fs.collocate_files(b"/index.html", b"/logo.png").unwrap();
//! assert_eq!(&fs.read_file(b"/logo.png").unwrap()[..4], &[0; 4]);
//! assert!(fs.close());
//! ```

mod checkpoint;
mod config;
mod driver;
mod error;
mod file;
mod hints;
mod library;
mod long;
mod read;
mod stats;
mod write;

pub use checkpoint::Checkpoint;
pub use config::{Config, DiskPath};
pub use driver::Driver;
pub use error::Error;
pub use file::File;
pub use hints::Hint;
pub use library::Hummingbird;
pub use stats::Statistics;

/// Longest name of a file, in bytes.
pub const MAX_NAME_BYTES: usize = foxy_store::MAX_KEY_BYTES;
