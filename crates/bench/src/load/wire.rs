//! Writes the bytes of requests. Requests to a forward proxy contain absolute URLs, and requests to a reverse
//! proxy contain paths.

use crate::knobs::{Knobs, push_number};

use super::request_spec::RequestSpec;

/// The way in which requests name their origin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Requests to a forward proxy contain absolute URLs. Each origin server is an address 127.x.y.z with
    /// this port.
    Forward {
        /// Port of the origin.
        port: u16,
    },
    /// Requests to a reverse proxy or directly to an origin contain paths and this value of Host. The
    /// server's number is in the URL.
    Reverse {
        /// Value of the Host field.
        host: String,
    },
}

/// The properties that all requests of a load share.
#[derive(Clone, Debug)]
pub struct Style {
    /// The way in which the requests name their origin server.
    pub mode: Mode,
    /// True if the version is in a request field `Bench-Want` and not in the URL. Then all versions of an
    /// object share one URL and replace each other.
    pub same_url: bool,
    /// Header lines that are added to each request, including their line ends.
    pub extra: String,
    /// Query that is added to each URL, such as `&l=100`.
    pub knobs: String,
}

/// The address that represents a server: 127.1.0.1 is the first server.
#[must_use]
pub fn server_address(server: u32) -> [u8; 4] {
    let [_, high, middle, low] = server.to_be_bytes();
    [127, 1 + high % 250, middle, low]
}

/// The host to which bodies belong: the address of the server, or `h<server>` in reverse mode.
pub(super) fn body_host(mode: &Mode, server: u32, out: &mut Vec<u8>) {
    match mode {
        Mode::Forward { .. } => push_address(out, server),
        Mode::Reverse { .. } => {
            out.push(b'h');
            push_number(out, u64::from(server));
        }
    }
}

fn push_address(out: &mut Vec<u8>, server: u32) {
    for (at, part) in server_address(server).into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        push_number(out, u64::from(part));
    }
}

/// Appends the URL of an object. The URL is absolute in forward mode.
pub fn write_url(style: &Style, spec: &RequestSpec, out: &mut Vec<u8>) {
    let reverse = matches!(style.mode, Mode::Reverse { .. });
    if let Mode::Forward { port } = style.mode {
        out.extend_from_slice(b"http://");
        push_address(out, spec.server);
        out.push(b':');
        push_number(out, u64::from(port));
    }
    let mut knobs = Knobs::new(spec.id, spec.size);
    knobs.no_store = spec.no_store;
    knobs.server = reverse.then_some(spec.server);
    if style.same_url {
        knobs.size = 0;
    } else {
        knobs.version = spec.version;
    }
    knobs.write(out);
    out.extend_from_slice(style.knobs.as_bytes());
}

/// Writes a complete request. If `reload` is true, the request makes caches fetch the object again.
pub(crate) fn write_request(style: &Style, spec: &RequestSpec, reload: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"GET ");
    write_url(style, spec, out);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    match &style.mode {
        Mode::Forward { port } => {
            push_address(out, spec.server);
            out.push(b':');
            push_number(out, u64::from(*port));
        }
        Mode::Reverse { host } => out.extend_from_slice(host.as_bytes()),
    }
    out.extend_from_slice(b"\r\nUser-Agent: foxy-bench\r\nAccept: */*\r\n");
    if style.same_url {
        out.extend_from_slice(b"Bench-Want: ");
        push_number(out, u64::from(spec.version));
        out.push(b' ');
        push_number(out, spec.size);
        out.extend_from_slice(b"\r\n");
    }
    if reload {
        out.extend_from_slice(b"Cache-Control: no-cache\r\n");
    }
    out.extend_from_slice(style.extra.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: RequestSpec = RequestSpec {
        server: 258,
        id: 7,
        size: 10,
        version: 2,
        no_store: false,
    };

    fn text(mode: Mode, same_url: bool, reload: bool) -> String {
        let style = Style {
            mode,
            same_url,
            extra: "X: y\r\n".into(),
            knobs: "&l=1".into(),
        };
        let mut out = Vec::new();
        write_request(&style, &SPEC, reload, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forward_and_reverse() {
        let forward = text(Mode::Forward { port: 80 }, false, false);
        assert!(forward.starts_with("GET http://127.1.1.2:80/o/7?s=10&v=2&l=1 HTTP/1.1\r\n"));
        assert!(
            forward.contains("\r\nHost: 127.1.1.2:80\r\n") && forward.ends_with("X: y\r\n\r\n")
        );
        let reverse = text(Mode::Reverse { host: "a.b".into() }, true, true);
        assert!(reverse.starts_with("GET /o/7?s=0&h=258&l=1 HTTP/1.1\r\nHost: a.b\r\n"));
        assert!(reverse.contains("Bench-Want: 2 10\r\nCache-Control: no-cache\r\n"));
    }
}
