//! Tests with documents in the forms of the registries, and tests of two properties. The result
//! does not depend on how the document is split. All bytes stay unchanged except URLs of listed
//! hosts.

use proptest::prelude::*;

use super::*;
use crate::{Digest, preset};

const BASE: &str = "http://foxy.test:3128";

fn mirror() -> Arc<Mirror> {
    let upstream = "https://up.test/r".parse().unwrap();
    let hosts = vec!["https://files.test".parse().unwrap()];
    let classes = preset("cargo").unwrap().classes.clone();
    Mirror::new("m".into(), "/m", upstream, hosts, classes)
}

fn rewritten(transform: Transform, content_type: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let of = (mirror(), 0);
    let mut rewriter = Rewriter::new(transform, (b"", content_type.as_bytes()), of, BASE);
    let mut out = Vec::new();
    for piece in pieces {
        rewriter.push(piece, &mut out);
    }
    rewriter.finish(&mut out);
    out
}

fn whole(transform: Transform, content_type: &str, text: &str) -> String {
    String::from_utf8(rewritten(transform, content_type, &[text.as_bytes()])).unwrap()
}

#[test]
fn cargo_configuration() {
    let text = r#"{"dl": "https://files.test/crates", "api": "https://files.test", "x": {"dl": "https://files.test/crates"}}"#;
    let expected = text.replacen(
        "https://files.test/crates",
        "http://foxy.test:3128/m/~files.test/crates",
        1,
    );
    assert_eq!(whole(Transform::Cargo, "text/plain", text), expected);
    let other = r#"{"dl": "https://elsewhere.test/crates"}"#;
    assert_eq!(whole(Transform::Cargo, "", other), other);
    let template = r#"{"dl":"https:\/\/files.test\/{crate}"}"#;
    let expected = r#"{"dl":"http://foxy.test:3128/m/~files.test/{crate}"}"#;
    assert_eq!(whole(Transform::Cargo, "", template), expected);
    let strange = r#"{"dl":"https:\u002f/files.test"}"#;
    assert_eq!(whole(Transform::Cargo, "", strange), strange);
}

const PACKUMENT: &str = r#"{"name":"a","readme":"\"dist\":{\"tarball\":\"https://up.test/r/no.tgz\"}",
"dist":{"tarball":"https://up.test/r/one.tgz"},
"versions":{"1.0.0":{"name":"a","tarball":"https://up.test/r/no.tgz","dist":{"shasum":"00",
"tarball": "https://up.test/r/a/-/a-1.0.0.tgz" ,"signatures":[{"tarball":"https://up.test/r/no.tgz"}]},
"config":{"dist":{"tarball":"https://up.test/r/no.tgz"}}},
"dist":{"dist":{"tarball":"https://evil.test/a.tgz","fileCount":3}},
"2.0.0":{"dist":{"tarball":"https://files.test/a.tgz"}}}}"#;

#[test]
fn npm_packuments() {
    let expected = PACKUMENT
        .replace(
            "https://up.test/r/one.tgz",
            "http://foxy.test:3128/m/one.tgz",
        )
        .replace("https://up.test/r/a/-/", "http://foxy.test:3128/m/a/-/")
        .replace(
            "https://files.test/",
            "http://foxy.test:3128/m/~files.test/",
        );
    assert_eq!(
        whole(Transform::Npm, "application/json", PACKUMENT),
        expected
    );
}

const SIMPLE: &str = r#"{"meta":{"api-version":"1.1"},"url":"https://files.test/no","files":[
{"filename":"a.whl","url":"https://files.test/packages/a.whl","hashes":{"sha256":"00","url":"https://files.test/no"},
"core-metadata":{"sha256":"11"},"requires-python":">=3"},
{"url":"../../packages/b.whl"},{"url":"/r/c.whl"},["https://files.test/no"]],"versions":["1"]}"#;

#[test]
fn pypi_json() {
    let expected = SIMPLE
        .replace(
            "https://files.test/packages",
            "http://foxy.test:3128/m/~files.test/packages",
        )
        .replace("/r/c.whl", "http://foxy.test:3128/m/c.whl");
    let content_type = "application/vnd.pypi.simple.v1+json";
    assert_eq!(whole(Transform::Pypi, content_type, SIMPLE), expected);
}

const PAGE: &str = r#"<!DOCTYPE html><html><!-- don't --><body><h1>a < b</h1>
<a href="https://files.test/packages/a.whl#sha256=00" data-requires-python="&gt;=3" data-core-metadata="sha256=11">a.whl</a><br/>
<A class='x>y' HREF = 'https://up.test/r/b.whl'>b</A>
<a href=https://files.test/c.whl>c</a><a data-href="https://files.test/no">n</a>
<a title="https://files.test/no" href="https://evil.test/d.whl">d</a><abbr href="https://files.test/no">
<a href>e</a> https://files.test/no <a<a href="https://files.test/f.whl">f</a><a href="https://files.test/no"#;

#[test]
fn pypi_html() {
    let to = "http://foxy.test:3128/m/~files.test/";
    let expected = PAGE
        .replace("https://files.test/packages", &format!("{to}packages"))
        .replace("https://up.test/r/", "http://foxy.test:3128/m/")
        .replace("https://files.test/c", &format!("{to}c"))
        .replace("https://files.test/f", &format!("{to}f"));
    assert_eq!(whole(Transform::Pypi, "text/html", PAGE), expected);
}

const CRATES: &str = r#"{"name":"A_b","vers":"1.0.0+x","deps":[{"name":"c","vers":"2.0.0","cksum":"00"}],"cksum":"1111111111111111111111111111111111111111111111111111111111111111"}
{"name":"a-b","vers":"1.0.1","cksum":"zz"}
{"name":"a-b","vers":"1.0.2","cksum":"1111111111111111111111111111111111111111111111111111111111111111"
{"cksum":"2222222222222222222222222222222222222222222222222222222222222222","features":{"name":[]},"vers":"1.0.3","name":"a-b","dl":"https://files.test/x"}
{"name":"../a","vers":"1.0.4","cksum":"1111111111111111111111111111111111111111111111111111111111111111"}
"#;

#[test]
fn digests_of_crates_are_read_and_nothing_is_written() {
    assert_eq!(whole(Transform::Crates, "text/plain", CRATES), CRATES);
    let found = |pieces: &[&[u8]]| {
        let mut rewriter = Rewriter::new(Transform::Crates, (b"", b""), (mirror(), 0), "");
        for piece in pieces {
            rewriter.push(piece, &mut Vec::new());
        }
        rewriter.found()
    };
    let path = |version: &str| {
        mirror()
            .named_path(format!("/m/~files.test/x/a-b/{version}/download?q").as_bytes())
            .into_owned()
    };
    let expected = [
        Found {
            path: path("1.0.0%2Bx"),
            digest: Digest::Sha256([0x11; 32]),
        },
        Found {
            path: path("1.0.3"),
            digest: Digest::Sha256([0x22; 32]),
        },
    ];
    assert_eq!(found(&[CRATES.as_bytes()]), expected);
    let single: Vec<_> = CRATES.as_bytes().chunks(1).collect();
    assert_eq!(found(&single), expected);
}

const RELEASE: &str = "-----BEGIN PGP SIGNED MESSAGE-----\n\nOrigin: Foxy\nMD5Sum:\n \
11111111111111111111111111111111 7 main/a\nSHA256:\n \
1111111111111111111111111111111111111111111111111111111111111111       7 main/binary-amd64/Packages\n\
\t2222222222222222222222222222222222222222222222222222222222222222 8 b c\n \
2222222222222222222222222222222222222222222222222222222222222222 8 ../up\n \
2222222222222222222222222222222222222222222222222222222222222222 8 /root\n \
2222222222222222222222222222222222222222222222222222222222222222 8 a//b\n \
2222222222222222222222222222222222222222222222222222222222222222 8 a%2Fb\n \
2222 8 short\n \
2222222222222222222222222222222222222222222222222222222222222222 8 Contents.gz\r\nSHA512:\n \
3333333333333333333333333333333333333333333333333333333333333333 8 of-another-field\n\
3333333333333333333333333333333333333333333333333333333333333333 8 no-entry\n\
-----BEGIN PGP SIGNATURE-----\n";

#[test]
fn digests_of_a_release_are_read_and_nothing_is_written() {
    assert_eq!(whole(Transform::Release, "", RELEASE), RELEASE);
    let found = |pieces: &[&[u8]]| {
        let path = b"/m/debian/dists/stable/InRelease?x=/y/z";
        let mut rewriter = Rewriter::new(Transform::Release, (path, b""), (mirror(), 0), "");
        for piece in pieces {
            rewriter.push(piece, &mut Vec::new());
        }
        rewriter.found()
    };
    let of = |n: u8, name: &str| Found {
        path: format!("/m/debian/dists/stable/{name}").into_bytes(),
        digest: Digest::Sha256([n; 32]),
    };
    let expected = [
        of(0x11, "main/binary-amd64/Packages"),
        of(0x22, "Contents.gz"),
    ];
    assert_eq!(found(&[RELEASE.as_bytes()]), expected);
    let single: Vec<_> = RELEASE.as_bytes().chunks(1).collect();
    assert_eq!(found(&single), expected);
    let (spaces, digits) = (" ".repeat(100_000), "1".repeat(64));
    let long = format!("SHA256:\n {spaces}{digits} 7 name\n {digits} 7 next\n");
    assert_eq!(found(&[long.as_bytes()]), [of(0x11, "next")]);
}

fn documents() -> impl Strategy<Value = (Transform, &'static str, &'static str)> {
    prop::sample::select(vec![
        (Transform::Npm, "json", PACKUMENT),
        (Transform::Pypi, "json", SIMPLE),
        (Transform::Pypi, "html", PAGE),
        (
            Transform::Cargo,
            "",
            r#"{"dl":"https://files.test/{crate}","api":"x"}"#,
        ),
        (Transform::Crates, "", CRATES),
        (Transform::Release, "", RELEASE),
    ])
}

/// Returns a strategy for texts that contain the decisive words and characters in any order.
fn noise(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.concat())
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    " ",
    "\"dist\":",
    "\"tarball\":",
    "\"files\":",
    "\"url\":",
    "\"dl\":",
    "\"versions\":",
    "\"https://evil.test/x\"",
    "\"https://files.testing/x\"",
    "é",
    "0",
    "\\u0022",
    "{\"",
];
const HTML: &[&str] = &[
    "<",
    ">",
    "<a",
    "<a ",
    "<A\n",
    " href=",
    "href",
    "\"",
    "'",
    "=",
    // No piece begins with `/`, because a URL that begins with `/` leads to the upstream itself and is
    // rewritten.
    "</a",
    " ",
    "https://evil.test/x",
    "https://files.testing",
    "<!--",
    "-->",
    "é",
    "x",
];

proptest! {
    #[test]
    fn every_split_gives_the_same(
        (transform, content_type, text) in documents(),
        cuts in prop::collection::vec(0usize..2000, 0..12),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        let split = rewritten(transform, content_type, &pieces);
        prop_assert_eq!(split, rewritten(transform, content_type, &[bytes]));
        let single: Vec<_> = bytes.chunks(1).collect();
        let split = rewritten(transform, content_type, &single);
        prop_assert_eq!(split, rewritten(transform, content_type, &[bytes]));
    }

    #[test]
    fn what_is_not_understood_stays(json in noise(JSON), html in noise(HTML)) {
        for transform in [Transform::Npm, Transform::Pypi, Transform::Cargo, Transform::Crates] {
            prop_assert_eq!(&whole(transform, "json", &json), &json);
        }
        prop_assert_eq!(&whole(Transform::Pypi, "html", &html), &html);
    }

    #[test]
    fn any_bytes_stay(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for content_type in ["json", "html"] {
            let out = rewritten(Transform::Pypi, content_type, &[&bytes]);
            prop_assert_eq!(&out, &bytes);
        }
    }
}

#[test]
fn long_strings_and_deep_brackets_take_no_memory() {
    let long = format!(r#"{{"dl":"https://files.test/{}"}}"#, "x".repeat(100_000));
    assert_eq!(whole(Transform::Cargo, "", &long), long);
    let deep = format!(
        "{}\"dl\"{}",
        "{\"dl\":[".repeat(10_000),
        "]}".repeat(10_000)
    );
    assert_eq!(whole(Transform::Cargo, "", &deep), deep);
    let tag = format!("<a href=\"https://files.test/{}\">", "x".repeat(100_000));
    assert_eq!(whole(Transform::Pypi, "html", &tag), tag);
    // After these tags the next link is found too.
    let page = format!("{tag}<a href=\"https://files.test/b\">");
    let got = whole(Transform::Pypi, "html", &page);
    assert!(
        got.ends_with("<a href=\"http://foxy.test:3128/m/~files.test/b\">"),
        "{}",
        &got[got.len() - 80..]
    );
}

#[test]
fn artefacts_are_found_with_their_own_digests() {
    let found = |transform, content_type: &str, text: &str| {
        let mut rewriter = Rewriter::new(
            transform,
            (b"", content_type.as_bytes()),
            (mirror(), 0),
            BASE,
        );
        rewriter.push(text.as_bytes(), &mut Vec::new());
        let found = rewriter.found().into_iter();
        let path = |found: Found| String::from_utf8(found.path).unwrap();
        found
            .map(|found| (found.digest, path(found)))
            .collect::<Vec<_>>()
    };
    let (one, two) = ("11".repeat(32), "22".repeat(32));
    let digests = [Digest::Sha256([0x11; 32]), Digest::Sha256([0x22; 32])];
    // The digest may come before the URL. A file without a digest, or at a host that is not listed, is not
    // found.
    let json = format!(
        r#"{{"files":[{{"hashes":{{"md5":"0","sha256":"{one}"}},"url":"https://files.test/a.whl"}},
        {{"url":"https://files.test/b.whl","x":{{"sha256":"{two}"}}}},
        {{"hashes":{{"sha256":"{two}"}},"url":"https://evil.test/c.whl"}},
        {{"url":"https://files.test/d.whl","core-metadata":{{"sha256":"{one}"}},"hashes":{{"sha256":"{two}"}}}}]}}"#
    );
    let expected = vec![
        (digests[0], "/m/~files.test/a.whl".to_owned()),
        (digests[1], "/m/~files.test/d.whl".to_owned()),
    ];
    assert_eq!(found(Transform::Pypi, "json", &json), expected);
    let html = format!(
        "<a href='https://files.test/a.whl#sha256={one}'><a href='https://files.test/b.whl'><a href='https://evil.test/c#sha256={two}'>"
    );
    assert_eq!(found(Transform::Pypi, "html", &html), expected[..1]);
    let integrity = format!("sha512-{}==", "A".repeat(86));
    let json = format!(
        r#"{{"versions":{{"1":{{"dist":{{"tarball":"https://up.test/r/a.tgz?x","integrity":"{integrity}"}}}},
        "2":{{"integrity":"{integrity}","dist":{{"tarball":"https://up.test/r/b.tgz"}}}}}}}}"#
    );
    let expected = vec![(Digest::Sha512([0; 64]), "/m/a.tgz".to_owned())];
    assert_eq!(found(Transform::Npm, "json", &json), expected);
}
