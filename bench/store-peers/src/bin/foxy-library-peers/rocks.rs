//! RocksDB with values in its sorted files or in blob files. It uses direct I/O. It writes no log, because a
//! cache may lose its newest files, and the library Hummingbird may lose them too. It does not compress,
//! because the contents are random.

use rocksdb::{BlockBasedOptions, Cache, DB, Options, WriteOptions};

use crate::Failure;
use crate::engines::{Engine, Kept};

pub(crate) struct Rocks {
    db: DB,
    write: WriteOptions,
    kept: Kept,
}

impl Rocks {
    pub(crate) fn open(folder: &str, disk: u64, memory: u64, blobs: bool) -> Result<Self, Failure> {
        let mut table = BlockBasedOptions::default();
        let cache = Cache::new_lru_cache(usize::try_from(memory / 16 * 9)?)?;
        table.set_block_cache(&cache);
        table.set_cache_index_and_filter_blocks(true);
        table.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_use_direct_reads(true);
        options.set_use_direct_io_for_flush_and_compaction(true);
        options.set_compression_type(rocksdb::DBCompressionType::None);
        options.set_write_buffer_size(usize::try_from(memory / 64)?);
        options.set_max_background_jobs(2);
        // The levels are small, because the device is small. With levels of the usual sizes, deleted
        // data would stay on the device.
        options.set_target_file_size_base(memory / 64);
        options.set_max_bytes_for_level_base(memory / 16);
        options.set_level_compaction_dynamic_level_bytes(true);
        if blobs {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(512);
            options.set_enable_blob_gc(true);
            options.set_blob_gc_age_cutoff(0.5);
        }
        let mut write = WriteOptions::default();
        write.disable_wal(true);
        Ok(Self {
            db: DB::open(&options, format!("{folder}/rocksdb"))?,
            write,
            // Compaction writes the new files before it deletes the old files. If more data were
            // kept, compaction would run out of space.
            kept: Kept::within(if blobs { disk / 3 } else { disk / 2 }),
        })
    }
}

impl Engine for Rocks {
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        if !self.kept.has(name) {
            return Ok(false);
        }
        let found = self.db.get_pinned(name.to_le_bytes())?;
        if let Some(contents) = &found {
            look(contents);
        }
        Ok(found.is_some())
    }

    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure> {
        for gone in self.kept.add(name, contents.len()) {
            self.db.delete_opt(gone.to_le_bytes(), &self.write)?;
        }
        Ok(self.db.put_opt(name.to_le_bytes(), contents, &self.write)?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.db.flush()?;
        crate::files::sync(self.db.path())
    }
}
