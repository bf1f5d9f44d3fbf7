//! A room is a top-level module of a crate. The command `bench rooms` shows the rooms that requests enter:
//! the modules and crates whose code the workers of a running Foxy execute.
//!
//! `perf` samples the workers under a load. Each sample counts for the source file of its instruction and for
//! the files of the functions that were inlined there. A file with fewer than one sample in two thousand is
//! ignored: such code runs a few times in a load, not in each request.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::report::Outcome;
use crate::rooms;
use crate::workspace::output;

/// Number of samples per second of each worker.
const RATE: &str = "3000";
/// A file is ignored if it has fewer than one sample among this number of samples.
const RARE: usize = 2000;
const WANTS: &str = "it comes with the packages linux-perf and binutils";

/// Options of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct RoomsArgs {
    /// PID of a Foxy that is under load
    pid: u32,
    /// Sample threads whose name is this text and a number
    #[arg(long, default_value = "foxy-")]
    threads: String,
    /// Duration of the sampling, in seconds
    #[arg(long, default_value_t = 6)]
    seconds: u32,
}

/// Prints the files with their samples, and the rooms.
pub(super) fn run(args: &RoomsArgs) -> Result<Outcome, String> {
    let binary = std::fs::read_link(format!("/proc/{}/exe", args.pid))
        .map_err(|error| format!("no process {}: {error}", args.pid))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let record = folder.path().join("perf.data");
    let (pid, seconds) = (args.pid.to_string(), args.seconds.to_string());
    let mut perf = Command::new("perf");
    perf.args(["record", "-F", RATE, "-p", &pid, "-o"])
        .arg(&record);
    output(perf.args(["--", "sleep", &seconds]), WANTS)?;
    let script = output(
        Command::new("perf")
            .args(["script", "--show-mmap-events", "-F", "comm,ip,sym,dso"])
            .arg("-i")
            .arg(&record),
        WANTS,
    )?;
    let headers = output(Command::new("readelf").arg("-lW").arg(&binary), WANTS)?;
    let samples = Samples::read(&script, &binary.to_string_lossy(), &args.threads);
    let places = Places::read(&script, &headers, &binary.to_string_lossy());
    let addresses: BTreeMap<u64, u64> = samples
        .own
        .keys()
        .filter_map(|ip| Some((places.address(*ip)?, *ip)))
        .collect();
    let list = folder.path().join("addresses");
    let text: Vec<String> = addresses.keys().map(|at| format!("{at:#x}\n")).collect();
    std::fs::write(&list, text.concat()).map_err(|error| error.to_string())?;
    let lines = output(
        Command::new("addr2line")
            .args(["-a", "-i", "-e"])
            .arg(&binary)
            .arg(format!("@{}", list.display())),
        WANTS,
    )?;
    print(&files(&lines, &addresses, &samples), samples.total);
    Ok(Outcome::single(Ok(())))
}

/// The numbers of samples of the chosen threads.
#[derive(Debug, Default)]
struct Samples {
    total: usize,
    /// The samples in the program itself, by address of the instruction.
    own: BTreeMap<u64, usize>,
}

impl Samples {
    fn read(script: &str, binary: &str, threads: &str) -> Self {
        let mut samples = Self::default();
        for line in script
            .lines()
            .filter(|line| !line.contains(" PERF_RECORD_"))
        {
            let mut words = line.split_whitespace();
            let (Some(thread), Some(ip)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(ip) = u64::from_str_radix(ip, 16) else {
                continue;
            };
            let number = thread.strip_prefix(threads);
            if number.is_some_and(|rest| rest.parse::<u16>().is_ok()) {
                samples.total += 1;
                if line.ends_with(&format!("({binary})")) {
                    *samples.own.entry(ip).or_default() += 1;
                }
            }
        }
        samples
    }
}

/// The places of the program's parts in memory and in its file.
#[derive(Debug)]
struct Places {
    /// Start, length and offset in the file of each mapping.
    mapped: Vec<[u64; 3]>,
    /// Offset in the file, address and length of each part that is loaded into memory.
    loaded: Vec<[u64; 3]>,
}

impl Places {
    fn read(script: &str, headers: &str, binary: &str) -> Self {
        let mapped = script
            .lines()
            .filter(|line| line.contains(" PERF_RECORD_MMAP") && line.ends_with(binary));
        let loaded = headers
            .lines()
            .filter(|line| line.trim_start().starts_with("LOAD "));
        Self {
            mapped: mapped
                .filter_map(|line| three(line.split_once('[')?.1))
                .collect(),
            loaded: loaded
                .filter_map(|line| {
                    let mut words = line.split_whitespace().skip(1).filter_map(hexadecimal);
                    let (offset, address) = (words.next()?, words.next()?);
                    Some([offset, address, words.nth(1)?])
                })
                .collect(),
        }
    }

    /// Returns the address that the program's debug information uses for the instruction at `ip`.
    fn address(&self, ip: u64) -> Option<u64> {
        let find = |list: &[[u64; 3]], at, start: usize, length: usize| {
            let fits = |part: &&[u64; 3]| (part[start]..part[start] + part[length]).contains(&at);
            list.iter().find(fits).copied()
        };
        let [start, _, offset] = find(&self.mapped, ip, 0, 1)?;
        let at = ip - start + offset;
        let [offset, address, _] = find(&self.loaded, at, 0, 2)?;
        Some(at - offset + address)
    }
}

/// Parses the three numbers in `0x55b9c7a2e000(0x5000) @ 0x2000 `.
fn three(text: &str) -> Option<[u64; 3]> {
    let (start, rest) = text.split_once('(')?;
    let (length, rest) = rest.split_once(") @ ")?;
    let offset = rest.split_whitespace().next()?;
    Some([
        hexadecimal(start)?,
        hexadecimal(length)?,
        hexadecimal(offset)?,
    ])
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// Number of samples of each file in the workspace. `lines` is the output of `addr2line`, which names the
/// files of each address.
fn files(
    lines: &str,
    addresses: &BTreeMap<u64, u64>,
    samples: &Samples,
) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    let mut count = 0;
    let mut seen = BTreeSet::new();
    for line in lines.lines() {
        if let Some(address) = line.strip_prefix("0x") {
            let ip = hexadecimal(address).and_then(|address| addresses.get(&address));
            count = ip.and_then(|ip| samples.own.get(ip)).copied().unwrap_or(0);
            seen.clear();
        } else if let Some(file) = own_file(line)
            && seen.insert(file)
        {
            *counted.entry(file.to_owned()).or_default() += count;
        }
    }
    counted
}

/// Returns the path below `crates/`, for example `proxy/src/key.rs`, if the line names a file of the
/// workspace's crates.
fn own_file(line: &str) -> Option<&str> {
    let file = line.split(':').next()?;
    let name = file.rsplit_once("/crates/").map(|(_, name)| name)?;
    // The standard library also has folders with this name.
    let own = !file.contains("/rustc/") && !file.contains("/library/");
    own.then_some(name)
}

/// The room of a file: the name of its crate, and in a crate with folders also the name of the first folder.
fn room(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    match parts.as_slice() {
        [package, "src", room, ..] if rooms::are_in(package) => {
            format!("{package}/{}", room.trim_end_matches(".rs"))
        }
        [package, ..] => (*package).to_owned(),
        [] => String::new(),
    }
}

fn print(files: &BTreeMap<String, usize>, total: usize) {
    let on_the_way = |count: usize| count * RARE >= total;
    let mut sorted: Vec<_> = files.iter().filter(|(_, n)| on_the_way(**n)).collect();
    sorted.sort_by_key(|(file, count)| (std::cmp::Reverse(**count), (*file).clone()));
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for (file, count) in &sorted {
        println!("{count:6} {file}");
        *rooms.entry(room(file)).or_default() += 1;
    }
    println!(
        "{total} samples; {} files in {} rooms, {} files left out with fewer than one sample in {RARE}",
        sorted.len(),
        rooms.len(),
        files.len() - sorted.len()
    );
    for (room, files) in rooms {
        println!("   {room}: {files}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        "foxy PERF_RECORD_MMAP2 4798/4798: [0x5000(0x3000) @ 0x2000 fe:00 247774 0]: r-xp /bin/foxy
foxy-0  5100 a::b (/bin/foxy)
foxy-0  5100 a::b (/bin/foxy)
foxy-store-0  5200 a::c (/bin/foxy)
foxy-0  ffffffff81000000 read ([kernel.kallsyms])
";
    const HEADERS: &str = "  LOAD 0x000000 0x0 0x0 0x1000 0x1000 R 0x1000
  LOAD           0x002000 0x0000000000003000 0x0000000000003000 0x3000 0x3000 R E 0x1000
";

    #[test]
    fn samples_are_counted_for_files_and_rooms() {
        let samples = Samples::read(SCRIPT, "/bin/foxy", "foxy-");
        assert_eq!((samples.total, samples.own.get(&0x5100)), (3, Some(&2)));
        let places = Places::read(SCRIPT, HEADERS, "/bin/foxy");
        assert_eq!(places.address(0x5100), Some(0x3100));
        assert_eq!(places.address(0x9000), None);
        let lines = "0x0000000000003100
/x/crates/proxy/src/cache/key.rs:7
/x/crates/proxy/src/cache/key.rs:9
/rustc/9/library/crates/core/a.rs:1
/x/crates/base/src/hash.rs:1 (discriminator 2)
";
        let addresses = BTreeMap::from([(0x3100, 0x5100)]);
        let files = files(lines, &addresses, &samples);
        let counts: Vec<_> = files.iter().map(|(file, n)| (file.as_str(), *n)).collect();
        assert_eq!(
            counts,
            [("base/src/hash.rs", 2), ("proxy/src/cache/key.rs", 2)]
        );
        assert_eq!(room("proxy/src/cache/key.rs"), "proxy/cache");
        assert_eq!(room("proxy/src/key.rs"), "proxy/key");
        assert_eq!(room("base/src/hash.rs"), "base");
    }
}
