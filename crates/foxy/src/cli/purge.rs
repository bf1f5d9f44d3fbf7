//! `foxy purge URL`: a running Foxy forgets it.

use std::fmt::Write;
use std::process::ExitCode;

use super::args::PurgeArgs;
use super::{USAGE, client, failed};

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

/// Everything but letters, digits and `-._~` as `%XX`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
