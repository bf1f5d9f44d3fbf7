//! Tests with bad logs: the message must contain the problem and its position in the log.

use std::io::Write as _;

use super::call;

const LINE: &str = "h - - [01/Jul/1995:00:00:01 -0400] \"GET /a%.gif HTTP/1.0\" 200 500\n";

fn log(lines: usize) -> String {
    (0..lines)
        .map(|n| LINE.replace('%', &n.to_string()))
        .collect()
}

fn gz(text: &str) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

fn zst(text: &str) -> Vec<u8> {
    let mut zst = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zst.write_all(text.as_bytes()).unwrap();
    zst.finish().unwrap()
}

fn half(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len() / 2].to_vec()
}

/// Random bytes, which no log format matches.
fn garbage() -> Vec<u8> {
    let mut rng = foxy_base::Rng::new(8);
    (0..30_000).map(|_| rng.below(256) as u8).collect()
}

/// A case: its name, its log, the exit code, words of the message, and true if results are printed.
struct Case(&'static str, Vec<u8>, i32, &'static [&'static str], bool);

/// Two kinds of logs: logs that can be read to their end and have at most one bad line, and logs in which no
/// line can be read.
fn plain_cases() -> Vec<Case> {
    let mut mixed = log(100).into_bytes();
    mixed.extend(b"\x00\xff not a line\n");
    mixed.extend(log(100).into_bytes());
    let known = &["begins with `", "squid, apache", "name its format"];
    let hello = b"hello\nworld\n".to_vec();
    vec![
        Case("whole", log(200).into_bytes(), 0, &[], true),
        Case("packed", gz(&log(200)), 0, &[], true),
        Case("a bad line", mixed, 0, &[], true),
        Case("empty", Vec::new(), 1, &["the file is empty"], false),
        Case("garbage", garbage(), 1, known, false),
        Case("words", hello, 1, &["begins with `hello`"], false),
    ]
}

/// Logs that cannot be read to their end.
fn broken_cases() -> Vec<Case> {
    let wrong = log(100) + &"nothing like it\n".repeat(2_000);
    let wrong_words = &["of the first 1000 lines", "line 101:"];
    let compact = [foxy_trace::compact::MAGIC, b"\x20\x00\x00".as_slice()].concat();
    let compact = zstd::encode_all(compact.as_slice(), 1).unwrap();
    let record = &["damaged at byte 8 ", "after 0 records", "within a record"];
    let many = log(60_000);
    let breaks = &["breaks off after line ", "at byte "];
    let at_once = gz(&log(9))[..12].to_vec();
    vec![
        Case("cut gz", half(&gz(&many)), 1, breaks, true),
        Case("cut zst", half(&zst(&many)), 1, breaks, true),
        Case("cut at once", at_once, 1, &["error: "], false),
        Case("another format", wrong.into_bytes(), 1, wrong_words, true),
        Case("cut record", compact, 1, record, true),
    ]
}

#[test]
fn every_bad_log_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for Case(name, bytes, code, words, results) in plain_cases().into_iter().chain(broken_cases()) {
        let path = folder.path().join(name.replace(' ', "-"));
        std::fs::write(&path, bytes).unwrap();
        let (got, out, error) = call("size {} --policies lru --sizes 1MiB", &path);
        assert_eq!(got, code, "{name}: {error}");
        for word in words {
            assert!(error.contains(word), "{name}: {word}: {error}");
        }
        let shown = path.display().to_string();
        assert!(code == 0 || error.contains(&shown), "{name}: {error}");
        assert_eq!(out.contains("cacheable requests"), results, "{name}: {out}");
        if name == "a bad line" {
            let told = "1 bad lines\n  line 101: no date in brackets";
            assert!(out.contains(told), "{out}");
        }
        // The command `sim run`, which also reads logs, ends with the same exit code.
        let (got, _, error) = call("run --workload {} --ram 1MiB --disk 1MiB", &path);
        assert_eq!(got, code, "{name}: {error}");
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (path, why) in [
        (folder.path().join("no-such-log"), "No such file"),
        (folder.path().to_owned(), "Is a directory"),
    ] {
        let (code, out, error) = call("size {}", &path);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(
            error.contains(why) && error.contains(&path.display().to_string()),
            "{error}"
        );
    }
}
