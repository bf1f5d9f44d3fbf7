//! A room is a top-level module of a crate: a module of its `lib.rs`. The rooms of a crate form layers, and
//! code of a room may use the rooms below it.
//!
//! The tables define the architecture of these crates, as the tables of [`crate::arrows`] define the
//! architecture of the workspace. An arrow means that code of one room uses another room. An arrow that leads
//! to a higher layer is an exception and needs a reason. Tests may use every room. `paths.rs` reads the code,
//! and its comment lists the code that it does not see.

mod paths;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenTree;

use self::paths::Named;
use crate::report::Outcome;
use crate::workspace::root;

/// The layers of one crate.
struct CrateLayers {
    /// Name of the crate's folder under `crates`.
    name: &'static str,
    /// The rooms, in layers, top first.
    layers: &'static [&'static str],
    /// Permitted arrows to a higher layer.
    exceptions: &'static [Exception],
}

/// An arrow to a higher layer.
struct Exception {
    from: &'static str,
    to: &'static str,
    /// Reason why the code cannot be moved.
    reason: &'static str,
}

/// Greatest number of exceptions in a crate.
const EXCEPTIONS_MAX: usize = 8;

const LAYERS: &[CrateLayers] = &[
    CrateLayers {
        name: "store",
        layers: &[
            "offline",
            "writer",
            "recovery",
            "engine",
            "maintenance",
            "put",
            "read",
            "purge",
            "removal",
            "memory",
            "fleet",
            "shared",
            "interface",
        ],
        exceptions: &[],
    },
    CrateLayers {
        name: "proxy",
        layers: &[
            // Fuzz targets call functions of every room.
            "fuzzing", "client", "exchange", "fill", "origin", "mirrors", "cache", "http", "state",
            "sites", "access",
        ],
        exceptions: &[
            Exception {
                from: "state",
                to: "fill",
                reason: "a worker's table of fills lives as long as the worker",
            },
            Exception {
                from: "state",
                to: "origin",
                reason: "pools, names and counts of origins live as long as the worker or the process",
            },
            Exception {
                from: "state",
                to: "mirrors",
                reason: "parts of mirrors are settings; digests that documents name live as long as the process",
            },
            Exception {
                from: "state",
                to: "cache",
                reason: "readers of disks, shared fragments and remembered variants live as long as the worker or the process",
            },
            Exception {
                from: "state",
                to: "http",
                reason: "deadlines of connections and prepared lines of heads live as long as the worker",
            },
            Exception {
                from: "cache",
                to: "fill",
                reason: "the gate takes the proof of a fill's leader, and a purge ends fills",
            },
        ],
    },
];

/// True if a crate, given by the name of its folder, has rooms.
pub(crate) fn are_in(name: &str) -> bool {
    LAYERS.iter().any(|table| table.name == name)
}

/// Complains about each arrow that leads to a higher layer and is not in the list of exceptions. Also
/// complains if a table differs from the code.
pub(crate) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    for table in LAYERS {
        let source = format!("crates/{}/src", table.name);
        let read = |file: &str| std::fs::read_to_string(root().join(&source).join(file)).ok();
        outcome.join(judge(table, &rooms(&source, &read)));
    }
    outcome
}

/// The rooms as they are found in the code.
#[derive(Default)]
struct Found {
    /// Folder of the sources, from the root of the workspace.
    source: String,
    /// Modules of `lib.rs`.
    rooms: Vec<String>,
    /// Names that `lib.rs` makes available in the crate, each with its room; `None` if the name belongs to no
    /// room.
    names: BTreeMap<String, Option<String>>,
    uses: Vec<Use>,
    /// Complaints about files that cannot be read.
    unread: Vec<String>,
}

impl Found {
    /// Returns the tokens of a source file, or adds a complaint.
    fn code(&mut self, file: &str, text: &str) -> Option<Vec<TokenTree>> {
        let complain = |error| self.unread.push(format!("{}/{file}: {error}", self.source));
        paths::code(text).map_err(complain).ok()
    }
}

/// A path such as `crate::a::b` in the code of a room. It may lead to another room.
struct Use {
    room: String,
    /// File, relative to the folder of the sources.
    file: String,
    named: Named,
}

/// Reads all code that is compiled without tests, beginning with `lib.rs`. `read` returns the text of a
/// source file.
fn rooms(source: &str, read: &dyn Fn(&str) -> Option<String>) -> Found {
    let lib = read("lib.rs").unwrap_or_default();
    let mut found = Found {
        source: source.to_owned(),
        ..Found::default()
    };
    if let Some(lib) = found.code("lib.rs", &lib) {
        found.rooms = paths::modules(&lib);
        found.names = paths::reexports(&lib).into_iter().collect();
    }
    for room in found.rooms.clone() {
        take_module(&mut found, &[room], read);
    }
    found
}

/// Reads the file of a module, and the files of its submodules.
fn take_module(found: &mut Found, module: &[String], read: &dyn Fn(&str) -> Option<String>) {
    let path = module.join("/");
    let files = [format!("{path}.rs"), format!("{path}/mod.rs")];
    for file in files {
        let Some(text) = read(&file) else {
            continue;
        };
        let Some(code) = found.code(&file, &text) else {
            continue;
        };
        for named in paths::named(&code, module) {
            found.uses.push(Use {
                room: module[0].clone(),
                file: file.clone(),
                named,
            });
        }
        for child in paths::modules(&code) {
            take_module(found, &[module, &[child]].concat(), read);
        }
    }
}

fn judge(table: &CrateLayers, found: &Found) -> Outcome {
    let mut outcome = judge_table(table, found);
    outcome.complaints.extend(found.unread.iter().cloned());
    let mut arrows = BTreeSet::new();
    for used in &found.uses {
        match arrow(table, found, used) {
            Ok(Some(to)) => {
                arrows.insert((used.room.as_str(), to));
            }
            Ok(None) => {}
            Err(complaint) => outcome.complaints.push(complaint),
        }
    }
    outcome.passed += arrows.len();
    for exception in table.exceptions {
        let used = arrows.contains(&(exception.from, exception.to));
        outcome.note(judge_exception(table, exception, used));
    }
    outcome
}

/// Compares the table with the modules of `lib.rs`.
fn judge_table(table: &CrateLayers, found: &Found) -> Outcome {
    let mut outcome = Outcome::default();
    let name = table.name;
    for room in &found.rooms {
        outcome.note(match layer_of(table, room) {
            Some(_) => Ok(()),
            None => Err(format!(
                "crate {name} has a room {room} that is not in the table of xtask/src/rooms/mod.rs; give it \
                 a layer, or make it a file of another room"
            )),
        });
    }
    for layer in table.layers {
        if !found.rooms.iter().any(|room| room == layer) {
            outcome.complaints.push(format!(
                "xtask/src/rooms/mod.rs has a room {layer} of {name}, and lib.rs has no such module; remove \
                 it there and in docs/architecture.md"
            ));
        }
    }
    if table.exceptions.len() > EXCEPTIONS_MAX {
        outcome.complaints.push(format!(
            "{name} has more than {EXCEPTIONS_MAX} arrows that run up; move the code to where it belongs"
        ));
    }
    outcome
}

fn judge_exception(table: &CrateLayers, exception: &Exception, used: bool) -> Result<(), String> {
    let Exception { from, to, reason } = exception;
    let up = layer_of(table, to) < layer_of(table, from);
    match (used, up && !reason.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!(
            "{from} -> {to} in {} is an exception without reason, or runs down; mend \
             xtask/src/rooms/mod.rs",
            table.name
        )),
        (false, _) => Err(format!(
            "{from} -> {to} in {} is an exception that nobody uses; remove it from \
             xtask/src/rooms/mod.rs",
            table.name
        )),
    }
}

/// The layer of a room, counted from the top.
fn layer_of(table: &CrateLayers, room: &str) -> Option<usize> {
    table.layers.iter().position(|layer| *layer == room)
}

/// The room to which a path leads. `None` if the path stays in its own room or leads to no room. The error is
/// a complaint, for example about a path to a higher layer that is not an exception.
fn arrow<'a>(
    table: &CrateLayers,
    found: &'a Found,
    used: &'a Use,
) -> Result<Option<&'a str>, String> {
    let Use { room, file, named } = used;
    let at = format!("{}/{file}:{}", found.source, named.line);
    let path = named.path.join("::");
    let Some(first) = named.path.first().filter(|first| *first != "*") else {
        return match path.as_str() {
            "*" => Err(format!(
                "{at}: room {room} names everything of the crate; name each room that it uses"
            )),
            _ => Ok(None),
        };
    };
    let owner = match found.names.get(first) {
        _ if found.rooms.contains(first) => Some(first.as_str()),
        Some(owner) => owner.as_deref(),
        None => {
            return Err(format!(
                "{at}: crate::{path} is of no room: lib.rs has no such module and gives no such name"
            ));
        }
    };
    let Some(to) = owner.filter(|to| to != room) else {
        return Ok(None);
    };
    let up = layer_of(table, to) < layer_of(table, room);
    let excepted = table
        .exceptions
        .iter()
        .any(|exception| exception.from == room && exception.to == to);
    match up && !excepted {
        false => Ok(Some(to)),
        true => Err(format!(
            "{at}: room {room} uses {to} (crate::{path}), which is above it; move what it needs to {room} or \
             below, or pass it as a parameter. An exception has its reason in xtask/src/rooms/mod.rs"
        )),
    }
}
