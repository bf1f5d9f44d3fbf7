//! `foxy purge URL`: a running Foxy forgets it.

use std::fmt::Write;
use std::process::ExitCode;

use super::args::PurgeArgs;
use super::{USAGE, client, encoded, failed};

/// Asks for the purge; done when it would survive a power cut.
pub(super) fn run(args: &PurgeArgs) -> ExitCode {
    let mut target = format!("/purge?url={}", encoded(&args.url));
    if let Some(site) = &args.site {
        let _ = write!(target, "&site={}", encoded(site));
    }
    match client::ask(&args.admin.admin, "POST", &target) {
        Ok((200, body)) if args.admin.json => {
            print!("{body}");
            ExitCode::SUCCESS
        }
        Ok((200, _)) => {
            println!("purged {}", args.url);
            ExitCode::SUCCESS
        }
        Ok((400 | 404, body)) => {
            eprintln!("foxy: {}", body.trim());
            ExitCode::from(USAGE)
        }
        Ok((status, body)) => failed(format!("{status}: {}", body.trim())),
        Err(error) => failed(error),
    }
}
