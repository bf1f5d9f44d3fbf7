//! A small threaded web server for real clients, plain or with TLS. One closure answers each request.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A parsed request, with its complete body.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) fields: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// The answer of a handler.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Returns a 200 that may be stored for an hour.
    pub(crate) fn cacheable(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, content_type, body).with("Cache-Control", "max-age=3600")
    }
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            fields: vec![("Content-Type".into(), content_type.into())],
            body: body.into(),
        }
    }
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

/// A running server. It ends with the test process.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Returns the number of requests that arrived.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
    /// Returns the requested paths, in the order of arrival.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.lock().map(|p| p.clone()).unwrap_or_default()
    }
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Starts a plain server on a free loopback port.
pub(crate) fn serve(
    handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> io::Result<Web> {
    start(handler, |stream| Ok(Box::new(stream)))
}

/// Starts a server whose connections are wrapped by `wrap` (TLS).
pub(crate) fn start(
    handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    wrap: impl Fn(TcpStream) -> io::Result<Box<dyn ReadWrite>> + Send + Sync + 'static,
) -> io::Result<Web> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let web = Web {
        address: listener.local_addr()?,
        requests: Arc::default(),
        paths: Arc::default(),
    };
    let (requests, paths) = (web.requests.clone(), web.paths.clone());
    let (handler, wrap) = (Arc::new(handler), Arc::new(wrap));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (handler, wrap) = (handler.clone(), wrap.clone());
            let (requests, paths) = (requests.clone(), paths.clone());
            std::thread::spawn(move || {
                let Ok(stream) = wrap(stream) else { return };
                let mut reader = BufReader::new(stream);
                while let Ok(Some(request)) = read_request(&mut reader) {
                    requests.fetch_add(1, Ordering::SeqCst);
                    if let Ok(mut paths) = paths.lock() {
                        paths.push(request.path.clone());
                    }
                    let head_only = request.method == "HEAD";
                    let response = answer(&request, handler.as_ref());
                    if write_response(reader.get_mut(), &response, head_only).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(web)
}

/// A byte stream in both directions.
pub(crate) trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// Returns the handler's answer, cut to the requested range.
fn answer(request: &Request, handler: &dyn Fn(&Request) -> Response) -> Response {
    let mut response = handler(request);
    let range = request
        .fields
        .get("range")
        .and_then(|r| r.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|r| r.split_once('-')) else {
        return response;
    };
    let total = response.body.len();
    let (Ok(first), last) = (first.parse::<usize>(), last.parse::<usize>()) else {
        return response;
    };
    let end = last.map_or(total, |last| (last + 1).min(total));
    if response.status == 200 && first < end {
        response.status = 206;
        let value = format!("bytes {first}-{}/{total}", end - 1);
        response.fields.push(("Content-Range".into(), value));
        response.body = response.body[first..end].to_vec();
    }
    response
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut fields = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let body = read_body(reader, &fields)?;
    Ok(Some(Request {
        method,
        path,
        query,
        fields,
        body,
    }))
}

fn read_body(reader: &mut impl BufRead, fields: &HashMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if fields
        .get("transfer-encoding")
        .is_some_and(|v| v == "chunked")
    {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            reader.by_ref().take(size).read_to_end(&mut body)?;
            line.clear();
            reader.read_line(&mut line)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = fields
        .get("content-length")
        .and_then(|v| v.parse().ok())
        .unwrap_or(0);
    reader.by_ref().take(length).read_to_end(&mut body)?;
    Ok(body)
}

fn write_response(
    stream: &mut dyn ReadWrite,
    response: &Response,
    head_only: bool,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\n",
        response.status,
        response.body.len()
    );
    for (name, value) in &response.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(&response.body)?;
    }
    stream.flush()
}
