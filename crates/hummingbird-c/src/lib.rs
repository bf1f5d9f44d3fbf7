//! The C interface of [`foxy_hummingbird`]. `include/hummingbird.h` describes it; here is only the
//! boundary: pointers become slices, results become codes, and no panic leaves.
//!
//! Every function makes these demands on its caller, and the SAFETY comments below rely on them: `fs`
//! is NULL or a handle of `hummingbird_open` that was not closed; a name or buffer points to as many
//! readable bytes as the call says; a place for a result is NULL or writable.

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
