//! Reads the frozen stores of this folder. `v1` has format version 1, `seeded` also has the extension
//! `seed`, and `rules` was written by an older Foxy, whose caching rules permitted too much. Each crate
//! that tests such a store includes this file as a module of its tests.

/// Path of the store in `folder`, for a crate with this manifest folder.
pub(super) fn path(manifest: &str, folder: &str) -> std::path::PathBuf {
    let golden = std::path::Path::new(manifest).join("../../golden");
    golden.join(folder).join("store.hex")
}

/// Returns the bytes of a store. The first line of `text` contains the length of the store. Every other
/// line contains a position, a number of repetitions, and 32 bytes that are repeated from this position
/// on. Bytes that are in no line are zero.
pub(super) fn unhex(text: &str) -> Vec<u8> {
    let mut lines = text.lines();
    let length = lines.next().unwrap().strip_prefix("length ").unwrap();
    let mut bytes = vec![0; length.parse().unwrap()];
    for line in lines {
        let [at, times, digits] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let part: Vec<u8> = (0..digits.len()).step_by(2).map(digit).collect();
        let at = usize::from_str_radix(at, 16).unwrap();
        let part = part.repeat(times.parse().unwrap());
        bytes[at..at + part.len()].copy_from_slice(&part);
    }
    bytes
}
