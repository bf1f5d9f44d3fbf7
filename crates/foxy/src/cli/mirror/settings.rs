//! The settings of a client, with the URLs of one mirror filled in.

use std::ffi::OsString;
use std::path::PathBuf;

use foxy_proxy::mirror::{Preset, preset};

use super::tools::{AppliesIf, PLAIN, Place, Step, TOOLS, Tool};
use crate::cli::args::SetupArgs;

/// A client, and the mirror that it will use.
pub(super) struct Settings {
    tool: &'static Tool,
    preset: &'static Preset,
    /// The URL that replaces the word `BASE` in texts, without `/` at its end.
    base: String,
    mirror: String,
}

impl Settings {
    /// Returns the settings of the client and the mirror that the arguments name.
    ///
    /// # Errors
    /// Returns a sentence about the argument that is wrong.
    pub(super) fn new(args: &SetupArgs) -> Result<Self, String> {
        let tool = TOOLS.iter().find(|tool| tool.name == args.tool);
        let found = tool.and_then(|tool| Some((tool, preset(tool.preset)?)));
        let Some((tool, preset)) = found else {
            let tools: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            let (name, all) = (&args.tool, tools.join(", "));
            return Err(format!("there is no tool `{name}`; there are {all}"));
        };
        let base = args.url.trim_end_matches('/').to_owned();
        let prefix = args.prefix.clone().unwrap_or(format!("/{}", preset.name));
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| base.strip_prefix(scheme));
        let is_plain = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\"'<>\\`{}|^$".contains(&byte))
        };
        if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']))
            || !is_plain(&base)
        {
            let url = &args.url;
            return Err(format!(
                "`{url}` is not a URL like http://cache.example.com:3128: scheme, host and port"
            ));
        }
        if !is_plain(&prefix) {
            return Err(format!("`{prefix}` is not a path like /{}", preset.name));
        }
        let mirror = format!("{base}/{}", prefix.trim_matches('/'));
        Ok(Self {
            tool,
            preset,
            base,
            mirror,
        })
    }

    pub(super) const fn tool(&self) -> &'static Tool {
        self.tool
    }

    /// Returns the host and port of Foxy.
    pub(super) fn place(&self) -> &str {
        let rest = self.base.split_once("://");
        rest.map_or(&self.base, |(_, rest)| rest)
    }

    pub(super) fn is_plain(&self) -> bool {
        self.base.starts_with("http://")
    }

    /// Returns the text with the values of this mirror in place of the words `BASE`, `MIRROR`, `PLACE` and
    /// `HOST`.
    pub(super) fn filled(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 64);
        for line in text.split_inclusive('\n') {
            match line.strip_prefix(PLAIN) {
                Some(line) if self.is_plain() => out.push_str(line),
                Some(_) => {}
                None => out.push_str(line),
            }
        }
        let place = self.place();
        let host = match place.rsplit_once(':') {
            Some((host, _)) if !place.ends_with(']') => host,
            _ => place,
        };
        let out = out.replace("MIRROR", &self.mirror);
        let out = out.replace("BASE", &self.base);
        out.replace("PLACE", place).replace("HOST", host)
    }

    /// Returns two prefixes of URLs: the URL of the upstream, and the URL of the mirror, each with `/` at its
    /// end.
    pub(super) fn ends(&self) -> [String; 2] {
        [self.preset.upstream.to_string(), self.mirror.clone()]
            .map(|url| format!("{}/", url.trim_end_matches('/')))
    }

    /// True if a command applies to this mirror. If the version of the client is known, the command must also
    /// apply to that version.
    pub(super) fn fits(&self, applies: &AppliesIf, version: Option<&str>) -> bool {
        let (begins, wanted, plain) = match applies {
            AppliesIf::Always => return true,
            AppliesIf::Plain => return self.is_plain(),
            AppliesIf::Version(begins) => (begins, true, false),
            AppliesIf::NotVersion(begins) => (begins, false, false),
            AppliesIf::PlainNotVersion(begins) => (begins, false, true),
        };
        let fits = version.is_none_or(|version| version.starts_with(begins) == wanted);
        fits && (!plain || self.is_plain())
    }

    /// Returns a text for people: the settings, and the steps that undo them.
    pub(super) fn printed(&self, places: &Places) -> String {
        let (mut settings, mut undo) = (String::new(), String::new());
        for step in self.tool.steps {
            match step {
                Step::Run { applies, .. } if !self.fits(applies, None) => {}
                Step::Run {
                    settings: run,
                    undo: back,
                    applies,
                    ..
                } => {
                    let about = match applies {
                        AppliesIf::Version(begins) => format!("   # version {begins}x"),
                        AppliesIf::NotVersion(begins) | AppliesIf::PlainNotVersion(begins) => {
                            format!("   # later than version {begins}x")
                        }
                        AppliesIf::Always | AppliesIf::Plain => String::new(),
                    };
                    for (text, run) in [(&mut settings, run), (&mut undo, back)] {
                        let words: Vec<_> = self.words(run).iter().map(|w| quoted(w)).collect();
                        text.push_str(&format!("{}{about}\n", words.join(" ")));
                    }
                }
                Step::File { at, text, .. } => {
                    let path = places.path(at);
                    let text = self.filled(text);
                    settings.push_str(&format!("In {}:\n\n{text}", path.display()));
                    undo.push_str(&format!("Remove these lines from {}\n", path.display()));
                }
                Step::Sources { below } => {
                    let [upstream, mirror] = self.ends();
                    settings.push_str(&format!(
                        "In the files of {below}/sources.list and {below}/sources.list.d, {mirror} in place of {upstream}\n"
                    ));
                    undo.push_str(&format!("Put {upstream} in place of {mirror} there\n"));
                }
            }
        }
        let then = match self.tool.then {
            "" => String::new(),
            then => format!("\n{}\n", self.filled(then)),
        };
        format!("{settings}{then}\nUndo:\n{undo}")
    }

    /// Returns the words of a command.
    pub(super) fn words(&self, command: &str) -> Vec<String> {
        let words = command.split(' ').map(|word| self.filled(word));
        words.collect()
    }
}

pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/=@".contains(&byte);
    match word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}

/// The folders in which clients keep their settings.
pub(super) struct Places {
    pub(super) home: PathBuf,
    /// The folder before the paths of the system's own files: `/` except in tests.
    pub(super) root: PathBuf,
    pub(super) variable: fn(&str) -> Option<OsString>,
}

impl Places {
    /// Returns the folders of the user who runs this program.
    pub(super) fn own() -> Self {
        Self {
            home: std::env::var_os("HOME").unwrap_or_default().into(),
            root: "/".into(),
            variable: |name| std::env::var_os(name).filter(|value| !value.is_empty()),
        }
    }

    pub(super) fn path(&self, place: &Place) -> PathBuf {
        match place {
            Place::User {
                variable,
                home,
                name,
            } => {
                let folder = (self.variable)(variable).map(PathBuf::from);
                folder.unwrap_or_else(|| self.home.join(home)).join(name)
            }
            Place::System(path) => self.system(path),
        }
    }

    /// Returns the path of one of the system's own files.
    pub(super) fn system(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
