//! `foxy ls`: lists the objects that a running Foxy has stored.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use super::args::LsArgs;
use super::say::say;
use super::{USAGE, client, encoded, failed};
use crate::admin::Line;
use crate::config::human;

/// Prints the lines as they arrive.
pub(super) fn run(args: &LsArgs) -> ExitCode {
    let pattern = encoded(args.pattern.as_deref().unwrap_or_default());
    let target = format!("/ls?pattern={pattern}&limit={}", args.limit);
    let (status, mut body) = match client::open(&args.admin, "GET", &target) {
        Ok(answer) => answer,
        Err(error) => return failed(error),
    };
    let mut out = std::io::stdout().lock();
    let mut text = String::new();
    let mut lines = 0u64;
    loop {
        text.clear();
        match body.read_line(&mut text) {
            Ok(0) => break,
            Ok(_) if status != 200 => {
                eprintln!("foxy: {}", text.trim());
                return ExitCode::from(USAGE);
            }
            Ok(_) => {}
            Err(error) => return failed(format!("the answer broke off: {error}")),
        }
        let printed = if args.admin.json {
            out.write_all(text.as_bytes())
        } else {
            match serde_json::from_str::<Line>(&text) {
                Ok(line) => print(&mut out, &line, lines == 0),
                Err(_) => return failed("the answer is of another version of Foxy"),
            }
        };
        // The program that reads the output has closed it.
        if printed.is_err() {
            return ExitCode::SUCCESS;
        }
        lines += 1;
    }
    if lines == 0 && !args.admin.json {
        say!("nothing is stored under that");
    } else if lines == args.limit && !args.admin.json {
        say!("... there may be more; see --limit");
    }
    ExitCode::SUCCESS
}

fn print(out: &mut impl Write, line: &Line, first: bool) -> std::io::Result<()> {
    if first {
        writeln!(
            out,
            "{:>6} {:>9} {:>8} {:>8}  {:<8} {:<18} URL",
            "STATUS", "SIZE", "AGE", "TTL", "TIER", "POSITION"
        )?;
    }
    let position = line.position.as_ref();
    let position = position.map_or("-".to_owned(), |p| {
        format!("{}:{}+{}", p.store, p.segment, human(p.offset))
    });
    let stale = if line.soft_purged {
        " [purged softly]"
    } else {
        ""
    };
    let site = match &line.partition[..] {
        "forward" => String::new(),
        site => format!(" [{site}]"),
    };
    let variant = match &line.variant[..] {
        "" => String::new(),
        variant => format!(" [{variant}]"),
    };
    writeln!(
        out,
        "{:>6} {:>9} {:>8} {:>8}  {:<8} {:<18} {}{site}{variant}{stale}",
        line.status,
        human(line.bytes),
        time(i64::from(line.age_seconds)),
        time(line.ttl_seconds),
        line.tier,
        position,
        line.url
    )
}

/// Writes seconds in the largest unit in which the number is at least 2.
fn time(seconds: i64) -> String {
    let size = seconds.unsigned_abs();
    let sign = if seconds < 0 { "-" } else { "" };
    match size {
        0..120 => format!("{sign}{size}s"),
        120..7200 => format!("{sign}{}m", size / 60),
        7200..172_800 => format!("{sign}{}h", size / 3600),
        _ => format!("{sign}{}d", size / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let texts = [0, 119, 120, -7199, 7200, 172_800].map(time);
        assert_eq!(texts, ["0s", "119s", "2m", "-119m", "2h", "2d"]);
    }
}
