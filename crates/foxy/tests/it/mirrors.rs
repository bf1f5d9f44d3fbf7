//! Tests that operators can name stored objects of mirrors by the URLs that clients use.

use crate::common::{Watched, ask, origin};

fn fetch(foxy: &Watched, accept: &str) -> String {
    let fields = format!("Host: {}\r\nAccept: {accept}\r\n", foxy.listen);
    ask(foxy.listen, "GET /pypi/simple/a/", &fields)
}

/// Returns the answer of `/why`, without white space.
fn why(foxy: &Watched, host: &str, accept: &str) -> String {
    let url = format!("http%3A%2F%2F{host}%2Fpypi%2Fsimple%2Fa%2F");
    let page = foxy.page(&format!("/why?url={url}&h=Accept:%20{accept}"));
    page.split_whitespace().collect()
}

#[test]
fn why_and_purges_understand_urls_of_mirrors() {
    const HTML: &str = "text/html";
    const JSON: &str = "application/vnd.pypi.simple.v1+json";
    let (upstream, _heads) = origin("Content-Type: text/html\r\n", "<a href=\"a.whl\">a</a>");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("foxy.toml");
    let text = format!(
        "[[mirror]]\npreset = \"pypi\"\nupstream = \"{upstream}\"\n\
         [[mirror]]\npreset = \"npm\"\nupstream = \"http://npm.test\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let foxy = Watched::start(&["--config", file.to_str().unwrap()]);
    let here = foxy.listen.to_string().replace(':', "%3A");
    for accept in [HTML, JSON] {
        let before = why(&foxy, &here, accept);
        assert!(before.contains("\"decision\":\"fetch\""), "{before}");
        let answer = fetch(&foxy, accept);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let after = why(&foxy, &here, accept);
        assert!(after.contains("\"decision\":\"hit\""), "{after}");
        assert!(after.contains("\"site\":\"pypi\""), "{after}");
    }
    // On another host, the same path does not belong to the mirror.
    let elsewhere = why(&foxy, "elsewhere.test", HTML);
    assert!(elsewhere.contains("\"site\":\"forward\""), "{elsewhere}");
    let url = format!("http%3A%2F%2F{here}%2Fpypi%2Fsimple%2Fa%2F");
    let purged = foxy.change(&format!("/purge?url={url}"));
    assert!(purged.starts_with("HTTP/1.1 200 "), "{purged}");
    for accept in [HTML, JSON] {
        let after = why(&foxy, &here, accept);
        assert!(after.contains("\"decision\":\"fetch\""), "{after}");
        let answer = fetch(&foxy, accept);
        assert!(answer.contains("fwd=uri-miss"), "{answer}");
    }
    let prefix = format!("http%3A%2F%2F{here}%2Fpypi%2Fsimple%2F");
    let purged = foxy.change(&format!("/purge?prefix={prefix}"));
    assert!(purged.starts_with("HTTP/1.1 200 "), "{purged}");
    let answer = fetch(&foxy, JSON);
    assert!(answer.contains("fwd=uri-miss"), "{answer}");
    // The following purges name a mirror, so that they apply only to this mirror.
    let of_npm = format!("url=http%3A%2F%2F{here}%2Fnpm%2Fa");
    for (site, what, status, expected) in [
        ("pypi", "tag=news", 400, "; hit"),
        (
            "pypi",
            "url=http%3A%2F%2Felsewhere.test%2Fother",
            404,
            "; hit",
        ),
        ("pypi", &of_npm, 404, "; hit"),
        ("npm", &format!("url={url}"), 404, "; hit"),
        ("npm", "all=1", 200, "; hit"),
        ("cargo", "all=1", 404, "; hit"),
        ("pypi", &format!("url={url}"), 200, "fwd=uri-miss"),
        ("pypi", &format!("prefix={prefix}&soft=1"), 200, "fwd=stale"),
        ("pypi", "all=1", 200, "fwd=uri-miss"),
    ] {
        let purged = foxy.change(&format!("/purge?{what}&site={site}"));
        let line = format!("HTTP/1.1 {status} ");
        assert!(purged.starts_with(&line), "{what}: {purged}");
        let answer = fetch(&foxy, JSON);
        assert!(answer.contains(expected), "{what}: {answer}");
    }
}
