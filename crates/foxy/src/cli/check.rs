//! `foxy check`: is the configuration right, and what would it do?

use std::process::ExitCode;

use super::args::CheckArgs;
use super::say::{say, say_all};
use super::{USAGE, check_request, misconfigured};
use crate::config::ThisMachine;

/// Prints the plan, or every mistake.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    let configuration = args.serve.configuration(&ThisMachine);
    if let (Ok(config), Some(request)) = (&configuration, &args.request) {
        return check_request::run(config, request);
    }
    match (configuration, args.json) {
        (Ok(config), false) => {
            say_all!("{}", config.plan(&ThisMachine));
            say!("configuration OK");
            ExitCode::SUCCESS
        }
        (Ok(config), true) => {
            let plan = config.plan(&ThisMachine);
            let lines: Vec<&str> = plan.lines().collect();
            say!(
                "{}",
                serde_json::json!({ "ok": true, "problems": [], "plan": lines })
            );
            ExitCode::SUCCESS
        }
        (Err(problems), false) => misconfigured(&problems),
        (Err(problems), true) => {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            say!(
                "{}",
                serde_json::json!({ "ok": false, "problems": texts, "plan": [] })
            );
            ExitCode::from(USAGE)
        }
    }
}
