//! A site behind a front end (another proxy) on the same machine. A client from the Internet can neither
//! purge, nor assume another identity, nor pass identity fields to the origin. Behind a trusted front end, a
//! client is identified by the address that the front end sends.

use foxy_scenarios::*;

const TELLING: &str = "X-Forwarded-Host: evil.example\r\nX-Original-URL: /admin\r\n";

#[test]
fn story() {
    for (trusted, client, purged) in [
        (false, "203.0.113.9", 403),
        (false, "127.0.0.1", 403),
        (true, "203.0.113.9", 403),
        (true, "127.0.0.1, 203.0.113.9", 403),
        (true, "127.0.0.1", 200),
    ] {
        let config = match trusted {
            true => "[access]\ntrusted_proxies = [\"127.0.0.1\"]",
            false => "",
        };
        let scene = Scene::with().config(config).site().begin();
        scene.origin.plays("/a", Reply::ok("hello").max_age(60));
        let front = |method: &str| {
            let request = format!(
                "{method} /a HTTP/1.1\r\nHost: www.example\r\nX-Forwarded-For: {client}\r\n{TELLING}\r\n"
            );
            Client::to(scene.site()).send(request).answer_to(method)
        };
        front("GET").is(200);
        let head = scene.origin.last().head;
        assert_eq!(head.contains("evil.example"), trusted, "{head}");
        assert_eq!(head.contains("/admin"), trusted, "{head}");
        let told = match trusted {
            true => format!("X-Forwarded-For: {client}, 127.0.0.1\r\n"),
            false => "X-Forwarded-For: 127.0.0.1\r\n".to_owned(),
        };
        assert!(head.contains(&told), "{head}");
        front("PURGE").is(purged);
    }
}
