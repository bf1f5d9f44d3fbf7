//! SQLite with one table of blobs and a transaction for each thousand writes. The end of a transaction does
//! not wait for the disk, because a cache may lose its newest files, and the library Hummingbird may lose
//! them too.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, params};

use crate::Failure;
use crate::engines::{Engine, Kept};

/// Number of writes in a transaction.
const TOGETHER: u32 = 1000;

pub(crate) struct Sqlite {
    db: Connection,
    folder: PathBuf,
    kept: Kept,
    open: u32,
}

impl Sqlite {
    pub(crate) fn open(folder: &str, disk: u64, memory: u64) -> Result<Self, Failure> {
        let folder = PathBuf::from(folder);
        let db = Connection::open(folder.join("sqlite"))?;
        db.execute_batch(&format!(
            "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; \
             PRAGMA cache_size=-{}; \
             CREATE TABLE files (name INTEGER PRIMARY KEY, contents BLOB NOT NULL);",
            memory / 8 / 1024
        ))?;
        Ok(Self {
            db,
            folder,
            kept: Kept::within(disk / 10 * 7),
            open: 0,
        })
    }
}

impl Engine for Sqlite {
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        if !self.kept.has(name) {
            return Ok(false);
        }
        let mut find = self
            .db
            .prepare_cached("SELECT contents FROM files WHERE name = ?1")?;
        let found = find.query_row([name as i64], |row| {
            look(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional()?.is_some())
    }

    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure> {
        if self.open == 0 {
            self.db.execute_batch("BEGIN")?;
        }
        for gone in self.kept.add(name, contents.len()) {
            self.db
                .prepare_cached("DELETE FROM files WHERE name = ?1")?
                .execute([gone as i64])?;
        }
        self.db
            .prepare_cached("INSERT OR REPLACE INTO files VALUES (?1, ?2)")?
            .execute(params![name as i64, contents])?;
        self.open += 1;
        if self.open == TOGETHER {
            self.open = 0;
            self.db.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if self.open > 0 {
            self.db.execute_batch("COMMIT")?;
        }
        self.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        crate::files::sync(&self.folder)
    }
}
