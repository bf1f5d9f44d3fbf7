//! fio as a reference for the engine. fio runs directly before or after the engine, on the same disk. If
//! possible, the pattern, the length of operations and the number of operations at a time are also the same.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::system;

/// Measurements of fio for one job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) iops: f64,
    pub(super) bytes_per_second: f64,
    pub(super) p99_us: f64,
    /// CPU time of one operation, microseconds.
    pub(super) cpu_us: f64,
}

/// One job of fio.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    pub(super) file: &'a Path,
    /// Pattern in fio's syntax: `randread`, `write`, ...
    pub(super) pattern: &'static str,
    pub(super) block: u64,
    /// Offsets are multiples of this number of bytes.
    pub(super) align: u64,
    pub(super) depth: u32,
    pub(super) size: u64,
    /// Bytes per second; `None`: as fast as possible.
    pub(super) rate: Option<u64>,
}

/// Runs the jobs together for this many seconds. Returns the results in the order of the jobs.
///
/// # Errors
/// Returned if fio is not installed, or if fio failed. In the second case the error contains fio's message.
pub(super) fn run(jobs: &[Job<'_>], seconds: u32) -> io::Result<Vec<Measured>> {
    let runtime = format!("--runtime={seconds}");
    let mut arguments: Vec<String> = vec!["--output-format=json".into()];
    for (number, job) in jobs.iter().enumerate() {
        arguments.extend([
            format!("--name=job{number}"),
            format!("--filename={}", job.file.display()),
            format!("--rw={}", job.pattern),
            format!("--bs={}", job.block),
            format!("--blockalign={}", job.align),
            format!("--iodepth={}", job.depth),
            format!("--size={}", job.size / job.block * job.block),
            "--ioengine=io_uring".into(),
            "--direct=1".into(),
            "--time_based".into(),
            "--norandommap".into(),
            "--randrepeat=0".into(),
            "--iomem=mmap".into(),
            "--thread".into(),
            runtime.clone(),
        ]);
        arguments.extend(job.rate.map(|rate| format!("--rate={rate}")));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = system::run("fio", &arguments).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "fio is not installed; install it (Debian: apt install fio) to have its results",
        ),
        _ => error,
    })?;
    parse(&text).ok_or_else(|| io::Error::other("fio's output was not understood"))
}

fn parse(text: &str) -> Option<Vec<Measured>> {
    // fio may write notes before its JSON.
    let value: Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    value.get("jobs")?.as_array()?.iter().map(job).collect()
}

fn job(job: &Value) -> Option<Measured> {
    let side = |name: &str| {
        let side = job.get(name)?;
        (side.get("total_ios")?.as_f64()? > 0.0).then_some(side)
    };
    let side = side("read").or_else(|| side("write"))?;
    let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let percent = number(job, "usr_cpu") + number(job, "sys_cpu");
    let iops = number(side, "iops");
    let p99 = side
        .pointer("/clat_ns/percentile/99.000000")
        .and_then(Value::as_f64);
    Some(Measured {
        iops,
        bytes_per_second: number(side, "bw_bytes"),
        p99_us: p99.unwrap_or(0.0) / 1000.0,
        cpu_us: percent / 100.0 / iops.max(1.0) * 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_fio_is_understood() {
        let text = r#"note: something
{"jobs":[{"read":{"total_ios":10,"iops":5000.0,"bw_bytes":1000,
"clat_ns":{"percentile":{"99.000000":250000}}},"write":{"total_ios":0},
"usr_cpu":1.0,"sys_cpu":4.0}]}"#;
        let jobs = parse(text).unwrap();
        assert_eq!(jobs.len(), 1);
        assert!((jobs[0].cpu_us - 10.0).abs() < 1e-9);
        assert!((jobs[0].p99_us - 250.0).abs() < 1e-9);
        assert!(parse("{}").is_none());
    }
}
