//! The rows of `bench peers` as Markdown, and the part of docs/performance.md that is generated from them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use foxy_base::{Clock, SystemClock};

use super::host::Host;
use super::results::{Results, Row};
use super::servers::Kind;
use super::tools;
use crate::workspace::root;

/// A column: heading, name of the value, decimal places. For a name `a/b`, the column shows both values,
/// separated by a slash.
type Column = (&'static str, &'static str, usize);

struct Table {
    scenario: &'static str,
    title: &'static str,
    columns: &'static [Column],
}

const TABLES: [Table; 9] = [
    Table {
        scenario: "s1",
        title: "S1: hits in memory. 1000 objects of 4 KiB, Zipf 0.6; 100 connections, then 5000/s",
        columns: &[
            ("req/s", "closed rate", 0),
            ("CPU us", "closed cpu", 2),
            ("user", "closed user", 2),
            ("kernel", "closed system", 2),
            ("hit ratio", "closed hit ratio", 4),
            ("CPU us at 5k/s", "open cpu", 1),
            (
                "p50 / p99 / p99.9 ms at 5k/s",
                "open hits p50/open hits p99/open hits p999",
                2,
            ),
            ("memory MB", "resident MB", 0),
            ("load busy", "closed busy", 2),
        ],
    },
    Table {
        scenario: "s2",
        title: "S2: hits on disk. What S3 stored, each object once; 32 connections, then 500/s; \
                memory limit 1 GB with page cache",
        columns: &[
            ("req/s", "closed rate", 0),
            ("CPU us", "closed cpu", 1),
            ("user", "closed user", 1),
            ("kernel", "closed system", 1),
            ("hit ratio", "closed hit ratio", 3),
            ("reads/hit", "reads per hit", 3),
            ("KB/hit", "KB per hit", 1),
            (
                "p50 / p99 / p99.9 ms",
                "closed hits p50/closed hits p99/closed hits p999",
                2,
            ),
            (
                "... at 500/s",
                "open hits p50/open hits p99/open hits p999",
                2,
            ),
            ("load busy", "closed busy", 2),
        ],
    },
    Table {
        scenario: "s3",
        title: "S3: misses, all stored. Mean 8 KB, exponential; 100 connections",
        columns: &[
            ("req/s", "all rate", 0),
            ("MB/s", "all MB/s", 0),
            ("CPU us", "all cpu", 1),
            ("user", "all user", 1),
            ("kernel", "all system", 1),
            (
                "p50 / p99 / p99.9 ms",
                "all misses p50/all misses p99/all misses p999",
                1,
            ),
            ("written/body", "write amplification", 2),
            ("writes/1000", "writes per 1000", 1),
            ("KB/write", "KB per write", 0),
            ("MB empty / full", "memory empty MB/memory full MB", 0),
            ("B/object", "B/object", 0),
            ("load busy", "all busy", 2),
        ],
    },
    Table {
        scenario: "s4",
        title: "S4: Polygraph mix. Document hit ratio 0.4, Zipf 0.6, mean 5 KB; 100 connections, \
                origin without delay",
        columns: &[
            ("req/s", "0 ms rate", 0),
            ("CPU us", "0 ms cpu", 1),
            ("user", "0 ms user", 1),
            ("kernel", "0 ms system", 1),
            (
                "hits p50 / p99 / p99.9 ms",
                "0 ms hits p50/0 ms hits p99/0 ms hits p999",
                2,
            ),
            (
                "misses p50 / p99 / p99.9 ms",
                "0 ms misses p50/0 ms misses p99/0 ms misses p999",
                2,
            ),
            ("hit ratio", "0 ms hit ratio", 3),
            ("memory MB", "resident MB", 0),
            ("load busy", "0 ms busy", 2),
        ],
    },
    Table {
        scenario: "s4",
        title: "S4, origin 100 ms: 100 connections, then 1000",
        columns: &[
            ("req/s, 100", "100 ms rate", 0),
            ("CPU us", "100 ms cpu", 1),
            (
                "hits p50 / p99 / p99.9 ms",
                "100 ms hits p50/100 ms hits p99/100 ms hits p999",
                2,
            ),
            (
                "misses p50 / p99 ms",
                "100 ms misses p50/100 ms misses p99",
                0,
            ),
            ("req/s, 1000", "1000 conns rate", 0),
            ("CPU us ", "1000 conns cpu", 1),
            (
                "hits p50 / p99 / p99.9 ms ",
                "1000 conns hits p50/1000 conns hits p99/1000 conns hits p999",
                2,
            ),
            (
                "misses p50 / p99 ms ",
                "1000 conns misses p50/1000 conns misses p99",
                0,
            ),
            ("load busy", "1000 conns busy", 2),
        ],
    },
    Table {
        scenario: "s5",
        title: "S5: restart after SIGTERM, known objects at 400/s from the start on",
        columns: &[
            ("stop s", "stop s", 2),
            ("first answer s", "stop first answer s", 2),
            ("first hit s", "stop first hit s", 2),
            ("90 % of hits s", "stop 90 % s", 2),
            ("retained", "stop retained", 3),
            ("hits, loading included", "stop hits from the start", 3),
            ("MB read", "stop MB read", 0),
            ("wrong", "wrong", 0),
        ],
    },
    Table {
        scenario: "s5",
        title: "S5: start after SIGKILL, right after storing more objects",
        columns: &[
            ("first answer s", "kill first answer s", 2),
            ("first hit s", "kill first hit s", 2),
            ("90 % of hits s", "kill 90 % s", 2),
            ("retained", "kill retained", 3),
            ("hits, loading included", "kill hits from the start", 3),
            ("of the newest objects", "newest retained", 3),
            ("wrong", "wrong", 0),
        ],
    },
    Table {
        scenario: "s6",
        title: "S6: the mix of S4 at 100 ms, offered load up to saturation (figures)",
        columns: &[
            ("most req/s", "saturation", 0),
            ("response ms at 4k/s", "4000 response ms", 0),
            ("at 8k/s", "8000 response ms", 0),
            ("at 14k/s", "14000 response ms", 0),
            ("origin bytes/byte at 4k/s", "4000 origin share", 2),
            ("at 8k/s ", "8000 origin share", 2),
            ("at 14k/s ", "14000 origin share", 2),
        ],
    },
    Table {
        scenario: "s7",
        title: "S7: the same at 1 s, contents in 128 MiB of memory, on a drive of 120 reads and 120 writes and 20 MB a second each (figures)",
        columns: &[
            ("most req/s", "saturation", 0),
            ("response ms at 50/s", "50 response ms", 0),
            ("at 110/s", "110 response ms", 0),
            ("at 340/s", "340 response ms", 0),
            ("at 1000/s", "1000 response ms", 0),
            ("origin bytes/byte at 50/s", "50 origin share", 2),
            ("at 110/s ", "110 origin share", 2),
            ("at 340/s ", "340 origin share", 2),
            ("at 1000/s ", "1000 origin share", 2),
            ("errors", "errors", 0),
        ],
    },
];

/// For each scenario, the value by which the proxies are sorted.
const ORDERS: [(&str, &str); 4] = [
    ("s1", "closed cpu"),
    ("s2", "closed cpu"),
    ("s3", "all cpu"),
    ("s4", "0 ms cpu"),
];

/// All tables.
pub(super) fn markdown(results: &Results) -> String {
    let mut text = String::new();
    for (what, value) in &results.about {
        let _ = writeln!(text, "- {what}: {value}");
    }
    for table in &TABLES {
        if results.of(table.scenario).next().is_some() {
            let _ = write!(text, "\n**{}**\n\n{}", table.title, rows(results, table));
        }
    }
    let _ = write!(text, "\n{}", orders(results));
    let notes: Vec<String> = results
        .rows
        .iter()
        .flat_map(|c| {
            let of = format!("{} {}", c.scenario, c.proxy);
            let problems = c.problems.iter().map(|p| format!("FAILED: {p}"));
            let all: Vec<_> = c.notes.iter().cloned().chain(problems).collect();
            all.into_iter().map(move |n| format!("- {of}: {n}\n"))
        })
        .collect();
    if !notes.is_empty() {
        let _ = write!(text, "\nNotes:\n\n{}", notes.concat());
    }
    let sum = |name: &str| {
        results
            .rows
            .iter()
            // In S7 the load exceeds the limits of the peers. So errors in rows of S7 are results.
            .filter(|c| c.scenario != "s7")
            .filter_map(|c| c.get(name))
            .fold(0.0, |sum, value| sum + value)
    };
    let _ = write!(
        text,
        "\nErrors in all rows of S1 to S6: {:.0}; wrong bodies: {:.0}.\n",
        sum("errors"),
        sum("wrong")
    );
    text
}

fn rows(results: &Results, table: &Table) -> String {
    let heads: Vec<_> = table.columns.iter().map(|(head, ..)| head.trim()).collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        heads.join(" | "),
        "---:|".repeat(heads.len())
    );
    let mut rows: Vec<&Row> = results.of(table.scenario).collect();
    rows.sort_by_key(|row| row.proxy.parse::<Kind>().ok());
    for row in rows {
        let values = table.columns.iter().map(|column| show(row, column));
        let _ = writeln!(
            text,
            "| {} | {} |",
            name(row),
            values.collect::<Vec<_>>().join(" | ")
        );
    }
    text
}

fn name(row: &Row) -> String {
    let on_disk = matches!(row.scenario.as_str(), "s2" | "s3" | "s5");
    match row.proxy.as_str() {
        "nginx" if on_disk => "nginx (aio)".into(),
        name => name.to_owned(),
    }
}

fn show(row: &Row, (_, names, digits): &Column) -> String {
    // `MB/s` and `B/object` are single names that contain a slash.
    if let Some(value) = row.get(names) {
        return format!("{value:.digits$}");
    }
    let values: Vec<_> = names.split('/').map(|name| row.get(name)).collect();
    if values.iter().all(Option::is_none) {
        return "-".into();
    }
    let texts = values
        .into_iter()
        .map(|v| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}")));
    texts.collect::<Vec<_>>().join(" / ")
}

/// Proxies, ordered by CPU time per request, lowest first.
fn order(results: &Results, scenario: &str, value: &str) -> Vec<(f64, String)> {
    let mut order: Vec<_> = results
        .of(scenario)
        .filter(|c| c.proxy.parse().is_ok_and(Kind::is_proxy))
        .filter_map(|c| Some((c.get(value)?, name(c))))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order
}

fn orders(results: &Results) -> String {
    let mut text = String::new();
    for (scenario, value) in ORDERS {
        let order = order(results, scenario, value);
        if order.len() > 1 {
            let all: Vec<_> = order
                .iter()
                .map(|(v, name)| format!("{name} {v:.1}"))
                .collect();
            let _ = writeln!(
                text,
                "- CPU us per request, {}: {}",
                scenario.to_uppercase(),
                all.join(" < ")
            );
        }
    }
    text
}

/// Compares the order of the proxies in two runs.
pub(super) fn compare_order(results: &Results, previous: &Results) -> String {
    let mut text = String::new();
    for (scenario, value) in ORDERS {
        let names = |of: &Results| -> Vec<String> {
            order(of, scenario, value)
                .into_iter()
                .map(|(_, name)| name)
                .collect()
        };
        let (now, before) = (names(results), names(previous));
        if now.len() > 1 && now.len() == before.len() {
            let same = if now == before {
                "the same order of proxies"
            } else {
                "another order"
            };
            let _ = writeln!(text, "   {scenario}: {same} as in the run before");
        }
    }
    text
}

/// One line about a row, printed during the run.
pub(super) fn line(row: &Row) -> String {
    let shown = ["closed", "all", "0 ms", "1000 conns"]
        .iter()
        .filter_map(|part| {
            let rate = row.get(&format!("{part} rate"))?;
            let cpu = row.get(&format!("{part} cpu")).unwrap_or(0.0);
            Some(format!("{part} {rate:.0}/s {cpu:.1} us"))
        });
    let more = [
        "stop retained",
        "kill retained",
        "newest retained",
        "saturation",
    ];
    let more = more
        .iter()
        .filter_map(|n| Some(format!("{n} {:.3}", row.get(n)?)));
    let all: Vec<_> = shown.chain(more).collect();
    let mut text = format!("{} {}: {}", row.scenario, name(row), all.join(", "));
    for problem in &row.problems {
        let _ = write!(text, "; FAILED: {problem}");
    }
    text
}

/// Collects machine, versions and settings.
pub(super) fn about(host: &Host, kinds: &[Kind], quick: bool) -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = read("/proc/meminfo");
    let kib = memory
        .lines()
        .next()
        .and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok());
    let release = read("/proc/sys/kernel/osrelease");
    let versions: Vec<_> = kinds
        .iter()
        .filter(|k| !matches!(k, Kind::Floor | Kind::FoxyReverse))
        .map(|k| format!("{k} {}", tools::version(*k)))
        .collect();
    let seconds = u64::try_from(SystemClock::default().wall().secs()).unwrap_or(0);
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    let length = if quick {
        "quick: results mean little"
    } else {
        "full"
    };
    [
        ("date", date),
        (
            "machine",
            format!(
                "{model}, {cores} cores, {:.0} GB; Linux {}; disk {}",
                kib.unwrap_or(0.0) / 1e6,
                release.trim(),
                host.device_name()
            ),
        ),
        ("versions", versions.join(", ")),
        ("lengths", length.to_owned()),
        (
            "load average at start",
            read("/proc/loadavg").trim().to_owned(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

const BEGIN: &str = "<!-- bench peers: begin -->";
const END: &str = "<!-- bench peers: end -->";

/// Replaces the text between the markers in docs/performance.md.
pub(super) fn write_docs(text: &str) -> Result<(), String> {
    let path = root().join("docs/performance.md");
    let shown = path.display();
    let old = fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
    let new = between(&old, text).ok_or_else(|| format!("{shown}: no `{BEGIN}` and `{END}`"))?;
    fs::write(&path, new).map_err(|e| format!("{shown}: {e}"))
}

fn between(old: &str, text: &str) -> Option<String> {
    let (head, rest) = old.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{}\n{END}{tail}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_markers_changes() {
        let old = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let want = format!("a\n{BEGIN}\nnew\n{END}\nb\n");
        assert_eq!(between(&old, "new\n"), Some(want));
        assert_eq!(between("a", "new"), None);
    }

    #[test]
    fn rows_and_orders() {
        let mut results = Results::default();
        for (kind, cpu) in [(Kind::Nginx, 10.0), (Kind::Foxy, 5.0), (Kind::Floor, 4.0)] {
            let mut row = Row::new("s1", kind);
            row.set("closed cpu", cpu);
            row.set("open hits p50", 0.25);
            results.rows.push(row);
        }
        let text = markdown(&results);
        assert!(
            text.contains("| foxy | - | 5.00 |") && text.contains("0.25 / - / -"),
            "{text}"
        );
        assert!(text.contains("S1: foxy 5.0 < nginx 10.0"), "{text}");
        let same = compare_order(&results, &results);
        assert!(same.contains("s1: the same order"), "{same}");
    }
}
