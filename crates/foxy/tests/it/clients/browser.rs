//! A headless Chromium: it loads a page of 40 sub-resources twice, and uses a websocket echo.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::clients::process::{Foxy, run, tool};
use crate::clients::web::{self, Request, Response};

pub(crate) const SUB_RESOURCES: usize = 40;

#[test]
fn a_page_of_forty_parts_looks_the_same_from_the_cache() {
    let Some(_) = tool("chromium", "chromium") else {
        return;
    };
    let origin = web::serve(page).unwrap();
    let foxy = Foxy::forward(&[443]);
    let proxy = format!("--proxy-server={}", foxy.proxy);
    let shot = |name: &str| {
        let file = foxy.dir().join(name);
        let screenshot = format!("--screenshot={}", file.display());
        let profile = foxy.dir().join(format!("profile-{name}"));
        let mut browser = chromium(&profile);
        browser.args([
            &proxy,
            "--proxy-bypass-list=<-loopback>",
            "--window-size=800,600",
        ]);
        run(browser.args([&screenshot, &origin.url("/")]));
        std::fs::read(file).expect("a screenshot")
    };
    let first = shot("first.png");
    let asked = origin
        .paths()
        .iter()
        .filter(|p| p.starts_with("/part/"))
        .count();
    assert_eq!(asked, SUB_RESOURCES, "{:?}", origin.paths());
    let second = shot("second.png");
    let again = origin
        .paths()
        .iter()
        .filter(|p| p.starts_with("/part/"))
        .count();
    assert_eq!(
        again, SUB_RESOURCES,
        "a second visit asked the origin again"
    );
    assert!(first == second, "the cached page looks different");
    assert!(first.len() > 2000, "the screenshot is empty");
}

#[test]
fn a_websocket_echoes_through_the_reverse_proxy() {
    let Some(_) = tool("chromium", "chromium") else {
        return;
    };
    let (origin, messages) = echo_server();
    let foxy = Foxy::reverse(&format!("http://{origin}"));
    let file = foxy.dir().join("echo.html");
    let page = WEBSOCKET_PAGE.replace("HOST", &foxy.proxy.to_string());
    std::fs::write(&file, page).unwrap();
    let mut browser = chromium(&foxy.dir().join("profile"));
    // With a debugging port, the browser does not end by itself. It runs until it is killed.
    browser.args(["--remote-debugging-port=0", "--disable-logging"]);
    let mut browser = browser
        .arg(format!("file://{}", file.display()))
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium starts");
    let next = || messages.recv_timeout(Duration::from_secs(60));
    let (first, second) = (next(), next());
    let _ = browser.kill();
    let _ = browser.wait();
    assert_eq!(first.as_deref(), Ok("hello through foxy"));
    // The page reports the message that came back, so both directions work.
    assert_eq!(second.as_deref(), Ok("echoed: hello through foxy"));
}

/// Starts a websocket server that sends every message back. Also returns the messages that it received.
fn echo_server() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (told, messages) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let told = told.clone();
            std::thread::spawn(move || {
                let Ok(mut socket) = tungstenite::accept(stream) else {
                    return;
                };
                while let Ok(message) = socket.read() {
                    if let Ok(text) = message.to_text() {
                        let _ = told.send(text.to_owned());
                    }
                    if message.is_close() || socket.send(message).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, messages)
}

pub(crate) fn chromium(profile: &std::path::Path) -> Command {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
}

pub(crate) fn page(request: &Request) -> Response {
    if let Some(part) = request.path.strip_prefix("/part/") {
        let hue = part.trim_end_matches(".svg").parse::<usize>().unwrap_or(0) * 9;
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='90' height='90'>\
             <rect width='90' height='90' fill='hsl({hue},80%,50%)'/></svg>"
        );
        return Response::cacheable("image/svg+xml", svg);
    }
    match request.path.as_str() {
        "/" => Response::cacheable("text/html", index()),
        _ => Response::new(404, "text/plain", "no such page"),
    }
}

fn index() -> String {
    let mut html = String::from("<!doctype html><title>forty</title><body>");
    for part in 0..SUB_RESOURCES {
        let _ = write!(html, "<img src='/part/{part}.svg' width=90 height=90>");
    }
    html
}

const WEBSOCKET_PAGE: &str = "<!doctype html><title>echo</title><body>waiting<script>
const socket = new WebSocket('ws://HOST/echo');
socket.onopen = () => socket.send('hello through foxy');
socket.onmessage = event => {
  socket.onmessage = null;
  socket.send('echoed: ' + event.data);
};
</script>";
