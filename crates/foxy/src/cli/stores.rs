//! `foxy store list|add|drain|resume|remove|grow|retry`: the stores of a running Foxy.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::args::{AdminArgs, OneStore, StoreCommand};
use super::say::{say, say_all};
use super::{USAGE, client, encoded, failed};
use crate::admin::{Changed, StoreLine};
use crate::config::human;

/// Time between two requests of `--wait` for the state of the store.
const ASK: Duration = Duration::from_millis(500);

/// Sends the command to the running Foxy.
pub(super) fn run(command: &StoreCommand) -> ExitCode {
    match command {
        StoreCommand::List(args) => list(&args.admin),
        StoreCommand::Add(args) => {
            let size = args.size.as_ref().map(|size| ("size", size.clone()));
            let path = [("path", absolute(&args.path))];
            change(&args.admin, "add", path.into_iter().chain(size))
        }
        StoreCommand::Drain(args) => {
            let asked = named(&args.which, "drain", None);
            if args.wait && asked == ExitCode::SUCCESS {
                return wait(&args.which);
            }
            asked
        }
        StoreCommand::Resume(args) => named(args, "resume", None),
        StoreCommand::Remove(args) => {
            let now = args.now.then(|| ("now", "1".to_owned()));
            named(&args.which, "remove", now)
        }
        StoreCommand::Grow(args) => {
            let size = args.size.clone().map(|size| ("size", size));
            named(&args.which, "grow", size)
        }
        StoreCommand::Retry(args) => named(args, "retry", None),
        StoreCommand::Inspect(_) | StoreCommand::Verify(_) => ExitCode::from(USAGE),
    }
}

/// Returns the absolute path, because the running Foxy may have another working folder.
fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

/// Returns the store's name in the form that the running Foxy knows: a number or an absolute path.
fn name_of(store: &str) -> String {
    match store.parse::<u16>() {
        Ok(_) => store.to_owned(),
        Err(_) => absolute(Path::new(store)),
    }
}

fn named(which: &OneStore, what: &str, more: Option<(&str, String)>) -> ExitCode {
    let store = [("store", name_of(&which.store))];
    change(&which.admin, what, store.into_iter().chain(more))
}

fn change<'n>(
    admin: &AdminArgs,
    what: &str,
    parameters: impl Iterator<Item = (&'n str, String)>,
) -> ExitCode {
    let mut target = format!("/stores/{what}?");
    for (name, value) in parameters {
        // Writing to a string cannot fail.
        let _ = write!(target, "{name}={}&", encoded(&value));
    }
    match client::ask(admin, "POST", target.trim_end_matches('&')) {
        Ok((200, body)) => {
            if admin.json {
                say_all!("{body}");
            } else if let Ok(changed) = serde_json::from_str::<Changed>(&body) {
                say!("store {}: {}", changed.store, changed.done);
                say!("configuration: {}", changed.configuration);
            } else {
                return failed("the answer is of another version of Foxy");
            }
            ExitCode::SUCCESS
        }
        Ok((202, body)) => {
            say!("{}", body.trim());
            ExitCode::SUCCESS
        }
        Ok((400 | 404, body)) => {
            eprintln!("foxy: {}", body.trim());
            ExitCode::from(USAGE)
        }
        Ok((_, body)) => failed(body.trim()),
        Err(error) => failed(error),
    }
}

fn stores(admin: &AdminArgs) -> Result<(Vec<StoreLine>, String), String> {
    let (status, body) = client::ask(admin, "GET", "/stores")?;
    if status != 200 {
        return Err(format!("{status}: {}", body.trim()));
    }
    let parsed = serde_json::from_str(&body);
    let stores =
        parsed.map_err(|error| format!("the answer is of another version of Foxy: {error}"))?;
    Ok((stores, body))
}

fn list(admin: &AdminArgs) -> ExitCode {
    match stores(admin) {
        Ok((_, body)) if admin.json => say_all!("{body}"),
        Ok((stores, _)) => say_all!("{}", table(&stores)),
        Err(error) => return failed(error),
    }
    ExitCode::SUCCESS
}

fn table(stores: &[StoreLine]) -> String {
    let mut page = "STORE  STATE                    NEW        USED    CAPACITY  PATH\n".to_owned();
    for store in stores {
        let mut state = match &store.duty[..] {
            "serving" | "none" => store.health.clone(),
            "draining" => format!("draining, {} % left", store.left_percent),
            other => other.to_owned(),
        };
        if store.loading {
            state.push_str(", loading");
        }
        let _ = writeln!(
            page,
            "{:>5}  {state:<20} {:>5.1} %  {:>10}  {:>10}  {}",
            store
                .store
                .map_or_else(|| "-".to_owned(), |n| n.to_string()),
            store.share_percent,
            human(store.used_bytes),
            human(store.capacity_bytes),
            store.path
        );
        if let Some(reason) = &store.reason {
            let _ = writeln!(page, "       {reason}");
        }
        if store.quarantined_segments > 0 {
            let _ = writeln!(
                page,
                "       {} segments in quarantine",
                store.quarantined_segments
            );
        }
    }
    page
}

/// Waits until the store is drained.
fn wait(which: &OneStore) -> ExitCode {
    let name = name_of(&which.store);
    loop {
        let found = match stores(&which.admin) {
            Ok((stores, _)) => stores
                .into_iter()
                .find(|s| s.path == name || s.store.is_some_and(|n| n.to_string() == name)),
            Err(error) => return failed(error),
        };
        match found.as_ref().map(|store| &store.duty[..]) {
            Some("draining") => std::thread::sleep(ASK),
            Some("drained") => {
                say!("drained; `foxy store remove {}` takes it out", which.store);
                return ExitCode::SUCCESS;
            }
            _ => return failed("the store does not drain any more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_a_store_does() {
        let line = |duty: &str, left_percent| StoreLine {
            store: Some(3),
            path: "/disk/a".to_owned(),
            health: "good".to_owned(),
            reason: None,
            duty: duty.to_owned(),
            left_percent,
            capacity_bytes: 1 << 30,
            used_bytes: 1 << 29,
            loading: false,
            share_percent: 33.3,
            quarantined_segments: 0,
        };
        let page = table(&[
            line("serving", 0.0),
            line("draining", 40.5),
            line("drained", 0.0),
            StoreLine {
                store: None,
                health: "absent".to_owned(),
                reason: Some("/disk/b: was cut short".to_owned()),
                ..line("none", 0.0)
            },
        ]);
        for words in [
            "good ",
            "draining, 40.5 % left",
            "drained ",
            "33.3 %",
            "    -  absent ",
            "       /disk/b: was cut short\n",
            "/disk/a",
        ] {
            assert!(page.contains(words), "{words} in\n{page}");
        }
    }
}
