//! Reads the program's own file in advance. Otherwise the program would wait for the disk whenever it uses a
//! part of the file that is not in memory yet.

use std::fs::File;

use rustix::fs::{Advice, fadvise};

/// Largest number of bytes that the system reads in advance for one call.
const STEP_BYTES: u64 = 512 << 10;

/// Asks the system to read the complete mapped part of the program's file in order, while the program runs.
/// Otherwise, after a start of the machine, the program would wait for the disk whenever it uses a part for
/// the first time. Nothing happens on systems that do not support this.
pub fn read_ahead() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let (Some(end), Ok(program)) = (mapped_end(&maps), File::open("/proc/self/exe")) else {
        return;
    };
    for from in (0..end).step_by(STEP_BYTES as usize) {
        let step = std::num::NonZeroU64::new(STEP_BYTES.min(end - from));
        if fadvise(&program, from, step, Advice::WillNeed).is_err() {
            return;
        }
    }
}

/// Returns the end of the mapped part of the program's file. The program's file is the first mapped file.
fn mapped_end(maps: &str) -> Option<u64> {
    let mut lines = maps.lines().filter_map(mapping).peekable();
    let (program, _) = *lines.peek()?;
    lines
        .filter_map(|(name, end)| (name == program).then_some(end))
        .max()
}

/// Returns the name of the file and the end of the mapping in the file, from a line of `/proc/self/maps`.
fn mapping(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let (start, end) = words.next()?.split_once('-')?;
    let offset = hex(words.nth(1)?)?;
    let name = words.nth(2)?;
    let len = hex(end)?.checked_sub(hex(start)?)?;
    Some((name, offset.checked_add(len)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_mappings_tell_how_much_of_it_is_used() {
        let maps = "\
            1000-3000 r--p 00000000 08:01 7 /bin/foxy\n\
            3000-9000 r-xp 00002000 08:01 7 /bin/foxy\n\
            9000-a000 rw-p 00000000 00:00 0\n\
            b000-ff000 r-xp 00000000 08:01 9 /lib/libc.so.6\n";
        assert_eq!(mapped_end(maps), Some(0x8000));
        assert_eq!(mapped_end("nonsense\n"), None);
        assert_eq!(mapped_end(""), None);
    }

    #[test]
    fn reading_ahead_is_harmless() {
        read_ahead();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if let Some(end) = mapped_end(&maps) {
            let len = std::fs::metadata("/proc/self/exe").map(|m| m.len());
            assert!(len.is_ok_and(|len| end > 4096 && end <= len + 4096));
        }
    }
}
