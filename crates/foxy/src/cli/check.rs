//! `foxy check`: is the configuration right, and what would it do?

use std::process::ExitCode;

use super::args::CheckArgs;
use super::{USAGE, misconfigured};
use crate::config::ThisMachine;

/// Prints the plan, or every mistake.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    match (args.serve.configuration(&ThisMachine), args.json) {
        (Ok(config), false) => {
            print!("{}", config.plan(&ThisMachine));
            println!("the configuration is right");
            ExitCode::SUCCESS
        }
        (Ok(config), true) => {
            let plan = config.plan(&ThisMachine);
            let lines: Vec<&str> = plan.lines().collect();
            println!(
                "{}",
                serde_json::json!({ "ok": true, "problems": [], "plan": lines })
            );
            ExitCode::SUCCESS
        }
        (Err(problems), false) => misconfigured(&problems),
        (Err(problems), true) => {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            println!(
                "{}",
                serde_json::json!({ "ok": false, "problems": texts, "plan": [] })
            );
            ExitCode::from(USAGE)
        }
    }
}
