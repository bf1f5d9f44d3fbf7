//! The C interface of [`foxy_hummingbird`]. `include/hummingbird.h` describes it. This crate is only the
//! boundary: it converts pointers to slices, and results and panics to codes.
//!
//! The caller of a function must ensure the following conditions. The SAFETY comments of this crate rely on
//! them. `fs` is NULL, or a handle of `hummingbird_open` that was not closed. A name or buffer points to as
//! many readable bytes as the call states. A pointer to a result is NULL or writable.

mod calls;
mod handle;
mod outcome;
mod owned;
mod structs;

pub use calls::{
    hummingbird_begin_checkpoint, hummingbird_checkpoint, hummingbird_close,
    hummingbird_collocate_files, hummingbird_config_init, hummingbird_delete_file,
    hummingbird_done_read_file, hummingbird_get_statistics, hummingbird_last_error,
    hummingbird_open, hummingbird_read_file, hummingbird_read_nomem_file,
    hummingbird_update_cluster_lifetime, hummingbird_update_file_lifetime, hummingbird_write_file,
    hummingbird_write_file_beside, hummingbird_write_nomem_file,
};
