//! Tests of the settings for rewriting, compression and certificates of clients, as users write them.

use super::{LAPTOP, build, problems};
use crate::config::*;

#[test]
fn a_site_may_rewrite_fields_and_urls() {
    let site = |more: &str| format!("[[site]]\nlisten = [\"*:1\"]\norigin = \"http://a\"\n{more}");
    let config = build(&site(
        "request_headers = [\"set X-A: {client_ip}\"]\nresponse_headers = [\"remove Server\"]\n\
         rewrite = [\"prefix /shop /\"]\nredirects = [\"301 regex ^/(.*)$ https://b.test/{1}\"]",
    ))
    .unwrap();
    let rewriting = config.sites[0].rewriting.as_ref().unwrap();
    assert!(rewriting.requests.touches(b"x-a") && rewriting.answers.touches(b"server"));
    assert_eq!(rewriting.paths.map(b"/shop/x").as_deref(), Some(&b"/x"[..]));
    let plan = config.plan(&LAPTOP);
    for words in [
        "changes fields of requests",
        "changes fields of answers",
        "rewrites paths for the origin",
        "redirects some URLs",
    ] {
        assert!(plan.contains(words), "{plan}");
    }
    let none = build(&site("")).unwrap();
    assert!(none.sites[0].rewriting.is_none());
    for (setting, entry, expected) in [
        (
            "request_headers",
            "set X-A: {clientip}",
            "there is no variable `{clientip}`",
        ),
        ("request_headers", "set Host: b", "Host cannot be changed"),
        (
            "request_headers",
            "set Content-Length: 1",
            "Content-Length cannot be changed",
        ),
        (
            "request_headers",
            "rename X-A Authorization",
            "no other field may become",
        ),
        (
            "response_headers",
            "set Transfer-Encoding: chunked",
            "cannot be changed",
        ),
        ("response_headers", "drop X-A", "begins with none of set"),
        ("rewrite", "prefix /a", "write `prefix FROM TO`"),
        ("rewrite", "prefix /%7Ea /b", "write /~a"),
        ("rewrite", "regex ( /b", "unclosed group"),
        ("rewrite", "regex ^/a$ /{client_ip}", "is not known here"),
        ("redirects", "prefix /a /b", "begins with none of 301"),
        ("redirects", "302 prefix /%41 /b", "write /A"),
        (
            "redirects",
            "301 regex ^/(.*)$ https://b.test{1}",
            "only {host} may be in the host",
        ),
    ] {
        let found = problems(&site(&format!("{setting} = [\"{entry}\"]"))).join("\n");
        assert!(found.contains(expected), "{setting} {entry}: {found}");
        assert!(found.contains(setting), "{found}");
    }
    assert!(
        problems(&site("rewrite = []"))
            .join("")
            .contains("the list is empty")
    );
}

#[test]
fn compression_is_asked_for() {
    let site = |more: &str| format!("[[site]]\nlisten = [\"*:1\"]\norigin = \"http://a\"\n{more}");
    let config = build(&site(
        "compress = [\"gzip\", \"br\"]\ncompress_min_size = \"2KiB\"",
    ))
    .unwrap();
    let compress = config.sites[0].compress.as_ref().unwrap();
    let names: Vec<_> = compress
        .codings
        .iter()
        .map(|coding| coding.name())
        .collect();
    assert_eq!((names, compress.bytes_min), (vec!["gzip", "br"], 2048));
    let plan = config.plan(&LAPTOP);
    assert!(plan.contains("compresses by gzip, br"), "{plan}");
    assert!(build(&site("")).unwrap().sites[0].compress.is_none());
    assert!(
        build(&site("compress = []")).unwrap().sites[0]
            .compress
            .is_none()
    );
    for (text, expected) in [
        ("compress = [\"deflate\"]", "`deflate` is none of them"),
        ("compress = [\"br\", \"br\"]", "`br` is there twice"),
        ("compress = true", "`true` is none of them"),
        ("compress_min_size = \"0\"", "compress_min_size"),
    ] {
        let found = problems(&site(text)).join("\n");
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn clients_may_be_asked_for_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["shop.test".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let certificate = file("a.crt", made.cert.pem());
    let key = file("a.key", made.signing_key.serialize_pem());
    let own = format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n");
    let ca = format!("client_ca = \"{certificate}\"\n");
    let site =
        |rest: &str| format!("[[site]]\norigin = \"http://a\"\nlisten_tls = [\"*:1\"]\n{rest}");
    let config = build(&site(&format!("{own}{ca}allow_client_names = [\"*.a\"]"))).unwrap();
    let clients = config.sites[0]
        .tls
        .as_ref()
        .unwrap()
        .clients()
        .unwrap()
        .clone();
    assert!(clients.required && config.sites[0].allow_client_names.is_some());
    let plan = config.plan(&ThisMachine);
    assert!(
        plan.contains("clients must show a certificate of"),
        "{plan}"
    );
    let request = format!("{own}{ca}client_certificate = \"request\"\nlisten = [\"*:2\"]");
    let plan = build(&site(&request)).unwrap().plan(&ThisMachine);
    assert!(plan.contains("clients may show a certificate of"), "{plan}");
    let shared = format!("[tls]\n{own}{ca}");
    assert!(build(&format!("{}{shared}", site(""))).is_ok());
    for (text, expected) in [
        (
            site(&format!("{own}{ca}listen = [\"*:2\"]")),
            "also listens without TLS",
        ),
        (
            format!("{}{shared}", site("listen = [\"*:2\"]\n")),
            "also listens without TLS",
        ),
        (
            site(&format!("{own}allow_client_names = [\"a\"]")),
            "asks no client for a certificate",
        ),
        (
            site(&format!("{own}{ca}allow_client_names = [\"\"]")),
            "it is empty",
        ),
        (site(&format!("{own}client_ca = \"/none\"")), "/none"),
        (
            site(&format!("{own}client_ca = \"{key}\"")),
            "no certificate in it",
        ),
        (
            site(&format!("{own}{ca}client_certificate = \"maybe\"")),
            "client_certificate",
        ),
        (
            format!("{}[tls]\n{own}", site(&ca)),
            "needs certificates of its own",
        ),
    ] {
        let problems = build(&text).unwrap_err();
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(found.join("\n").contains(expected), "{text}: {found:?}");
    }
}
