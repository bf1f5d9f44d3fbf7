//! The limit on open files. Foxy raises its soft limit to the hard limit. Then it limits the numbers of
//! connections, so that all connections together do not exceed the raised limit.

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard limit. Logs a warning if the hard limit is low.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!("the limit on open files could not be raised");
    }
    if let Some(warning) = few_open_files() {
        tracing::warn!("{warning}");
    }
}

/// Returns a warning if the hard limit on open files is low.
pub(super) fn few_open_files() -> Option<String> {
    let files = getrlimit(Resource::Nofile).maximum?;
    (files < 8192).then(|| {
        format!(
            "open files: only {files} are allowed, which limits connections; raise LimitNOFILE or ulimit -n"
        )
    })
}

/// Number of open files that are neither connections of clients nor idle connections to origins. These files
/// are stores, logs, listeners, and connections to origins that are in use.
const OTHER_FILES: u64 = 64;

/// Limits the numbers of connections to the open files that the system allows, so that an accepted connection
/// never fails for lack of a file. Half of the files are for clients, and a quarter is for idle connections
/// to origins. The kernel's table of open files is made large enough for these files.
pub(crate) fn fit_to_open_files(proxy: &mut foxy_proxy::Config, workers: usize) {
    if let Some(files) = getrlimit(Resource::Nofile).current {
        fit(proxy, workers, files);
    }
    let idle = proxy.upstream.idle_total * workers;
    make_room(proxy.limits.connections + idle + OTHER_FILES as usize);
}

/// Makes the table of open files large enough for `files` files. The table takes 8 bytes of the kernel's
/// memory for each file. Without this call, the kernel doubles the table whenever it is full. In a process
/// with several threads, the kernel then waits until all cores have passed a quiescent state (RCU). During
/// this wait, no thread can open a file or accept a connection. Until 17,000 connections are open, the table
/// is doubled seven times, and each wait takes about ten milliseconds.
fn make_room(files: usize) {
    let most = getrlimit(Resource::Nofile).current;
    let last = (files as u64).min(most.unwrap_or(u64::MAX)).min(TABLE_MAX);
    let last = last.saturating_sub(1) as i32;
    // The call opens a file descriptor with the number `last`, and `drop` closes it. The table keeps its size
    // after that. If the call fails, the kernel enlarges the table when it is full.
    drop(fcntl_dupfd_cloexec(std::io::stderr(), last));
}

/// Largest number of files for which `make_room` enlarges the table. A table of this length takes half a
/// megabyte.
const TABLE_MAX: u64 = 1 << 16;

fn fit(proxy: &mut foxy_proxy::Config, workers: usize, files: u64) {
    let files = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    let connections = &mut proxy.limits.connections;
    if *connections > files / 2 {
        *connections = (files / 2).max(8);
        tracing::info!(
            connections = *connections,
            "fewer client connections than configured: half of the open files are for clients"
        );
    }
    let idle = &mut proxy.upstream.idle_total;
    *idle = (*idle).min(files / 4 / workers.max(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_open_files_mean_few_connections() {
        let mut proxy = foxy_proxy::Config::default();
        fit(&mut proxy, 2, 256);
        assert_eq!(proxy.limits.connections, 96);
        assert_eq!(proxy.upstream.idle_total, 24);
        let mut proxy = foxy_proxy::Config::default();
        fit(&mut proxy, 2, 1 << 20);
        assert_eq!(proxy.limits.connections, 16_384);
        assert_eq!(proxy.upstream.idle_total, 1024);
    }

    #[test]
    fn the_table_of_open_files_has_room() {
        let room = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
            line.unwrap().trim().parse::<usize>().unwrap()
        };
        let files = room() + 100;
        make_room(files);
        assert!(room() >= files, "{} of {files}", room());
    }
}
