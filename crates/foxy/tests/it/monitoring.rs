//! Tests of the alert rules and the dashboard: all their queries use metrics, labels and values that a
//! running Foxy exports.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::clients::process::tool;
use crate::common::Watched;

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];
/// Metrics that Prometheus adds.
const PROMETHEUS: [&str; 1] = ["up"];

/// Metric names, each with the values of its labels.
type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn file(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    std::fs::read_to_string(root.unwrap().join("dist").join(name)).unwrap()
}

/// Returns the metrics page of a Foxy with a store, a log and a site.
fn page() -> String {
    Watched::start(&["--origin", "http://127.0.0.1:1"]).page("/metrics")
}

/// Parses a page in the text format of Prometheus. Metrics without samples count too.
fn exported(page: &str) -> Exported {
    let mut all = Exported::new();
    for line in page.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            all.entry(family.split(' ').next().unwrap().to_owned())
                .or_default();
        } else if let Some((name, labels)) = line.split_once('{') {
            let metric = all.entry(name.to_owned()).or_default();
            for (label, _, value) in matchers(labels.split('}').next().unwrap()) {
                metric.entry(label).or_default().insert(value);
            }
        }
    }
    all
}

/// Returns label, operator and value of each `label="value"` in a list.
fn matchers(list: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut rest = list;
    while let Some((before, after)) = rest.split_once('"') {
        let (value, next) = after.split_once('"').unwrap();
        let before = before.trim_start_matches([',', ' ']);
        let label: String = before
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let operator = before[label.len()..].trim().to_owned();
        found.push((label, operator, value.to_owned()));
        rest = next;
    }
    found
}

/// Words and functions of the query language that our queries use.
const LANGUAGE: [&str; 11] = [
    "sum",
    "by",
    "rate",
    "increase",
    "histogram_quantile",
    "time",
    "le",
    "label_values",
    "on",
    "and",
    "or",
];

/// Checks a query. Returns the number of metrics that it names.
fn judge(query: &str, exported: &Exported) -> Result<usize, String> {
    let mut metrics = 0;
    let mut chars = query.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        match c {
            // Skips ranges such as [5m].
            '[' => while chars.next().is_some_and(|(_, c)| c != ']') {},
            // Digits, and letters after them (units), are not names.
            '0'..='9' => while chars.next_if(|(_, c)| c.is_alphanumeric()).is_some() {},
            c if c.is_alphabetic() || c == '_' => {
                let is_name = |(_, c): &(usize, char)| c.is_alphanumeric() || *c == '_';
                while chars.next_if(is_name).is_some() {}
                let end = chars.peek().map_or(query.len(), |(at, _)| *at);
                let name = &query[start..end];
                let labels = query[end..]
                    .strip_prefix('{')
                    .map(|l| l.split('}').next().unwrap());
                if labels.is_some() {
                    while chars.next().is_some_and(|(_, c)| c != '}') {}
                }
                if name == "by" || name == "label_values" {
                    // The parentheses after `by` contain only labels and are skipped. The parentheses after
                    // `label_values` contain a metric and a label. This loop checks the metric later, because
                    // it reads every name.
                    if name == "by" {
                        while chars.next().is_some_and(|(_, c)| c != ')') {}
                    }
                    continue;
                }
                if LANGUAGE.contains(&name) || ADDED.contains(&name) {
                    continue;
                }
                metrics += 1;
                known(name, labels.unwrap_or(""), exported)?;
            }
            _ => {}
        }
    }
    Ok(metrics)
}

fn known(name: &str, labels: &str, exported: &Exported) -> Result<(), String> {
    if PROMETHEUS.contains(&name) {
        return Ok(());
    }
    let metric = exported
        .get(name)
        .ok_or_else(|| format!("no metric {name}"))?;
    for (label, operator, values) in matchers(labels) {
        if ADDED.contains(&label.as_str()) {
            continue;
        }
        let of = metric
            .get(&label)
            .ok_or_else(|| format!("{name} has no label {label}"))?;
        let values: Vec<&str> = match operator.contains('~') {
            true => values.split('|').collect(),
            false => vec![&values],
        };
        for value in values {
            if !of.contains(value) {
                return Err(format!("{name} has no {label}=\"{value}\""));
            }
        }
    }
    Ok(())
}

/// Returns the queries of the alert rules: the text after `expr:`, or the indented lines after `expr: |`.
fn alerts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(query) = line.trim_start().strip_prefix("expr:") else {
            continue;
        };
        let mut query = query.trim().trim_start_matches('|').to_owned();
        let depth = |line: &str| line.len() - line.trim_start().len();
        while let Some(next) = lines.next_if(|next| depth(next) > depth(line)) {
            query.push_str(next);
        }
        found.push(query);
    }
    found
}

/// Returns all queries of the dashboard.
fn board(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(text) if name == "expr" || (name == "query" && text.contains('(')) => {
                        found.push(text.to_owned());
                    }
                    _ => board(member, found),
                }
            }
        }
        serde_json::Value::Array(members) => members.iter().for_each(|m| board(m, found)),
        _ => {}
    }
}

#[test]
fn every_query_names_what_is_exported() {
    let exported = exported(&page());
    let mut queries = alerts(&file("prometheus/alerts.yaml"));
    assert_eq!(
        queries.len(),
        file("prometheus/alerts.yaml").matches("alert:").count()
    );
    let json: serde_json::Value = serde_json::from_str(&file("grafana/foxy.json")).unwrap();
    board(&json, &mut queries);
    assert!(queries.len() > 40, "{}", queries.len());
    for query in queries {
        let metrics = judge(&query, &exported);
        assert!(
            metrics.as_ref().is_ok_and(|n| *n > 0),
            "{metrics:?} in {query}"
        );
    }
}

/// Each incident has a test case for Prometheus. In this test case, only the alert for the incident fires.
#[test]
fn alerts_fire_in_their_incidents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let tests = root.unwrap().join("dist/prometheus/alerts_test.yaml");
    for alert in file("prometheus/alerts.yaml").split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        let fires = format!("alertname=\"{name}\"");
        assert!(
            file("prometheus/alerts_test.yaml").contains(&fires),
            "{name}"
        );
    }
    let Some(_) = tool("promtool", "prometheus") else {
        return;
    };
    let mut promtool = Command::new("promtool");
    let output = promtool.args(["test", "rules"]).arg(tests).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_wrong_query_is_found() {
    let exported = exported(
        "# TYPE a_total counter\na_total{x=\"1\"} 0\na_total{x=\"2\"} 0\n# TYPE b gauge\nb 1\n",
    );
    let judge = |query| judge(query, &exported);
    assert_eq!(
        judge("sum by (y) (rate(a_total{x=~\"1|2\",job=\"j\"}[5m])) / b"),
        Ok(2)
    );
    assert_eq!(
        judge("label_values(b{job=\"$job\"}, instance) * 86400"),
        Ok(1)
    );
    assert!(
        judge("rate(a_totals[5m])")
            .unwrap_err()
            .contains("a_totals")
    );
    assert!(
        judge("a_total{x=~\"1|3\"}")
            .unwrap_err()
            .contains("x=\"3\"")
    );
    assert!(judge("a_total{z=\"1\"}").unwrap_err().contains("label z"));
}
