//! `foxy mirror`: the registries that can be mirrored, and the settings of their clients.

mod apply;
mod block;
mod settings;
mod tools;

use std::process::ExitCode;

use foxy_proxy::mirror::{Kind, Preset, presets};

use super::args::{MirrorCommand, SetupArgs};
use super::say::{say, say_all};
use super::{USAGE, failed};
use apply::{Action, apply, is_reached};
use settings::{Places, Settings};

/// Runs the command.
pub(super) fn run(command: &MirrorCommand) -> ExitCode {
    match command {
        MirrorCommand::List => {
            say_all!("{}", list());
            ExitCode::SUCCESS
        }
        MirrorCommand::Setup(args) => setup(args),
    }
}

fn list() -> String {
    let mut text = String::new();
    for preset in presets() {
        text.push_str(&lines(preset));
    }
    text
}

fn lines(preset: &Preset) -> String {
    let mut text = format!("{:<8}{}\n", preset.name, preset.about);
    let mut line = |word: &str, what: &str| text.push_str(&format!("        {word:<10} {what}\n"));
    line("upstream", &preset.upstream.to_string());
    for host in &preset.hosts {
        line("host", &host.to_string());
    }
    for class in &preset.classes {
        let paths: Vec<_> = class
            .paths
            .iter()
            .map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned())
            .collect();
        let paths = paths.join(" ");
        match class.kind {
            Kind::Immutable => line("immutable", &paths),
            Kind::Index(fresh) => line("index", &format!("{paths} ({fresh}s)")),
            Kind::Pass => line("pass", &format!("{paths} {}", class.methods.join(" "))),
        }
    }
    text
}

/// Prints the settings of a client, or applies or undoes them.
fn setup(args: &SetupArgs) -> ExitCode {
    let settings = match Settings::new(args) {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("foxy: {wrong}");
            return ExitCode::from(USAGE);
        }
    };
    let places = Places::own();
    let action = match (args.write, args.undo) {
        (true, _) => Action::Apply,
        (_, true) => Action::Undo,
        (false, false) => {
            say_all!("{}", settings.printed(&places));
            return ExitCode::SUCCESS;
        }
    };
    if let Err(wrong) = apply(&settings, &places, action, |line| say!("{line}")) {
        return failed(wrong);
    }
    if action == Action::Undo {
        return ExitCode::SUCCESS;
    }
    if !settings.tool().then.is_empty() {
        say!("{}", settings.filled(settings.tool().then));
    }
    say!("Undo: {}", args.undo_line());
    let place = settings.place();
    if !is_reached(place, settings.is_plain()) {
        let preset = settings.tool().preset;
        eprintln!(
            "foxy: nothing answers at {place} now: {} cannot install before Foxy runs there, with `--mirror {preset}` or a [[mirror]] section",
            args.tool
        );
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests;
