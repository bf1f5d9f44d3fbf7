//! The raw device, measured by fio for comparison with S2 (hits on disk) and S3 (stored misses). No cache on
//! this device can be faster.

use std::path::Path;

use serde_json::Value;

use super::super::host::Core;
use super::super::load::{Run, number, report_of};
use super::super::results::Row;
use super::super::servers::Kind;
use super::{Keep, Scenario};
use foxy_lab::kit::peers::install;

pub(super) fn run(run: &Run, scenarios: &[Scenario], keep: Keep<'_>) -> Result<(), String> {
    let file = run.host.scratch.join("device");
    for scenario in scenarios {
        let mut row = Row::new(scenario.name(), Kind::Device);
        let (part, side) = match scenario {
            Scenario::S2 => ("closed", "read"),
            _ => ("all", "write"),
        };
        let report = fio(run, &file, side)?;
        let job = &report["jobs"][0];
        let rate = number(job, &[side, "iops"]).unwrap_or(0.0);
        let cpu =
            number(job, &["usr_cpu"]).unwrap_or(0.0) + number(job, &["sys_cpu"]).unwrap_or(0.0);
        row.set(&format!("{part} rate"), rate);
        row.set(
            &format!("{part} MB/s"),
            number(job, &[side, "bw_bytes"]).unwrap_or(0.0) / 1e6,
        );
        row.set(&format!("{part} cpu"), cpu * 1e4 / rate.max(1.0));
        let group = if side == "read" { "hits" } else { "misses" };
        for (name, field) in [
            ("p50", "50.000000"),
            ("p99", "99.000000"),
            ("p999", "99.900000"),
        ] {
            let nanos = number(job, &[side, "clat_ns", "percentile", field]).unwrap_or(0.0);
            row.set(&format!("{part} {group} {name}"), nanos / 1e6);
        }
        row.note(if side == "read" {
            "fio: random reads of 12 KB, 32 in flight"
        } else {
            "fio: writes of 1 MiB in sequence, 2 in flight"
        });
        keep(row)?;
    }
    let _ = std::fs::remove_file(file);
    Ok(())
}

fn fio(run: &Run, file: &Path, side: &str) -> Result<Value, String> {
    let shape: &[&str] = if side == "read" {
        &[
            "--rw=randread",
            "--bs=12k",
            "--blockalign=4k",
            "--iodepth=32",
        ]
    } else {
        &["--rw=write", "--bs=1m", "--iodepth=2"]
    };
    let mut command = run
        .host
        .group("tools")?
        .command(Core::Proxy, &install::path("fio")?);
    command
        .args([
            "--name=device",
            "--size=2g",
            "--direct=1",
            "--ioengine=io_uring",
            "--time_based",
        ])
        .arg(format!("--runtime={}", run.lengths.closed.as_secs().max(1)))
        .arg(format!("--filename={}", file.display()))
        .args(["--output-format=json", "--fallocate=none"])
        .args(shape);
    report_of(&mut command)
}
