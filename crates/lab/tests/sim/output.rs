//! Commands that have no space for their results, or no right to write them. They must print an error that
//! contains the file's name, and must not panic.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

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

/// As [`command`], but files may have at most this many bytes (in steps of 512).
fn limited(bytes: u64, line: &str, file: &Path) -> Command {
    let whole = command(line, file);
    let mut shell = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", bytes / 512);
    shell.args(["-c", &script, "sh"]).arg(whole.get_program());
    shell.args(whole.get_args()).stdin(Stdio::null());
    shell
}

#[test]
fn a_disk_that_fills_midway_keeps_what_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let (all, some) = (folder.path().join("all"), folder.path().join("some"));
    let line = format!("sweep {SMALL} --layout stream,buddy,lazy-reads --threads 1 --resume {{}}");
    let (code, wanted, error) = call(&line, &all);
    assert_eq!(code, 0, "{error}");
    let room = std::fs::metadata(&all).unwrap().len() * 3 / 4;
    let (code, _, error) = parts(&limited(room, &line, &some).output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("some: File too large"), "{error}");
    let kept = std::fs::read_to_string(&some).unwrap();
    let whole = kept.lines().filter(|l| l.ends_with('}')).count();
    assert_eq!(whole, 2, "of three runs: {}", kept.len());
    // There is space again. The same command now continues after the results that are already in the file.
    let (code, out, error) = call(&line, &some);
    assert_eq!((code, out), (0, wanted), "{error}");
    let again = std::fs::read_to_string(&some).unwrap();
    let first: Vec<_> = kept.lines().take(2).collect();
    assert!(again.lines().take(2).eq(first));
}

#[test]
fn results_are_printed_though_a_figure_finds_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!("sweep {SMALL} --layout stream,buddy --figure {{}}");
    let figure = folder.path().join("figure");
    let (code, out, error) = parts(&limited(2_048, &line, &figure).output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(out.contains("buddy"), "{out}");
    assert!(error.contains("figure.svg: File too large"), "{error}");
}
