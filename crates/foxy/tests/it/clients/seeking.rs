//! Clients that read large files in pieces: curl with several ranges, and Chromium seeking in a video.

use std::process::Stdio;
use std::time::Duration;

use crate::clients::browser::chromium;
use crate::clients::curl::body;
use crate::clients::process::{Foxy, run, tool};
use crate::clients::web::{self, Response, Web};
use crate::clients::webm;

/// Length of the video in seconds.
const SECONDS: usize = 60;
/// Number of bytes that Foxy may fetch in addition to the video: heads, the page, and bytes of fetches that
/// were abandoned later.
const SLACK: u64 = 2 << 20;
/// Positions to which the page seeks, in seconds and in this order.
const SEEKS: [usize; 8] = [40, 10, 55, 25, 41, 3, 58, 10];

#[test]
fn several_ranges_of_a_large_object_come_as_parts() {
    let Some(mut curl) = tool("curl", "curl") else {
        return;
    };
    let whole = body(12_000_000);
    let served = whole.clone();
    let origin = web::serve(move |_| large("text/plain", served.clone())).unwrap();
    let foxy = Foxy::forward(&[443]);
    let url = origin.url("/large");
    let ranges = [(100, 199), (11_000_000, 11_000_099), (5_000_000, 5_000_009)];
    let asked = ranges.map(|(from, to)| format!("{from}-{to}")).join(",");
    curl.args(["-sS", "-i", "-r", &asked, "-x", &foxy.url(), &url]);
    for _ in 0..2 {
        let answer = run(&mut curl).stdout;
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 206"), "{text}");
        assert!(text.contains("multipart/byteranges; boundary="), "{text}");
        let mut rest = &answer[..];
        for (from, to) in ranges {
            let head = format!("bytes {from}-{to}/12000000\r\n");
            let at = find(rest, head.as_bytes()).unwrap_or_else(|| panic!("no {head} in {text}"));
            let start = at + find(&rest[at..], b"\r\n\r\n").expect("a part's head ends") + 4;
            let part = &rest[start..start + (to - from + 1)];
            assert!(part == &whole[from..=to], "wrong bytes in {from}-{to}");
            rest = &rest[start + part.len()..];
        }
        assert!(
            rest.starts_with(b"\r\n--") && rest.ends_with(b"--\r\n"),
            "{text}"
        );
    }
    let bytes = foxy.fetched_bytes();
    assert!(bytes <= 3 * (1 << 20), "three pieces cost {bytes} bytes");
}

#[test]
fn chromium_seeks_in_a_video() {
    let Some(_) = tool("chromium", "chromium") else {
        return;
    };
    let video = webm::video(SECONDS, 400_000);
    let length = video.len() as u64;
    let page = PAGE.replace("TIMES", &format!("{SEEKS:?}"));
    let origin = web::serve(move |request| match request.path.as_str() {
        "/" => Response::cacheable("text/html", page.clone()),
        "/video.webm" => large("video/webm", video.clone()),
        _ => Response::new(200, "text/plain", "noted").with("Cache-Control", "no-store"),
    });
    let origin = origin.unwrap();
    let foxy = Foxy::reverse(&origin.url(""));
    let seen: String = SEEKS.map(webm::colour).into_iter().collect();
    assert_eq!(watch(&foxy, &origin, 1), seen);
    let first = foxy.fetched_bytes();
    assert!(first < length + SLACK, "{first} bytes for {length}");
    assert_eq!(watch(&foxy, &origin, 2), seen);
    let both = foxy.fetched_bytes();
    assert!(both < length + SLACK, "{first}, then {both} of {length}");
}

/// Returns the colours that a new browser shows at the positions in `SEEKS`.
fn watch(foxy: &Foxy, origin: &Web, visit: usize) -> String {
    let mut browser = chromium(&foxy.dir().join(format!("profile-{visit}")));
    // With a debugging port the browser runs until it is killed.
    browser.args(["--remote-debugging-port=0", "--disable-logging"]);
    let page = format!("http://{}/", foxy.proxy);
    let mut browser = browser
        .arg(page)
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium starts");
    let seen = || {
        let paths = origin.paths();
        let mut told = paths.iter().filter_map(|p| p.strip_prefix("/seen/"));
        told.nth(visit - 1).map(str::to_owned)
    };
    let mut told = None;
    for _ in 0..600 {
        told = seen();
        if told.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = browser.kill();
    let _ = browser.wait();
    told.unwrap_or_else(|| panic!("nothing seen after a minute: {:?}", origin.paths()))
}

/// Returns a cacheable answer with a strong validator.
fn large(kind: &str, body: Vec<u8>) -> Response {
    Response::cacheable(kind, body).with("ETag", "\"one\"")
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

const PAGE: &str = "<!doctype html><title>seek</title>
<body><video src=/video.webm preload=metadata muted></video><script>
const video = document.querySelector('video');
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const times = TIMES;
let seen = '';
function tell(what) { fetch('/seen/' + what); }
function name([r, g, b]) { return r > 100 ? (g > 100 ? 'y' : 'r') : g > 100 ? 'g' : 'b'; }
function next() {
  if (seen.length == times.length) { tell(seen); return; }
  video.currentTime = times[seen.length] + 0.5;
}
// 'seeked' may come before the frame can be drawn: a busy browser would draw the frame before it.
// A frame tells by its own time, in microseconds, which second it belongs to.
function look() {
  const frame = new VideoFrame(video);
  const sought = Math.floor(frame.timestamp / 1e6) == times[seen.length];
  if (sought) canvas.drawImage(frame, 0, 0, 8, 8);
  frame.close();
  if (!sought) { setTimeout(look, 50); return; }
  seen += name(canvas.getImageData(4, 4, 1, 1).data);
  next();
}
video.onseeked = look;
video.onerror = () => tell('error-' + video.error.message);
video.onloadedmetadata = next;
</script>";
