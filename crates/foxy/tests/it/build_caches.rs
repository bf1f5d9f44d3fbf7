//! A build cache in a separate process. One test kills the process while objects are stored. Another test
//! stores a long object while the process has little memory.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

const TOKEN: &str = "token-of-the-builders";

/// A running build cache. The process is killed when this value is dropped. An orderly end is not needed,
/// because a build cache must survive a kill at any time.
struct Cache {
    child: Child,
    address: SocketAddr,
}

impl Cache {
    /// Starts a build cache whose store is in this folder.
    fn start(folder: &Path) -> Self {
        (0..5)
            .find_map(|_| Self::try_start(folder))
            .expect("it goes on running, with one of five addresses")
    }

    fn try_start(folder: &Path) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let digest = Sha256::digest(TOKEN);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let tokens = folder.join("tokens");
        std::fs::write(&tokens, format!("{digest} user=ci\n")).unwrap();
        let config = folder.join("foxy.toml");
        let text = format!(
            "admin = \"off\"\nmemory = \"64MiB\"\n[[site]]\nkind = \"objects\"\nname = \"build\"\n\
             listen = \"{address}\"\nwrite = \"ci\"\n[login]\ntoken_file = {tokens:?}\nat = \"build\"\n\
             [[store]]\npath = {:?}\nsize = \"1GiB\"\n",
            folder.join("store")
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_foxy"))
            .env_clear()
            .env("STATE_DIRECTORY", folder)
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut cache = Self { child, address };
        for _ in 0..3000 {
            if cache.child.try_wait().unwrap().is_some() {
                return None;
            }
            if TcpStream::connect(address).is_ok() {
                return Some(cache);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not listen after 60 s");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the largest memory use of the process so far, in bytes.
    fn peak(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the status of the answer; `None` if the connection broke.
fn put(
    address: SocketAddr,
    path: &str,
    pieces: &mut dyn Iterator<Item = Vec<u8>>,
    length: u64,
) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    for piece in pieces {
        stream.write_all(&piece).ok()?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.get(9..12)?.parse().ok()
}

fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap();
    let status = std::str::from_utf8(&answer[9..12])
        .unwrap()
        .parse()
        .unwrap();
    (status, answer.split_off(head + 4))
}

/// Returns bytes that differ for each seed and at each position.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}

const LENGTHS: [usize; 4] = [300, 50_000, 900_000, 3_000_000];

/// Returns the body of this version of a key. It begins with the version's number.
fn version(key: u64, number: u64) -> Vec<u8> {
    let seed = 1 + key * 1_000_000 + number;
    let mut body = number.to_le_bytes().to_vec();
    body.extend(bytes(seed, LENGTHS[(seed % 4) as usize]));
    body
}

#[test]
fn after_a_kill_an_object_is_whole_and_not_an_older_one_or_not_there() {
    const KEYS: u64 = 16;
    let folder = tempfile::tempdir().unwrap();
    // For each key: the newest version that was confirmed as stored, and the newest version whose storing was
    // begun.
    let versions = Mutex::new(BTreeMap::from_iter((0..KEYS).map(|key| (key, (0, 0)))));
    let (mut found, mut absent) = (0, 0);
    for round in 0..3 {
        let mut cache = Cache::start(folder.path());
        let address = cache.address;
        for (key, (confirmed, begun)) in versions.lock().unwrap().iter() {
            match get(address, &format!("/k/{key}")) {
                (404, _) => absent += 1,
                (200, body) => {
                    let number = u64::from_le_bytes(body[..8].try_into().unwrap());
                    assert!(
                        body == version(*key, number),
                        "round {round}, key {key}: a mix"
                    );
                    assert!(
                        (*confirmed..=*begun).contains(&number),
                        "round {round}, key {key}: {number}, not {confirmed} to {begun}"
                    );
                    found += 1;
                }
                (status, _) => panic!("round {round}, key {key}: {status}"),
            }
        }
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (versions, end) = (&versions, &end);
                scope.spawn(move || {
                    let keys = (0..KEYS).filter(|key| key % 4 == writer);
                    for key in keys.cycle() {
                        let number = {
                            let mut all = versions.lock().unwrap();
                            let of = all.get_mut(&key).unwrap();
                            of.1 += 1;
                            of.1
                        };
                        let body = version(key, number);
                        let length = body.len() as u64;
                        let path = format!("/k/{key}");
                        let status = put(address, &path, &mut std::iter::once(body), length);
                        if matches!(status, Some(201 | 204)) {
                            versions.lock().unwrap().get_mut(&key).unwrap().0 = number;
                        }
                        if end.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_secs(3));
            cache.kill();
            end.store(true, Ordering::SeqCst);
        });
    }
    println!("{found} found, {absent} absent");
    assert!(found > 0, "a kill does not forget everything");
}

#[test]
fn a_long_object_takes_little_memory() {
    const PIECE: usize = 1 << 20;
    const PIECES: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::start(folder.path());
    let mut digest = Sha256::new();
    (0..PIECES).for_each(|n| digest.update(bytes(n, PIECE)));
    let digest = digest.finalize();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/cas/{digest}");
    let length = PIECES * PIECE as u64;
    let before = cache.peak();
    let mut pieces = (0..PIECES).map(|n| bytes(n, PIECE));
    assert_eq!(put(cache.address, &path, &mut pieces, length), Some(201));
    let (status, body) = get(cache.address, &path);
    assert_eq!((status, body.len() as u64), (200, length));
    assert!(
        body.chunks(PIECE)
            .zip(0..)
            .all(|(got, n)| got == bytes(n, PIECE))
    );
    let (before, after) = (before >> 20, cache.peak() >> 20);
    println!("{before} MiB before, {after} MiB at most");
    assert!(after < 128, "{after} MiB for an object of 200 MiB");
}
