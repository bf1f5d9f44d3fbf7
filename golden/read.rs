//! Reads the stores of this folder: `v1`, frozen with format version 1, and `rules`, written under
//! rules that were too lax. Part of the tests of each crate that needs one.

/// Path of the store in `folder`, for a crate with this manifest folder.
pub(super) fn path(manifest: &str, folder: &str) -> std::path::PathBuf {
    let golden = std::path::Path::new(manifest).join("../../golden");
    golden.join(folder).join("store.hex")
}

/// The store's bytes. A line has 32 of them: place, how often they come, bytes. Zeros are left out.
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
