//! Answers one request from a file, or from the origin. In the second case it stores the answer in a file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use foxy_base::hash64;

/// Answers one request on the client connection, which is standard input. Then the process ends.
pub(crate) fn handle(cache: Option<&Path>) -> io::Result<()> {
    let mut client = TcpStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(head) = read_head(&mut client)? else {
        return Ok(());
    };
    let (authority, path) = target(&head).ok_or_else(|| invalid("no absolute URL"))?;
    let file = cache.map(|folder| file_of(folder, authority, path));
    if let Some(file) = &file
        && let Ok(mut stored) = File::open(file)
    {
        return answer_stored(&mut client, &mut stored);
    }
    let mut origin = TcpStream::connect(authority)?;
    write!(
        origin,
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    )?;
    relay(&mut client, &mut origin, file.as_deref())
}

/// Reads the request up to the empty line. Returns `None` if the client disconnected.
fn read_head(client: &mut TcpStream) -> io::Result<Option<String>> {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match client.read(&mut buffer)? {
            0 => return Ok(None),
            n => head.extend_from_slice(&buffer[..n]),
        }
    }
    String::from_utf8(head)
        .map(Some)
        .map_err(|_| invalid("head"))
}

/// Authority and path of the absolute URL in a request line.
fn target(head: &str) -> Option<(&str, &str)> {
    let url = head.split(' ').nth(1)?.strip_prefix("http://")?;
    Some(url.split_at(url.find('/')?))
}

/// Path of the file for a URL. Each origin has its own folder.
fn file_of(folder: &Path, authority: &str, path: &str) -> PathBuf {
    let name = hash64(0, path.as_bytes());
    folder.join(authority).join(format!("{name:016x}"))
}

fn answer_stored(client: &mut TcpStream, stored: &mut File) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 OK\r\nCache-Status: fork-proxy; hit\r\n")?;
    io::copy(stored, client).map(|_| ())
}

/// Forwards an answer, and writes a copy of it to a file if its status is 200. The file gets its
/// final name when it is complete. It does not contain the status line, because all stored answers
/// have the same status line.
fn relay(client: &mut TcpStream, origin: &mut TcpStream, file: Option<&Path>) -> io::Result<()> {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";
    let mut buffer = vec![0; 64 << 10];
    let mut begin = Vec::new();
    while begin.len() < OK.len() {
        match origin.read(&mut buffer)? {
            0 => return Err(invalid("the origin closed")),
            n => begin.extend_from_slice(&buffer[..n]),
        }
    }
    let mut copy = match file {
        Some(file) if begin.starts_with(OK) => Some(Copy::create(file)?),
        _ => None,
    };
    client.write_all(&begin[..OK.len()])?;
    client.write_all(b"Cache-Status: fork-proxy; fwd=uri-miss\r\n")?;
    let mut piece = begin.split_off(OK.len());
    loop {
        client.write_all(&piece)?;
        if let Some(copy) = &mut copy {
            copy.file.write_all(&piece)?;
        }
        let n = origin.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        piece.clear();
        piece.extend_from_slice(&buffer[..n]);
    }
    copy.map_or(Ok(()), |copy| fs::rename(&copy.aside, &copy.name))
}

struct Copy {
    file: File,
    aside: PathBuf,
    name: PathBuf,
}

impl Copy {
    fn create(name: &Path) -> io::Result<Self> {
        let aside = name.with_extension(std::process::id().to_string());
        let file = File::create(&aside).or_else(|_| {
            if let Some(folder) = name.parent() {
                fs::create_dir_all(folder)?;
            }
            File::create(&aside)
        })?;
        Ok(Self {
            file,
            aside,
            name: name.to_owned(),
        })
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn urls_and_files() {
        let head = "GET http://127.1.0.1:80/o/5?s=1 HTTP/1.1\r\n\r\n";
        assert_eq!(target(head), Some(("127.1.0.1:80", "/o/5?s=1")));
        assert_eq!(target("GET / HTTP/1.1\r\n\r\n"), None);
        let of = |path| file_of(Path::new("c"), "a:80", path);
        assert!(of("/1").starts_with("c/a:80") && of("/1") != of("/2"));
    }

    #[test]
    fn a_miss_becomes_a_file_that_is_the_next_answer() {
        let folder = std::env::temp_dir().join(format!("fork-proxy-{}", std::process::id()));
        let file = folder.join("a").join("b");
        let pair = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (near, listener.accept().unwrap().0)
        };
        let (mut origin, mut from_origin) = pair();
        origin
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            .unwrap();
        drop(origin);
        let read = |mut stream: TcpStream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let (client, mut served) = pair();
        relay(&mut served, &mut from_origin, Some(&file)).unwrap();
        drop(served);
        assert!(read(client).ends_with("fwd=uri-miss\r\nContent-Length: 2\r\n\r\nhi"));
        let (client, mut served) = pair();
        answer_stored(&mut served, &mut File::open(&file).unwrap()).unwrap();
        drop(served);
        let want =
            "HTTP/1.1 200 OK\r\nCache-Status: fork-proxy; hit\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(read(client), want);
        fs::remove_dir_all(folder).unwrap();
    }
}
