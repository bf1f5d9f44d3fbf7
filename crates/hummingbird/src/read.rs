//! Reading files (sections 4.1 and 4.2 of the Hummingbird paper).

use std::sync::Arc;

use bytes::Bytes;
use foxy_disk::AlignedBuf;
use foxy_store::{Lookup, Object, ReadMiss, ReadPlan};

use crate::library::{Inner, Name};
use crate::stats::count;
use crate::write::is_nomem;
use crate::{Error, File, Hummingbird};

/// Maximum number of lookups of one read. A lookup is repeated if the file was moved or replaced while it was
/// read from disk.
const MAX_LOOKUPS: u32 = 8;

impl Hummingbird {
    /// Finds a file and lends its contents (section 4.1). If the file is not in memory, it is read from the
    /// disk. The bytes before and after the file on the disk are read too if measurements have shown that
    /// this saves reads. Such a read also brings the files in these bytes into memory. The files of a set lie
    /// together, so they come into memory together (section 4.3). The call blocks until the read has ended.
    ///
    /// # Errors
    /// Returns [`Error::Name`] if the name is empty or too long. Returns [`Error::NotFound`] if there is no
    /// such file, if the file is damaged, or if its disk fails. The library forgets a damaged file, and may
    /// forget a file whose disk fails.
    pub fn read_file(&self, name: &[u8]) -> Result<File, Error> {
        self.read(name, true)
    }

    /// Finds a file and lends its contents, as [`Hummingbird::read_file`] does. If this call reads the file
    /// from a disk, it does not keep the file in memory (section 4.2).
    ///
    /// # Errors
    /// The errors of [`Hummingbird::read_file`].
    pub fn read_nomem_file(&self, name: &[u8]) -> Result<File, Error> {
        self.read(name, false)
    }

    fn read(&self, name: &[u8], keep: bool) -> Result<File, Error> {
        let inner = &self.inner;
        let name = Name::new(name)?;
        let reader = inner.names.read(name.hash);
        let found = inner.find(name, keep).filter(|(f, _)| !inner.is_over(f));
        let lent = found.and_then(|(file, from_memory)| {
            if file.is_large() {
                let (contents, memory) = inner.read_long(&file, keep)?;
                return Some((contents, from_memory && memory));
            }
            Some((file.body().clone(), from_memory))
        });
        let Some((contents, from_memory)) = lent else {
            count(&inner.counters.misses);
            return Err(Error::NotFound);
        };
        count(if from_memory {
            &inner.counters.memory_hits
        } else {
            &inner.counters.disk_hits
        });
        Ok(File::new(contents, from_memory, reader))
    }
}

impl Inner {
    /// Returns the file, and a flag that is true if the file was in memory. For a long file, returns its
    /// head, which describes the parts of the file.
    fn find(&self, name: Name<'_>, keep: bool) -> Option<(Arc<Object>, bool)> {
        let engine = &self.engine;
        for attempt in 0..MAX_LOOKUPS {
            let plan = match engine.reads().lookup(name.hash, name.bytes) {
                Lookup::Memory(file) => return Some((file, true)),
                Lookup::Disk(plan) => plan,
                Lookup::Miss => return None,
            };
            // Only the first lookup widens the read, so that it includes the bytes beside the file. If a
            // widened read fails, a read of only the file may still succeed.
            let plan = if attempt == 0 && keep {
                engine.reads().widen(&plan)
            } else {
                plan
            };
            let keep = |file: &Object| keep && !is_nomem(file);
            let read = self.carry_out(&plan, |buf| {
                engine.reads().finish_read_if(&plan, name.bytes, buf, keep)
            });
            match read {
                Ok(file) => return Some((file, false)),
                Err(ReadMiss::Moved | ReadMiss::Superseded) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Reads the bytes of a plan and passes the buffer to `finish`.
    pub(crate) fn carry_out<T>(
        &self,
        plan: &ReadPlan,
        finish: impl FnOnce(AlignedBuf) -> Result<T, ReadMiss>,
    ) -> Result<T, ReadMiss> {
        let mut buf = AlignedBuf::new(plan.len as usize);
        let Some(disk) = self.engine.fleet().disk(plan.store) else {
            return Err(self
                .engine
                .reads()
                .fail_read(plan, &std::io::ErrorKind::NotFound.into()));
        };
        match disk.read_at(plan.at, &mut buf) {
            Ok(()) => finish(buf),
            Err(error) => Err(self.engine.reads().fail_read(plan, &error)),
        }
    }

    /// The contents of a long file in one piece; `None` if a part no longer exists.
    fn read_long(&self, head: &Arc<Object>, keep: bool) -> Option<(Bytes, bool)> {
        let length = usize::try_from(head.total_length()).ok()?;
        let mut contents = Vec::new();
        contents.try_reserve_exact(length).ok()?;
        let mut from_memory = true;
        for n in 0..head.fragment_count() {
            let (part, memory) = self.part(head, n, keep)?;
            contents.extend_from_slice(part.body());
            from_memory &= memory;
        }
        (contents.len() == length).then(|| (contents.into(), from_memory))
    }

    fn part(&self, head: &Arc<Object>, n: u32, keep: bool) -> Option<(Arc<Object>, bool)> {
        let engine = &self.engine;
        let keep = |part: &Object| keep && !is_nomem(part);
        for _ in 0..MAX_LOOKUPS {
            let plan = match engine.reads().fragment_lookup_patient(head, n) {
                Lookup::Memory(part) => return Some((part, true)),
                Lookup::Disk(plan) => plan,
                Lookup::Miss => return None,
            };
            let read = self.carry_out(&plan, |buf| {
                engine.reads().finish_fragment_if(&plan, head, n, buf, keep)
            });
            match read {
                Ok(part) => return Some((part, false)),
                Err(ReadMiss::Moved) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
