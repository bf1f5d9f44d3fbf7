//! A model of the CERN proxy that Maltzahn, Richardson and Grunwald measured. The model has a
//! process for each request, a file for each URL, and a separate process that collects garbage.
//!
//! The model exists only for comparisons. It trusts its clients and its origin, and stores every
//! answer with status 200. CERN's processes were forked without an `exec`. A program without unsafe
//! code cannot fork in this way, so each process of the model also costs an `exec`.

mod collect;
mod request;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use clap::{Parser, Subcommand};

/// A proxy with a process per request and a file per URL.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Listen, and start a process for each connection
    Serve {
        /// Listener address
        #[arg(long)]
        listen: SocketAddr,
        /// Folder of the cached files; without it nothing is cached
        #[arg(long)]
        cache: Option<PathBuf>,
        /// Total size in bytes to which the collector reduces the cached files
        #[arg(long, default_value_t = 8 << 30)]
        size: u64,
    },
    /// Answer one request; standard input is the connection to the client
    Handle {
        /// Folder of the cached files; without it nothing is cached
        #[arg(long)]
        cache: Option<PathBuf>,
    },
    /// Check the cached files every few seconds and remove the oldest files
    Collect {
        /// Folder of the cached files
        #[arg(long)]
        cache: PathBuf,
        /// Total size in bytes to which the collector reduces the cached files
        #[arg(long)]
        size: u64,
    },
}

fn main() -> ExitCode {
    let result = match Args::parse().role {
        Role::Serve {
            listen,
            cache,
            size,
        } => serve(listen, cache, size),
        Role::Handle { cache } => request::handle(cache.as_deref()),
        Role::Collect { cache, size } => collect::run(&cache, size),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fork-proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Greatest number of child processes at a time. Further connections wait in the listen queue.
const MOST: usize = 256;

fn serve(listen: SocketAddr, cache: Option<PathBuf>, size: u64) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    let program = std::env::current_exe()?;
    let mut handle = vec!["handle".into()];
    let mut children: Vec<Child> = Vec::new();
    if let Some(cache) = cache {
        std::fs::create_dir_all(&cache)?;
        handle.extend(["--cache".into(), cache.clone().into_os_string()]);
        let mut collector = Command::new(&program);
        collector.arg("collect").arg("--cache").arg(&cache);
        collector.arg("--size").arg(size.to_string()).spawn()?;
    }
    loop {
        let (stream, _) = listener.accept()?;
        let mut command = Command::new(&program);
        command
            .args(&handle)
            .stdin(Stdio::from(OwnedFd::from(stream)))
            .stdout(Stdio::null());
        children.push(command.spawn()?);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if children.len() >= MOST {
            children.remove(0).wait()?;
        }
    }
}
