//! Command-line arguments, and how they replace settings of the configuration file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(super) use super::admin_args::AdminArgs;
use crate::config::{self, Config, Machine, Problem, RawConfig, RawSetting, Section};

const EXAMPLES: &str = "Examples:
  foxy                                              forward proxy on 127.0.0.1:3128
  foxy --listen '*:3128' --allow-destination 10.0.0.0/8
  foxy --listen '*:8080' --origin http://127.0.0.1:9000
  foxy --store /dev/nvme1n1 --store-size 100% --memory 8GiB
  foxy check --config foxy.toml

Exit codes: 0 done, 1 failure at run time, 2 wrong usage or configuration.";

/// A caching web proxy.
///
/// Without arguments: a forward proxy on 127.0.0.1:3128, with its status on http://127.0.0.1:3129/ and its
/// contents in your cache folder.
#[derive(Debug, Parser)]
#[command(name = "foxy", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Command; `serve` if there is none
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The arguments of `serve`
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Commands of Foxy.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the proxy (the default without a command)
    Serve(ServeArgs),
    /// Check the configuration and this machine, and print the plan
    Check(CheckArgs),
    /// Show the statistics of a running Foxy
    Stats(StatsArgs),
    /// Make a running Foxy read its configuration again
    Reload(ReloadArgs),
    /// Remove a URL with all its variants, or many objects, from a running Foxy
    Purge(PurgeArgs),
    /// Explain what a running Foxy would do with a request
    Why(WhyArgs),
    /// List the stored objects of a running Foxy
    Ls(LsArgs),
    /// Show the registries that can be mirrored, and the settings of their clients
    #[command(subcommand)]
    Mirror(MirrorCommand),
    /// Add, drain, remove and grow stores of a running Foxy; examine an offline store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Read, convert and generate access logs (in foxy-lab)
    #[command(disable_help_flag = true)]
    Trace(LabArgs),
    /// Simulate published systems, and other cache sizes for your own log (in foxy-lab)
    #[command(disable_help_flag = true)]
    Sim(LabArgs),
    /// Load tools that check every byte (in foxy-lab)
    #[command(disable_help_flag = true)]
    Bench(LabArgs),
}

/// Arguments of a command of foxy-lab.
#[derive(Clone, Debug, Args)]
pub struct LabArgs {
    /// Arguments for the command of foxy-lab; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// Options of the proxy. Each option replaces a setting of the configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// Configuration file (TOML); docs/config.md lists the settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Listener address, such as 127.0.0.1:3128 or '*:3128'; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Address for health, metrics, statistics and purging, or `off`
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
    /// Be a reverse proxy for this server, such as http://127.0.0.1:9000
    #[arg(long, value_name = "URL")]
    pub origin: Option<String>,
    /// Mirror these registries: pypi, npm, cargo, apt, go, maven, oci; see `foxy mirror list`
    #[arg(long, value_name = "PRESET", value_delimiter = ',')]
    pub mirror: Vec<String>,
    /// File or block device for stored contents, or `off`; may be repeated
    #[arg(long, value_name = "PATH")]
    pub store: Vec<String>,
    /// Size of the store in the option before it, such as 100GiB or 50%; may be repeated
    #[arg(long, value_name = "SIZE")]
    pub store_size: Vec<String>,
    /// Format stores even if they contain something else, which is destroyed
    #[arg(long)]
    pub force_format: bool,
    /// Start only if every store can be used
    #[arg(long)]
    pub strict: bool,
    /// The memory budget, such as 512MiB or 25%
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Number of network threads
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// Access log: a file, `stdout` or `off`
    #[arg(long, value_name = "PATH")]
    pub access_log: Option<String>,
    /// Network whose clients may use the forward proxy, in place of loopback and private networks; `all` for
    /// all clients; may be repeated
    #[arg(long, value_name = "CIDR")]
    pub allow_client: Vec<String>,
    /// Network that the forward proxy may reach although it is private; `all` for all private and
    /// loopback networks; may be repeated
    #[arg(long, value_name = "CIDR")]
    pub allow_destination: Vec<String>,
}

/// Arguments of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The configuration, with the arguments of `serve`
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Show the access rule that decides about a request, and why: 'GET https://host/path from 10.1.2.3 user
    /// x at mon 14:30'
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
    /// Check only the configuration, not the space, folders and addresses of this machine
    #[arg(long)]
    pub config_only: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `stats`.
#[derive(Clone, Debug, Args)]
pub struct StatsArgs {
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Objects to remove. Exactly one of these must be given.
#[derive(Clone, Debug, Default, Args)]
#[group(required = true, multiple = false)]
pub struct PurgeWhat {
    /// The URL, such as http://example.com/page
    pub url: Option<String>,
    /// All objects whose URL begins with this, with or without http://
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// All objects of this host
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// All objects whose URL matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub regex: Option<String>,
    /// All objects with this tag in Surrogate-Key, Cache-Tag or xkey
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// All objects
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `reload`.
#[derive(Clone, Debug, Args)]
pub struct ReloadArgs {
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `purge`.
#[derive(Clone, Debug, Args)]
pub struct PurgeArgs {
    /// Objects to remove
    #[command(flatten)]
    pub what: PurgeWhat,
    /// Make the objects stale and do not remove them; they are revalidated, and may be served stale by the
    /// usual rules
    #[arg(long)]
    pub soft: bool,
    /// Wait for the end of the sweep, and print the number of objects that it removed or made stale
    #[arg(long)]
    pub wait: bool,
    /// Purge only objects of this site (`forward` for the forward proxy)
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `why`.
#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// The URL, such as http://example.com/page
    pub url: String,
    /// A header field of the request, such as 'Accept-Language: de'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub header: Vec<String>,
    /// The method of the request, if it is not GET
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// The site of the request (`forward` for the forward proxy)
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The client address that access rules judge; default: a client on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// The user of the client
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Commands for stores.
#[derive(Clone, Debug, Subcommand)]
pub enum StoreCommand {
    /// List the stores of a running Foxy
    List(ListStores),
    /// Add a file or block device to a running Foxy
    Add(AddStore),
    /// Move the used objects of a store to the other stores; the drained store takes no new objects
    Drain(DrainStore),
    /// End a drain, so that the store takes new objects again
    Resume(OneStore),
    /// Take a drained store out and close it
    Remove(RemoveStore),
    /// Make a store longer; its contents stay
    Grow(GrowStore),
    /// Test the segments in quarantine and use the good segments again; their contents are lost
    Retry(OneStore),
    /// Print the segment tables of an offline store
    Inspect(StoreArgs),
    /// Read an offline store completely, verify all checksums, and report what a restart would recover
    Verify(StoreArgs),
}

/// Arguments of `store list`.
#[derive(Clone, Debug, Args)]
pub struct ListStores {
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `store add`.
#[derive(Clone, Debug, Args)]
pub struct AddStore {
    /// Path of a file (created if it is missing) or of a block device
    pub path: PathBuf,
    /// Size of a file that is created, such as 100GiB or 50%
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// A store of a running Foxy.
#[derive(Clone, Debug, Args)]
pub struct OneStore {
    /// Number or path of the store
    pub store: String,
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `store drain`.
#[derive(Clone, Debug, Args)]
pub struct DrainStore {
    /// The store
    #[command(flatten)]
    pub which: OneStore,
    /// Wait until all used objects have moved
    #[arg(long)]
    pub wait: bool,
}

/// Arguments of `store remove`.
#[derive(Clone, Debug, Args)]
pub struct RemoveStore {
    /// The store
    #[command(flatten)]
    pub which: OneStore,
    /// Remove the store although it is not drained
    #[arg(long)]
    pub now: bool,
}

/// Arguments of `store grow`.
#[derive(Clone, Debug, Args)]
pub struct GrowStore {
    /// The store
    #[command(flatten)]
    pub which: OneStore,
    /// New size, such as 200GiB; without it, a device is used completely
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
}

/// Arguments of `store inspect` and `store verify`.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// File or block device of the store
    pub path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Commands for mirrors.
#[derive(Clone, Debug, Subcommand)]
pub enum MirrorCommand {
    /// List the registries that can be mirrored
    List,
    /// Print the settings of a client and the way to undo them, or apply them
    Setup(SetupArgs),
}

/// Arguments of `mirror setup`.
#[derive(Clone, Debug, Args)]
pub struct SetupArgs {
    /// pip, uv, poetry, npm, pnpm, yarn, cargo, apt, go, maven, gradle, docker, containerd, podman or
    /// skopeo
    pub tool: String,
    /// URL by which the client reaches Foxy
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3128")]
    pub url: String,
    /// Path of the mirror, if it is not the path of the preset
    #[arg(long, value_name = "PATH")]
    pub prefix: Option<String>,
    /// Apply the settings: run the tool's own command, or write its file
    #[arg(long)]
    pub write: bool,
    /// Undo the changes of --write with the same URL and path
    #[arg(long, conflicts_with = "write")]
    pub undo: bool,
}

impl SetupArgs {
    /// Returns the command that undoes this command.
    pub fn undo_line(&self) -> String {
        let prefix = self.prefix.as_ref();
        let prefix = prefix.map_or(String::new(), |path| format!(" --prefix {path}"));
        format!(
            "foxy mirror setup {} --url {}{prefix} --undo",
            self.tool, self.url
        )
    }
}

/// Arguments of `ls`.
#[derive(Clone, Debug, Args)]
pub struct LsArgs {
    /// Part of the URL, or a pattern with * for the complete URL
    pub pattern: Option<String>,
    /// Largest number of lines to print
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: u64,
    /// The running Foxy
    #[command(flatten)]
    pub admin: AdminArgs,
}

impl ServeArgs {
    /// Returns the configuration: the settings of the file, if there is a file, and of the environment. These
    /// arguments replace settings of both.
    ///
    /// # Errors
    /// Returns all problems of the file and the arguments.
    pub fn configuration(&self, machine: &dyn Machine) -> Result<Config, Vec<Problem>> {
        let mut raw = config::read(self.config.as_deref())?;
        self.overlay(&mut raw)?;
        Config::build(&raw, machine)
    }

    fn overlay(&self, raw: &mut RawConfig) -> Result<(), Vec<Problem>> {
        let singles = [
            ("", "admin", &self.admin, "--admin"),
            ("", "memory", &self.memory, "--memory"),
            ("", "workers", &self.workers, "--workers"),
            ("log", "access", &self.access_log, "--access-log"),
        ];
        for (section, name, value, place) in singles {
            if let Some(text) = value {
                raw.set(section, name, vec![text.clone()], place);
            }
        }
        let lists = [
            ("", "listen", &self.listen, "--listen"),
            (
                "access",
                "allow_clients",
                &self.allow_client,
                "--allow-client",
            ),
            (
                "access",
                "allow_destinations",
                &self.allow_destination,
                "--allow-destination",
            ),
        ];
        for (section, name, values, place) in lists {
            if !values.is_empty() {
                raw.set(section, name, values.clone(), place);
            }
        }
        self.overlay_origin(raw);
        self.overlay_mirrors(raw);
        self.overlay_stores(raw)
    }

    /// Applies `--origin`, which turns the listener into a site: the address of the forward proxy becomes the
    /// address of the site.
    fn overlay_origin(&self, raw: &mut RawConfig) {
        let Some(origin) = &self.origin else { return };
        let top = raw.single.entry(String::new()).or_default();
        let listen = top
            .remove("listen")
            .unwrap_or_else(|| one("127.0.0.1:3128", "--origin"));
        let site = Section::from([
            ("listen".to_owned(), listen),
            ("origin".to_owned(), one(origin, "--origin")),
        ]);
        raw.repeated.insert("site".to_owned(), vec![site]);
    }

    fn overlay_mirrors(&self, raw: &mut RawConfig) {
        if !self.mirror.is_empty() {
            let section =
                |name: &String| Section::from([("preset".to_owned(), one(name, "--mirror"))]);
            let sections = self.mirror.iter().map(section).collect();
            raw.repeated.insert("mirror".to_owned(), sections);
        }
    }

    fn overlay_stores(&self, raw: &mut RawConfig) -> Result<(), Vec<Problem>> {
        if self.store_size.len() > self.store.len().max(1) {
            let text = "there are more sizes than stores; give each --store its --store-size";
            return Err(vec![Problem::conflict("--store-size", text.to_owned())]);
        }
        if self.store.is_empty() && self.store_size.is_empty() {
            return Ok(());
        }
        let sections = (0..self.store.len().max(1)).map(|i| {
            let path = self
                .store
                .get(i)
                .map(|path| ("path".to_owned(), one(path, "--store")));
            let size = self
                .store_size
                .get(i)
                .map(|size| ("size".to_owned(), one(size, "--store-size")));
            path.into_iter().chain(size).collect()
        });
        raw.repeated.insert("store".to_owned(), sections.collect());
        Ok(())
    }
}

fn one(text: &str, place: &str) -> RawSetting {
    RawSetting {
        texts: vec![text.to_owned()],
        list: false,
        place: place.to_owned(),
        hidden: false,
    }
}
