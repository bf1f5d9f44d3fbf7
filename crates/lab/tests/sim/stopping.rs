//! Tests of Ctrl-C: finished results are printed and kept, and a second run of the same command continues
//! after them.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use super::{call, command, parts};

/// Starts the command, sends Ctrl-C when `ready` returns true, and returns exit code, output and error.
fn interrupted(line: &str, file: &Path, ready: impl Fn() -> bool) -> (i32, String, String) {
    let mut command = command(line, file);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    while !ready() {
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    parts(&child.wait_with_output().unwrap())
}

fn interrupt(child: &Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn a_sweep_prints_and_keeps_the_runs_that_were_finished() {
    let folder = tempfile::tempdir().unwrap();
    let resume = folder.path().join("runs");
    let line = "sweep --threads 1 --ops 60000 --ram 1MiB --disk 8MiB --form csv --resume {} \
                --utilisation .50,.51,.52,.53,.54,.55,.56,.57,.58,.59,.60,.61,.62,.63,.64,.65";
    let (code, out, error) = interrupted(line, &resume, || lines(&resume) > 0);
    let kept = std::fs::read_to_string(&resume).unwrap();
    let done = kept.lines().count();
    assert!(code == 130 && (1..16).contains(&done), "{code} {error}");
    assert_eq!(out.lines().count(), 1 + done, "{out}");
    let told = format!("stopped: {done} of 16 runs are finished; the same command goes on there");
    assert!(error.contains(&told), "{error}");
    // The same command computes the remaining results and repeats none.
    let (code, whole, _) = call(line, &resume);
    assert_eq!((code, whole.lines().count(), lines(&resume)), (0, 17, 16));
    assert!(std::fs::read_to_string(&resume).unwrap().starts_with(&kept));
    assert!(whole.starts_with(&out));
}

#[test]
fn a_reproduction_keeps_the_parts_that_were_finished() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("parts/workload.json");
    let line = "reproduce --threads 1 --scale 100 --out {}";
    let (code, out, error) = interrupted(line, folder.path(), || first.exists());
    assert_eq!(code, 130, "{error}");
    assert!(
        error.contains(" parts are finished; the same command goes on"),
        "{error}"
    );
    assert!(out.contains("RAM hits, %") && folder.path().join("index.html").exists());
}

#[test]
fn a_log_counts_up_to_where_reading_was_stopped() {
    /// Ctrl-C is sent after this number of lines was written to the pipe. Together the lines are longer than
    /// the pipe's buffer, so the command has already read many of them.
    const MANY: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("log");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let path = pipe.clone();
    let (read, is_read) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let mut file = std::fs::File::options().write(true).open(path).unwrap();
        // The log has no end. The loop ends when the reader closes the pipe.
        for number in 0u64.. {
            if number == MANY {
                read.send(()).unwrap();
            }
            let line = format!("{number} {} 900\n", number % 50);
            if file.write_all(line.as_bytes()).is_err() {
                return number;
            }
        }
        0
    });
    let line = "size {} --policies lru --sizes 1MiB";
    let (code, out, error) = interrupted(line, &pipe, || is_read.try_recv().is_ok());
    assert_eq!(code, 130, "{error}");
    assert!(out.contains("stopped, the rest was not read"), "{out}");
    assert!(out.contains(" cacheable requests for "), "{out}");
    assert!(writer.join().unwrap() > 0);
}

#[test]
fn measuring_disks_prints_what_was_finished_and_takes_its_file_systems_away() {
    let folder = tempfile::tempdir().unwrap();
    let line = "disks --dir {} --fs ext4 --disk 8MiB --ram 1MiB --memory 0 --ops 20000 \
                --rounds 99 --layout squid,stream --form csv";
    let mut command = command(line, folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    told.read_line(&mut first).unwrap();
    if first.contains("takes root and the tools") {
        // The note is written directly to standard error and not through the test's captured output. So the
        // log shows which part was not tested.
        let note = format!("SKIPPED: Ctrl-C while disks are measured: {first}");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        child.wait().unwrap();
        return;
    }
    assert!(first.starts_with("1 of 198: ext4 "), "{first}");
    interrupt(&child);
    let mut error = String::new();
    told.read_to_string(&mut error).unwrap();
    let (code, out, _) = parts(&child.wait_with_output().unwrap());
    assert_eq!(code, 130, "{error}");
    assert!(error.contains("of 198 runs are finished"), "{error}");
    assert!((2..=3).contains(&out.lines().count()), "{out}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&folder.path().display().to_string()));
}
