//! Compares every system under the same requests, with the same memory, on the same disk.
//!
//! Conditions: the ISP stream (2.4 million requests, objects of at most 64 KB), 128 MB of memory, 4.5 GB of
//! disk (half of the disk in the Hummingbird paper), and a modelled drive ST118202FC. The tables of the
//! production store are part of the 128 MB; the tables of the other systems take additional memory.

use super::{
    Conditions, Part, Progress, Section, SystemConfig, SystemResult, SystemSpec, bars, draw,
    figure, runs, scaled,
};
use crate::{
    figure::Figure,
    report::{Align, Table},
    reproduce::claim::digits,
    run::{FsKind, Made, RunError, Workload},
};

/// The part that compares every system under the same requests.
pub(in crate::reproduce) const EQUAL: Part = Part {
    id: "all-systems",
    title: "Every system under the same requests",
    about: "This section compares all cache systems and the production store with the same memory, the same \
            disk and the same requests. Nobody published such a comparison.",
    run: all,
};

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut section = Section::default();
    let out = &mut section;
    let config = |spec: SystemSpec, fs| SystemConfig {
        workload: Workload::Made(Made::Isp, 2_400_000),
        ram: 128 << 20,
        cache_mem: 25 << 20,
        disk: 9 << 29,
        life_minutes: 30.0,
        fs,
        ..SystemConfig::hummingbird(spec)
    };
    let mut configs = vec![
        config(SystemSpec::Squid, FsKind::Ffs),
        config(SystemSpec::Squid, FsKind::Async),
        config(SystemSpec::Squid, FsKind::Soft),
        config(SystemSpec::Squid, FsKind::Journal),
    ];
    let others = SystemSpec::ALL
        .into_iter()
        .filter(|s| *s != SystemSpec::Squid);
    configs.extend(others.map(|spec| config(spec, FsKind::Ffs)));
    let configs: Vec<_> = configs.into_iter().map(|c| scaled(c, conditions)).collect();
    let results = runs(conditions, progress, "all systems", &configs)?;
    table(&configs, &results, out);
    let note = "generated ISP stream, 128 MB, 4.5 GB, back to back; modelled ST118202FC";
    draw(
        out,
        (
            "all-systems",
            Figure {
                labels: configs.iter().map(|c| short(&c.label())).collect(),
                series: vec![bars("ours", results.iter().map(|r| r.requests_per_s))],
                ..figure(
                    "All systems under the same requests",
                    note,
                    "",
                    "requests per second",
                    Vec::new(),
                )
            },
        ),
    );
    out.note(
        "How equal it is",
        "Each system has the same memory for contents. Tables need additional memory, except in the \
         production store (foxy), whose budget includes index, write buffers and reserves. The production \
         store and Squid store every miss; Hummingbird and UCFS store every miss while they have free \
         clusters. Hummingbird's lifetimes are measured in the time of its own run.",
    );
    Ok(section)
}

fn table(configs: &[SystemConfig], results: &[SystemResult], out: &mut Section) {
    let mut table = Table::new(&[
        ("system", Align::Left),
        ("requests/s", Align::Right),
        ("disk requests per request", Align::Right),
        ("hit rate, %", Align::Right),
        ("byte hit rate, %", Align::Right),
        ("read, ms", Align::Right),
        ("write, ms", Align::Right),
        ("tables, MB", Align::Right),
    ]);
    for (config, r) in configs.iter().zip(results) {
        table.row([
            config.label(),
            digits(r.requests_per_s),
            digits(r.ios_per_request),
            digits(100.0 * r.hit_ratio),
            digits(100.0 * r.byte_hit_ratio),
            digits(r.read_ms),
            digits(r.write_ms),
            digits(r.table_bytes as f64 / 1e6),
        ]);
    }
    out.tables.push(("All systems".into(), table));
}

/// A short name that fits below a bar.
fn short(label: &str) -> String {
    label
        .replace("squid on ffs-", "squid ")
        .replace("squid on ", "squid ")
        .replace(" on ffs", "")
        .replace("hummingbird", "humming.")
}
