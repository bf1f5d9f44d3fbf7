//! `foxy mirror setup TOOL --write` and `--undo`: runs commands, and writes files.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::block::{Block, File};
use super::settings::{Places, Settings, quoted};
use super::tools::Step;

/// The action of the command on the settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The client uses the mirror afterwards.
    Apply,
    /// The client does not use the mirror any more afterwards.
    Undo,
}

/// Makes the changes, one after another, and passes a line about each change to `done`.
///
/// # Errors
/// Returns a sentence about the step that failed, and the way to correct it. The steps before it have already
/// been carried out.
pub(super) fn apply(
    settings: &Settings,
    places: &Places,
    action: Action,
    mut done: impl FnMut(String),
) -> Result<(), String> {
    let mut version = None;
    for step in settings.tool().steps {
        match step {
            Step::Run {
                settings: there,
                undo,
                shows,
                applies,
            } => {
                if version.is_none() && applies.asks_for_version() {
                    let program = settings.words(there).into_iter().take(1);
                    let words: Vec<_> = program.chain(["--version".to_owned()]).collect();
                    version = Some(run(&words)?.trim().to_owned());
                }
                if settings.fits(applies, version.as_deref()) {
                    let [there, undo, shows] =
                        [there, undo, shows].map(|text| settings.words(text));
                    set(&there, &undo, &shows, action, &mut done)?;
                }
            }
            Step::File { at, sharing, text } => {
                let block = Block {
                    tool: settings.tool().name,
                    sharing,
                    text: settings.filled(text),
                };
                let path = places.path(at);
                done(change(&path, &block, action)?);
            }
            Step::Sources { below } => {
                sources(settings, &places.system(below), action, &mut done)?;
            }
        }
    }
    Ok(())
}

/// With [`Action::Apply`], runs the client's own command `there`, which sets a value. With [`Action::Undo`],
/// runs `undo` if the client still has that value.
pub(super) fn set(
    there: &[String],
    undo: &[String],
    shows: &[String],
    action: Action,
    mut done: impl FnMut(String),
) -> Result<(), String> {
    // In a command of go, the last word is `NAME=VALUE`. `NAME=` is removed, because only values are
    // compared.
    let name = shows.last().map(|name| format!("{name}="));
    let ours = there.last().map_or("", |word| word);
    let ours = name
        .and_then(|name| ours.strip_prefix(&*name))
        .unwrap_or(ours);
    // The command of pip fails if no value is set. Any failure counts as an empty value.
    let present = run(shows).unwrap_or_default();
    let present = present.trim();
    let line = |words: &[String]| {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    };
    match action {
        Action::Apply => {
            run(there)?;
            done(format!("ran {}", line(there)));
            if !["", "undefined", ours].contains(&present) {
                done(format!("the value before was {present}"));
            }
        }
        Action::Undo if present == ours => {
            run(undo)?;
            done(format!("ran {}", line(undo)));
        }
        Action::Undo => {
            let present = if present.is_empty() {
                "nothing"
            } else {
                present
            };
            done(format!(
                "`{}` says {present}, and not {ours}: left as it is",
                line(shows)
            ));
        }
    }
    Ok(())
}

/// Runs a command of the client, and returns its output.
pub(super) fn run(words: &[String]) -> Result<String, String> {
    let [program, arguments @ ..] = words else {
        return Ok(String::new());
    };
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{program} is not installed, or not in PATH"),
        _ => format!("{program} cannot be run: {error}"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [&output.stderr, &output.stdout]
        .map(|text| String::from_utf8_lossy(text).trim().to_owned())
        .join("\n");
    let words = words.join(" ");
    Err(format!("`{words}` failed:\n{}", said.trim()))
}

/// Writes the block to a file or removes it from the file. Returns a line about the change.
fn change(path: &Path, block: &Block<'_>, action: Action) -> Result<String, String> {
    let name = path.display();
    let old = read(path)?;
    let new = match action {
        Action::Apply => block.put_into(old.as_deref()),
        Action::Undo => block.take_out_of(old.as_deref()),
    };
    let by_hand = match action {
        Action::Apply => format!("add these lines by hand:\n\n{}", block.text),
        Action::Undo => format!("remove these lines by hand:\n\n{}", block.text),
    };
    match new.map_err(|reason| format!("{name} was not changed: {reason}; {by_hand}"))? {
        File::Stays => Ok(format!("{name} is as it should be")),
        File::Becomes(text) => {
            write(path, &text)?;
            Ok(format!("wrote {name}"))
        }
        File::Goes => {
            let gone = fs::remove_file(path);
            gone.map_err(|error| format!("{name} cannot be removed: {}", advice(&error)))?;
            Ok(format!("removed {name}"))
        }
    }
}

/// Replaces the upstream's URL by the mirror's URL in the files of apt's sources. With [`Action::Undo`], puts
/// the upstream's URL back.
fn sources(
    settings: &Settings,
    below: &Path,
    action: Action,
    mut done: impl FnMut(String),
) -> Result<(), String> {
    let [upstream, mirror] = settings.ends();
    let tls = upstream.replacen("http://", "https://", 1);
    let mut any = false;
    for path in source_files(below)? {
        let Some(old) = read(&path)? else { continue };
        let new = match action {
            Action::Apply => old.replace(&upstream, &mirror).replace(&tls, &mirror),
            Action::Undo => old.replace(&mirror, &upstream),
        };
        any |= old.contains(&mirror);
        if new != old {
            write(&path, &new)?;
            done(format!("wrote {}", path.display()));
            any = true;
        }
    }
    match any {
        true => Ok(()),
        false if action == Action::Undo => Err(format!(
            "no source below {} names {mirror}",
            below.display()
        )),
        false => Err(format!(
            "no source below {} names {upstream}; of another archive, replace the beginning of its URL by {mirror} by hand, \
             and mirror it by a section of its own",
            below.display()
        )),
    }
}

fn source_files(below: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = below.join("sources.list.d");
    let mut paths = vec![below.join("sources.list")];
    match fs::read_dir(&folder) {
        Ok(entries) => {
            let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
            let is_source = |path: &PathBuf| {
                let suffix = path.extension().unwrap_or_default();
                suffix == "list" || suffix == "sources"
            };
            paths.extend(files.filter(is_source));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(format!(
                "{} cannot be read: {}",
                folder.display(),
                advice(&error)
            ));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the contents of a file, if the file exists.
fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!(
            "{} cannot be read: {}",
            path.display(),
            advice(&error)
        )),
    }
}

/// Writes a file completely or not at all. A link stays a link, and a file keeps its permissions and owner.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = || {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut new = path.clone().into_os_string();
        new.push(".foxy-new");
        let put = || {
            let mut file = fs::File::create(&new)?;
            if let Ok(old) = fs::metadata(&path) {
                // The permissions are set before the contents are written, because the contents may be
                // secret. Only root can change the owner of a file, so an error of `fchown` is ignored.
                file.set_permissions(old.permissions())?;
                let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        put().inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    };
    written().map_err(|error: io::Error| {
        format!("{} cannot be written: {}", path.display(), advice(&error))
    })
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!("{error}; run this as its owner (sudo)"),
        _ => error.to_string(),
    }
}

/// True if a server answers at `place`, which is a host with an optional port.
pub(super) fn is_reached(place: &str, plain: bool) -> bool {
    let port = if plain { 80 } else { 443 };
    let ends = place.to_socket_addrs();
    let Ok(mut ends) = ends.or_else(|_| (place.trim_matches(['[', ']']), port).to_socket_addrs())
    else {
        return false;
    };
    ends.any(|end| TcpStream::connect_timeout(&end, Duration::from_secs(2)).is_ok())
}
