//! Opens the files and devices of stores.

use std::path::Path;
use std::sync::Arc;

use foxy_disk::{Disk, FileDisk, OpenOptions};

use super::StartError;
use crate::config::StoreConfig;

/// Opens the file or device of a store.
pub(super) fn open_disk(store: &StoreConfig) -> Result<Arc<dyn Disk>, StartError> {
    // Only the folder of the default store is created. If the operator named the path, a missing folder means
    // that a disk is not mounted.
    if let Some(folder) = store
        .path
        .parent()
        .filter(|folder| !store.named && *folder != Path::new(""))
    {
        make_folder(&store.path, folder)?;
    }
    let metadata = std::fs::metadata(&store.path).ok();
    let holds_something = metadata
        .as_ref()
        .is_some_and(|m| m.is_file() && m.len() > 0);
    // A file with contents is not enlarged here, because it can be something other than a store of Foxy.
    let create_len = (!holds_something).then_some(store.size);
    let disk = FileDisk::open(
        &store.path,
        &OpenOptions {
            create_len,
            ..OpenOptions::default()
        },
    )?;
    // A disk has complete blocks only, so the configured size is rounded down to blocks.
    let configured = store.size - store.size % u64::from(disk.block_bytes());
    if holds_something && store.size_given && disk.len() != configured {
        let (path, has) = (store.path.display(), disk.len());
        let advice = match has < configured {
            true => format!(
                "`foxy store grow {path} --size {configured}` makes it longer and keeps its contents"
            ),
            false => "remove the file to make it anew".to_owned(),
        };
        tracing::warn!(
            has,
            configured,
            "the store {path} keeps the size it has; {advice}"
        );
    }
    let report = disk.report();
    if let Some(reason) = &report.ring_refused {
        tracing::info!(path = %store.path.display(), reason, "io_uring is not available, threads are used");
    }
    if let Some(reason) = &report.direct_refused {
        tracing::info!(path = %store.path.display(), reason, "direct I/O is not available");
    }
    if report.sparse {
        tracing::warn!(path = %store.path.display(), "the file system did not reserve the space");
    }
    Ok(Arc::new(disk))
}

/// Creates the folders of a new store. Only this user can read them, because a cache shows what people read.
fn make_folder(path: &Path, folder: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| StartError::Folder {
            path: path.display().to_string(),
            source,
        })
}
