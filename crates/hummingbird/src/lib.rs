//! Hummingbird: a file system for caching proxies, as a library over Foxy's store.
//!
//! The interface is that of Gabber, Shriver and Stein's Hummingbird (1999 draft). All section numbers in this
//! crate are those of that paper. A program links the library and stores complete files under names of any
//! bytes. It gives hints about files that belong together. A read returns a pointer to the contents of a
//! file. After a crash the library need not recover all files (section 3). But it must never return older
//! contents of a file, or contents of another file. `docs/hummingbird.md` has the table of calls with their
//! tests, and lists the differences from the paper.
//!
//! The calls only translate: [`foxy_store`] does all the work. There is no second write path, index or
//! recovery in this crate. The store's locality buffers, clusters and writer replace the clusters, the
//! packing and the daemons of the paper (sections 4.3 and 4.5). The store's index replaces the paper's
//! meta-data (section 4.4), and the store's recovery replaces the recovery of section 4.6.
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
