//! `foxy check`: checks the configuration, prints its plan, and checks that it fits this machine.

use std::process::ExitCode;

use serde_json::json;

use super::args::CheckArgs;
use super::say::{say, say_all};
use super::{USAGE, check_request, misconfigured};
use crate::config::{Config, Problem, ThisMachine};
use crate::run::{Finding, examine};

/// Prints the plan, and the properties of this machine that do not meet the needs of the plan. If the
/// configuration has mistakes, prints all mistakes instead.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    let configuration = args.serve.configuration(&ThisMachine);
    if let (Ok(config), Some(request)) = (&configuration, &args.request) {
        return check_request::run(config, request);
    }
    match (configuration, args.json) {
        (Ok(config), json) => {
            let findings = match args.config_only {
                true => Vec::new(),
                false => examine(&config, &ThisMachine),
            };
            match json {
                true => as_json(&config, &findings),
                false => as_text(&config, &findings),
            }
            match findings.iter().any(stops) {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            }
        }
        (Err(problems), false) => misconfigured(&problems),
        (Err(problems), true) => {
            let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
            say!(
                "{}",
                json!({ "ok": false, "problems": texts, "plan": [], "machine": [] })
            );
            ExitCode::from(USAGE)
        }
    }
}

/// True if Foxy would not start. An address in use does not count, because most likely the running Foxy with
/// this configuration uses it.
fn stops(finding: &Finding) -> bool {
    finding.stops() && !finding.is_address_in_use()
}

fn as_text(config: &Config, findings: &[Finding]) {
    say_all!("{}", config.plan(&ThisMachine));
    say!("configuration OK");
    for finding in findings {
        let weight = match finding {
            finding if stops(finding) => "error",
            finding if finding.is_address_in_use() => "note",
            _ => "warning",
        };
        say!("{weight:<7}        {finding}");
    }
    if findings.iter().any(stops) {
        say!("Foxy would not start on this machine");
    }
}

fn as_json(config: &Config, findings: &[Finding]) {
    let plan = config.plan(&ThisMachine);
    let lines: Vec<&str> = plan.lines().collect();
    let machine: Vec<_> = findings
        .iter()
        .map(|finding| json!({ "stops": stops(finding), "text": finding.to_string() }))
        .collect();
    let ok = !findings.iter().any(stops);
    say!(
        "{}",
        json!({ "ok": ok, "problems": [], "plan": lines, "machine": machine })
    );
}
