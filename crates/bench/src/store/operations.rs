//! The stream of the operations URL-read, URL-write and URL-delete for `bench store files`.

use std::collections::HashMap;

use foxy_trace::generate::{SessionConfig, Sessions};
use foxy_trace::{Access, ByteLru};

/// Longest answer in bytes. Longer answers are left out.
const LONGEST: u64 = 200 << 10;

/// Operations of a cache on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Delete,
}

/// One operation, with an object's number and length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) object: u64,
    pub(super) size: u64,
}

/// Generates the stream: clients visit pages, and a cache keeps objects in 16 MB of memory and on a disk of
/// `disk` bytes (both LRU). The stream contains the operations on the disk. The engine groups objects by
/// page, as in the papers. A modified object keeps its first length, so that all stores handle the same
/// bytes.
pub(super) fn operations(requests: u64, disk: u64) -> Vec<Operation> {
    let config = SessionConfig {
        requests,
        ..SessionConfig::isp()
    };
    let (mut memory, mut level) = (ByteLru::new(16 << 20), ByteLru::new(disk));
    let (mut all, mut sizes) = (Vec::new(), HashMap::new());
    for request in Sessions::new(config, 4).filter(|r| r.size <= LONGEST) {
        let object = request.object;
        let size = *sizes.entry(object).or_insert(request.size.max(1));
        if memory.access(object, size) == Access::Hit {
            continue;
        }
        let mut gone = Vec::new();
        let found = level.access_with(object, size, |object, size| gone.push((object, size)));
        all.extend(gone.into_iter().map(|(object, size)| Operation {
            kind: Kind::Delete,
            object,
            size,
        }));
        let kind = if found == Access::Hit {
            Kind::Read
        } else {
            Kind::Write
        };
        all.push(Operation { kind, object, size });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_stream_reads_and_deletes_only_what_is_there_and_stays_within_the_disk() {
        let (mut there, mut used) = (HashSet::new(), 0);
        let all = operations(20_000, 32 << 20);
        for operation in &all {
            match operation.kind {
                Kind::Read => assert!(there.contains(&operation.object)),
                Kind::Write => {
                    used += operation.size;
                    assert!(there.insert(operation.object));
                }
                Kind::Delete => {
                    used -= operation.size;
                    assert!(there.remove(&operation.object));
                }
            }
            assert!(used <= 32 << 20);
        }
        for kind in [Kind::Read, Kind::Write, Kind::Delete] {
            let count = all.iter().filter(|o| o.kind == kind).count();
            assert!(count > 100, "{count} of {kind:?}");
        }
    }
}
