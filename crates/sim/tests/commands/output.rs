//! No room for results, or no right to write them: an error that names the file, no panic.

use std::fs::File;

use super::{call, command, parts};

const SMALL: &str = "--ram 1MiB --disk 8MiB --ops 200";

#[test]
fn a_full_standard_output_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut run = command(&format!("run {SMALL} --form json"), "".as_ref());
    let (code, _, error) = parts(&run.stdout(full).output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("standard output: No space left"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut run = command(&format!("run {SMALL} --form json"), "".as_ref());
    let (code, _, error) = parts(&run.stdout(writer).output().unwrap());
    assert_eq!((code, error.as_str()), (0, ""));
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (line, path) in [
        (format!("sweep {SMALL} --resume /dev/full"), "/dev/full"),
        (format!("sweep {SMALL} --resume {{}}/x"), "file/x"),
        (format!("sweep {SMALL} --figure {{}}/x"), "file/x.svg"),
        (
            "reproduce --scale 1000 --parts workload --out {}/x".into(),
            "file/x",
        ),
        (
            "reproduce --scale 1000 --parts workload --out {}".into(),
            "file",
        ),
    ] {
        let (code, _, error) = call(&line, &file);
        assert_eq!(code, 1, "{line}: {error}");
        assert!(error.contains(path), "{line}: {error}");
    }
}
