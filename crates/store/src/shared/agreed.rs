//! The reads and writes of tables on which removals depend: superblocks, removal log, purge journal, open
//! headers. The reads are made before the store is used.
//!
//! Each of these reads must find every removal on the disk, but a block without valid contents counts as
//! never written. So if the device returned the bytes of another place, without an error, the removals in the
//! block would be missed. Tables whose blocks do not contain their own address are therefore read until two
//! reads agree.

use std::io;

use foxy_base::rule;
use foxy_disk::Disk;

/// The number of reads after which a place on the disk counts as unreadable.
const ATTEMPTS: usize = 4;

/// Fills `into` with bytes on which two calls of `read` agree. Makes at most four calls.
///
/// # Errors
/// An error if no two reads agree. It is the error of the last failed read, if a read failed.
pub(crate) fn read_agreed(
    into: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut problem = io::Error::other("no two reads bring the same bytes");
    for _ in 0..ATTEMPTS {
        match read(into) {
            Ok(())
                if rule!(
                    "start: a read is valid if a second one agrees",
                    seen.iter().any(|earlier| earlier == into),
                    true
                ) =>
            {
                return Ok(());
            }
            Ok(()) => seen.push(into.to_vec()),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// Writes blocks durably, and reads them back.
///
/// # Errors
/// An error if the device fails, or if the bytes that are read back differ from the written bytes.
pub(crate) fn write_checked(disk: &dyn Disk, at: u64, bytes: &[u8]) -> io::Result<()> {
    disk.write_at(at, bytes)?;
    disk.flush()?;
    let mut found = vec![0; bytes.len()];
    disk.read_at(at, &mut found)?;
    match found == bytes {
        true => Ok(()),
        false => Err(io::Error::other("what was written is not there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(reads: &[Option<u8>]) -> Option<u8> {
        let mut reads = reads.iter();
        let mut byte = [0];
        let read = read_agreed(&mut byte, |into| {
            let read = reads.next().copied().flatten();
            into[0] = read.ok_or(io::ErrorKind::Other)?;
            Ok(())
        });
        read.ok().map(|()| byte[0])
    }

    #[test]
    fn two_reads_of_four_have_to_agree() {
        assert_eq!(agreed(&[Some(7), Some(7)]), Some(7));
        assert_eq!(agreed(&[Some(1), Some(7), Some(7)]), Some(7));
        assert_eq!(agreed(&[Some(7), None, None, Some(7)]), Some(7));
        assert_eq!(agreed(&[Some(1), Some(2), Some(3), Some(4)]), None);
        assert_eq!(agreed(&[Some(7), None, None, None]), None);
    }
}
