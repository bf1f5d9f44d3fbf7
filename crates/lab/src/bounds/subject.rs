//! The measured Foxy: a process with a memory budget, or a process in a control group.

use std::path::{Path, PathBuf};

use foxy_base::ByteSize;

use super::group::Group;
use crate::kit::{Child, Launch, free_port};

/// Limit of a process's memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// The process is started with the option `--memory`.
    Budget(ByteSize),
    /// The process is in a control group with this limit. Foxy chooses its budget itself.
    Group(ByteSize),
}

impl Limit {
    /// The limit in bytes.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::Budget(size) | Self::Group(size) => size.bytes(),
        }
    }

    /// Name in reports.
    pub(super) fn name(self) -> String {
        match self {
            Self::Budget(size) => format!("--memory {size}"),
            Self::Group(size) => format!("defaults, control group of {size}"),
        }
    }
}

/// Options for starting processes.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) program: PathBuf,
    /// Port of the origin.
    pub(super) origin: u16,
    /// Size of the store.
    pub(super) store: ByteSize,
}

/// A running Foxy.
#[derive(Debug)]
pub(super) struct Subject {
    // Fields are dropped in their order: the process ends first, because a group can be removed only when it
    // has no process.
    pub(super) child: Child,
    pub(super) group: Option<Group>,
    pub(super) port: u16,
    pub(super) admin: u16,
}

impl Subject {
    /// Starts Foxy with the store in `folder`.
    pub(super) fn start(setup: &Setup, limit: Limit, folder: &Path) -> Result<Self, String> {
        let (port, admin) = (free_port()?, free_port()?);
        let mut args: Vec<String> = ["serve", "--access-log", "off"].map(str::to_owned).into();
        let store = folder.join("store").to_string_lossy().into_owned();
        for (name, value) in [
            ("--listen", format!("127.0.0.1:{port}")),
            ("--admin", format!("127.0.0.1:{admin}")),
            ("--origin", format!("http://127.0.0.1:{}", setup.origin)),
            ("--store", store),
            ("--store-size", setup.store.to_string()),
        ] {
            args.extend([name.to_owned(), value]);
        }
        let mut program = setup.program.clone();
        let group = match limit {
            Limit::Budget(size) => {
                args.extend(["--memory".to_owned(), size.to_string()]);
                None
            }
            Limit::Group(size) => {
                let group = Group::new(&port.to_string(), size)?;
                let enter = "echo $$ > \"$0\" && exec \"$@\"".to_owned();
                let entry = group.entry().to_string_lossy().into_owned();
                let inner = program.to_string_lossy().into_owned();
                args.splice(0..0, ["-c".to_owned(), enter, entry, inner]);
                program = PathBuf::from("/bin/sh");
                Some(group)
            }
        };
        let started = Child::start(&Launch::new(program, args), folder, port);
        let child = started.map_err(|problem| match &group {
            Some(group) if group.kills() > 0 => format!("killed by the kernel at start: {problem}"),
            _ => problem,
        })?;
        Ok(Self {
            child,
            group,
            port,
            admin,
        })
    }

    /// Exit status of the process, if it ended.
    pub(super) fn end(&mut self) -> Option<String> {
        let kills = self.group.as_ref().map_or(0, Group::kills);
        let status = self.child.ended();
        match (kills, status) {
            (0, None) => None,
            (0, Some(status)) => Some(format!("ended ({status})")),
            (_, _) => Some("killed by the kernel for want of memory".to_owned()),
        }
    }
}
