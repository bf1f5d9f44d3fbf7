//! Every system under the same requests, with the same memory, on the same disk.
//!
//! Conditions: the ISP stream (600,000 requests, objects of at most 64 KB), 32 MB of memory,
//! 1.125 GB of disk: an eighth of Hummingbird's; modelled ST118202FC. Squid's kind has its tables
//! beside the memory, the production store inside.

use super::{
    Claim, Comparison, Conditions, Progress, Reproduction, SystemConfig, SystemSpec, bars, figure,
    runs, scaled,
};
use crate::{
    figure::Figure,
    run::{FsKind, Made, RunError, Workload},
};

pub(super) fn all(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Reproduction,
) -> Result<(), RunError> {
    let config = |spec: SystemSpec, fs| SystemConfig {
        workload: Workload::Made(Made::Isp, 600_000),
        ram: 32 << 20,
        cache_mem: 6 << 20,
        disk: 9 << 27,
        life_minutes: 8.0,
        fs,
        ..SystemConfig::hummingbird(spec)
    };
    let mut configs = vec![
        config(SystemSpec::Squid, FsKind::Ufs),
        config(SystemSpec::Squid, FsKind::Async),
        config(SystemSpec::Squid, FsKind::Soft),
        config(SystemSpec::Squid, FsKind::Journal),
    ];
    let others = SystemSpec::ALL
        .into_iter()
        .filter(|s| *s != SystemSpec::Squid);
    configs.extend(others.map(|spec| config(spec, FsKind::Ufs)));
    let configs: Vec<_> = configs.into_iter().map(|c| scaled(c, conditions)).collect();
    let results = runs(conditions, progress, "all systems", &configs)?;
    for (config, r) in configs.iter().zip(&results) {
        let rows = [
            ("requests/s", r.requests_per_s),
            ("disk requests per request", r.ios_per_request),
            ("hit rate", r.hit_ratio),
        ];
        for (what, ours) in rows {
            let what = format!("{}: {what}", config.label());
            let claim = Claim::new("all systems", what, 0.0, ours, Comparison::Order);
            out.claims.push(claim);
        }
    }
    let note = "generated ISP stream, 32 MB, 1.1 GB, back to back; modelled ST118202FC";
    out.figures.push((
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
    ));
    out.systems.extend(configs.into_iter().zip(results));
    Ok(())
}

/// A name that fits below a bar.
fn short(label: &str) -> String {
    label
        .replace("squid on ", "squid ")
        .replace(" on ufs", "")
        .replace("hummingbird", "humming.")
}
