//! Tests of the rules about versions. The documents in the tests have the forms of the registries for npm,
//! Python and Rust packages.

use super::edits::text_of;
use super::*;

/// 25 November 2026, noon.
const NOW: i64 = 1_795_608_000;
const DAY: u32 = 86_400;

fn selectors(listing: Listing, texts: &[&str]) -> Vec<Selector> {
    let read = |text: &&str| Selector::read(listing, text).unwrap();
    texts.iter().map(read).collect()
}

fn cooling(listing: Listing) -> VersionRules {
    VersionRules {
        listing,
        min_age: Some(3 * DAY),
        except: Vec::new(),
        hides_undated: true,
        block: Vec::new(),
    }
}

fn blocking(listing: Listing, texts: &[&str]) -> VersionRules {
    VersionRules {
        min_age: None,
        block: selectors(listing, texts),
        ..cooling(listing)
    }
}

const JSON: &[u8] = b"application/json";

fn screen(rules: &VersionRules, text: &str, form: Option<usize>) -> Result<Screened, Unreadable> {
    rules.screen(text.as_bytes().to_vec(), JSON, form, b"/a", NOW)
}

fn shown(rules: &VersionRules, text: &str, form: Option<usize>) -> String {
    text_of(screen(rules, text, form).unwrap().body)
}

/// A packument whose dates come after its versions, as in documents of the registry.
const PACKUMENT: &str = r#"{"_id":"a","name":"a","dist-tags":{"latest":"1.2.0","old":"1.0.0","next":"2.0.0-rc.1"},
"versions":{"1.0.0":{"name":"a","version":"1.0.0","scripts":{"install":"make"},"readme":"long","dist":{"tarball":"http://r/a-1.0.0.tgz"}},
 "1.1.0":{"name":"a","version":"1.1.0","dist":{"tarball":"t"},"dependencies":{"b":"^1"}} , "1.2.0":{"name":"a","version":"1.2.0","dist":{}},
"1.9.0":{"name":"a","version":"1.9.0"},"2.0.0-rc.1":{"name":"a","version":"2.0.0-rc.1"}},
"time":{"created":"2020-01-01T00:00:00.000Z","modified":"2026-11-25T11:00:00.000Z","1.0.0":"2020-01-01T00:00:00.000Z",
"1.1.0":"2021-01-01T00:00:00.000Z","1.2.0":"2026-11-25T11:00:00.000Z","1.9.0":"2024-01-01T00:00:00Z","2.0.0-rc.1":"2026-11-24T11:00:00.000Z"},
"readme":"\"versions\":{}"}"#;

#[test]
fn young_versions_of_npm_are_gone_and_tags_move() {
    let rules = cooling(Listing::Npm);
    let screened = screen(&rules, PACKUMENT, Some(1)).unwrap();
    assert_eq!(screened.hidden, 2);
    // This is the earlier of the times at which the two hidden versions are old enough.
    let until = time("2026-11-27T11:00:00Z");
    assert_eq!(screened.matures, until);
    let text = text_of(screened.body);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tags = serde_json::json!({"latest": "1.1.0", "old": "1.0.0", "next": "1.9.0"});
    assert_eq!(read["dist-tags"], tags);
    let names: Vec<_> = read["versions"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["1.0.0", "1.1.0", "1.9.0"]);
    assert!(read["time"].get("1.2.0").is_none() && read["time"].get("created").is_some());
    // Parts that are not removed stay unchanged, byte for byte.
    assert!(text.starts_with(r#"{"_id":"a","name":"a","dist-tags":{"latest":"1.1.0","old"#));
    assert!(text.contains(r#""dependencies":{"b":"^1"}},"#), "{text}");
    assert!(text.ends_with(r#""readme":"\"versions\":{}"}"#), "{text}");
}

#[test]
fn the_short_form_is_made_of_the_full_one() {
    let rules = cooling(Listing::Npm);
    let screened = screen(&rules, PACKUMENT, Some(0)).unwrap();
    assert_eq!(
        screened.content_type,
        Some("application/vnd.npm.install-v1+json")
    );
    let read: serde_json::Value = serde_json::from_str(&text_of(screened.body)).unwrap();
    let expected = serde_json::json!({
        "name": "a",
        "modified": "2026-11-25T11:00:00.000Z",
        "dist-tags": {"latest": "1.1.0", "old": "1.0.0", "next": "1.9.0"},
        "versions": {
            "1.0.0": {"name": "a", "version": "1.0.0", "hasInstallScript": true, "dist": {"tarball": "http://r/a-1.0.0.tgz"}},
            "1.1.0": {"name": "a", "version": "1.1.0", "dist": {"tarball": "t"}, "dependencies": {"b": "^1"}},
            "1.9.0": {"name": "a", "version": "1.9.0"},
        },
    });
    assert_eq!(read, expected);
}

#[test]
fn a_tag_finds_the_nearest_version_that_is_left() {
    let text = |tags: &str, versions: &[(&str, bool)]| {
        let date = |young: bool| {
            if young {
                "2026-11-25T00:00:00Z"
            } else {
                "2020-01-01T00:00:00Z"
            }
        };
        let all: Vec<_> = versions
            .iter()
            .map(|(v, _)| format!("\"{v}\":{{}}"))
            .collect();
        let dates: Vec<_> = versions
            .iter()
            .map(|(v, young)| format!("\"{v}\":\"{}\"", date(*young)))
            .collect();
        format!(
            "{{\"time\":{{{}}},\"name\":\"a\",\"dist-tags\":{{\"latest\":\"{tags}\"}},\"versions\":{{{}}}}}",
            dates.join(","),
            all.join(",")
        )
    };
    for (tag, versions, expected) in [
        // 2.0.0 is shown, but it is newer than the hidden version of the tag. So the tag gets an older
        // version.
        (
            "1.1.0",
            &[("1.0.0", false), ("1.1.0", true), ("2.0.0", false)][..],
            "1.0.0",
        ),
        (
            "1.10.0",
            &[("1.2.0", false), ("1.9.0", false), ("1.10.0", true)],
            "1.9.0",
        ),
        ("1.0.0", &[("1.0.0", true), ("2.0.0", false)], "2.0.0"),
        (
            "1.0.1",
            &[("1.0.1", true), ("1.0.1-rc.1", false), ("0.9.0", false)],
            "0.9.0",
        ),
        (
            "1.0.0",
            &[
                ("1.0.0", true),
                ("1.0.0-rc.1", false),
                ("1.0.0-rc.2", false),
            ],
            "1.0.0-rc.2",
        ),
    ] {
        for form in [0, 1] {
            let text = shown(&cooling(Listing::Npm), &text(tag, versions), Some(form));
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read["dist-tags"]["latest"], *expected, "{tag}: {text}");
        }
    }
    let none = text("1.0.0", &[("1.0.0", true)]);
    for form in [0, 1] {
        let text = shown(&cooling(Listing::Npm), &none, Some(form));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["dist-tags"], serde_json::json!({}));
        assert_eq!(read["versions"], serde_json::json!({}));
    }
}

#[test]
fn exceptions_and_unknown_dates() {
    let mut rules = cooling(Listing::Npm);
    for (except, count) in [("a", 5), ("*", 5), ("a@1.2.0", 4), ("b", 3), ("A", 5)] {
        rules.except = selectors(Listing::Npm, &[except]);
        let text = shown(&rules, PACKUMENT, Some(1));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read["versions"].as_object().unwrap().len(),
            count,
            "{except}"
        );
    }
    rules.except = Vec::new();
    let undated = PACKUMENT.replace("\"time\"", "\"other\"");
    assert_eq!(screen(&rules, &undated, Some(1)).unwrap().hidden, 5);
    assert_eq!(screen(&rules, &undated, Some(1)).unwrap().matures, None);
    rules.hides_undated = false;
    assert_eq!(shown(&rules, &undated, Some(1)), undated);
}

#[test]
fn blocked_versions_are_gone_whatever_their_age() {
    let rules = blocking(Listing::Npm, &["a@1.9.0", "a@1.1.0"]);
    let text = shown(&rules, PACKUMENT, Some(0));
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = read["versions"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["1.0.0", "1.2.0", "2.0.0-rc.1"]);
    // A package in `except` can still be blocked by `block`.
    let rules = VersionRules {
        except: selectors(Listing::Npm, &["a"]),
        ..rules
    };
    assert_eq!(screen(&rules, PACKUMENT, None).unwrap().hidden, 2);
}

#[test]
fn documents_that_cannot_be_screened_reach_nobody() {
    let npm = cooling(Listing::Npm);
    for (text, reason) in [
        ("", "document-not-readable"),
        ("<html>", "document-not-readable"),
        ("{\"versions\":{}}", "document-not-readable"),
        ("{\"name\":\"a\",\"versions\":[]}", "document-not-readable"),
        (
            "{\"name\":\"a\",\"versions\":{}} x",
            "document-not-readable",
        ),
        (
            "{\"name\":\"a\",\"versions\":{\"1.0.0\":{}},\"versions\":{}}",
            "document-not-readable",
        ),
        (
            "{\"name\":\"a\",\"versi\\u006fns\":{},\"versions\":{}}",
            "document-not-readable",
        ),
        (
            "{\"name\":\"a\",\"version\":\"1.0.0\",\"dist\":{}}",
            "document-of-a-tag",
        ),
    ] {
        let error = screen(&npm, text, Some(1)).unwrap_err();
        assert_eq!(error.0, reason, "{text}");
    }
    let many = format!(
        "{{\"name\":\"a\",\"versions\":{{{}\"x\":1}}}}",
        "\"x\":1,".repeat(300_000)
    );
    assert_eq!(screen(&npm, &many, None).unwrap_err(), TOO_MANY);
    let deep = format!("{{\"name\":\"a\",\"versions\":{}", "[".repeat(1_000_000));
    assert_eq!(screen(&npm, &deep, None).unwrap_err(), UNREADABLE);
    let latin = npm.screen(b"{\"name\":\"\xff\"}".to_vec(), JSON, None, b"/a", NOW);
    assert_eq!(latin.unwrap_err(), UNREADABLE);
    let one = "{\"name\":\"a\",\"version\":\"1.0.0\",\"dist\":{}}";
    let asked = |rules: &VersionRules, path: &str| {
        let screened = rules.screen(one.into(), JSON, None, path.as_bytes(), NOW);
        screened.map(|screened| text_of(screened.body))
    };
    assert_eq!(asked(&npm, "/a/1.0.0").unwrap(), one);
    let other = blocking(Listing::Npm, &["b"]);
    assert_eq!(asked(&other, "/a/latest").unwrap(), one);
    let own = blocking(Listing::Npm, &["a@1.0.0"]);
    assert_eq!(asked(&own, "/a/1.0.0").unwrap_err(), BLOCKED);
}

const SIMPLE: &str = r#"{"meta":{"api-version":"1.1"},"name":"a-b","versions":["1.0","1.1","1.2"],"files":[
{"filename":"a_b-1.0-py3-none-any.whl","url":"https://f/a_b-1.0-py3-none-any.whl","hashes":{"sha256":"00"},"requires-python":">=3.8","upload-time":"2020-01-01T00:00:00.1Z","yanked":false,"core-metadata":{"sha256":"11"}},
{"filename":"a-b-1.1.tar.gz","url":"https://f/a-b-1.1.tar.gz","hashes":{},"yanked":false,"upload-time":"2026-11-25T10:00:00.123456Z"},
{"upload-time":"2026-11-25T09:00:00Z","filename":"a_b-1.2-py3-none-any.whl","url":"https://f/a_b-1.2-py3-none-any.whl","hashes":{}},
{"upload-time":"2026-11-25T09:00:00Z","filename":"a_b-1.3-py3-none-any.whl","url":"u","hashes":{},"yanked":"bad"}]}"#;

#[test]
fn young_files_of_pypi_are_yanked() {
    let rules = cooling(Listing::Pypi);
    let screened = screen(&rules, SIMPLE, Some(0)).unwrap();
    assert_eq!(screened.matures, time("2026-11-28T09:00:00Z"));
    let text = text_of(screened.body);
    let expected = SIMPLE
        .replace(
            "\"hashes\":{},\"yanked\":false",
            "\"hashes\":{},\"yanked\":\"younger than mirror.min_age allows\"",
        )
        .replacen(
            "\n{\"upload",
            "\n{\"yanked\":\"younger than mirror.min_age allows\",\"upload",
            1,
        );
    assert_eq!(text, expected);
    let undated = SIMPLE.replace("upload-time", "other");
    assert_eq!(screen(&rules, &undated, None).unwrap().hidden, 4);
}

#[test]
fn blocked_files_of_pypi_are_gone() {
    let rules = blocking(Listing::Pypi, &["A.B@1.1.0"]);
    let text = shown(&rules, SIMPLE, None);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["versions"], serde_json::json!(["1.0", "1.2"]));
    assert_eq!(read["files"].as_array().unwrap().len(), 3);
    assert!(!text.contains("a-b-1.1"));
    // Without a name the file cannot be judged.
    assert!(screen(&rules, "{\"files\":[{}]}", None).is_err());
    assert!(screen(&rules, "{\"name\":\"a\",\"files\":[{}]}", None).is_err());
    let projects = "{\"projects\":[{\"name\":\"a-b\"}]}";
    assert_eq!(shown(&rules, projects, None), projects);
}

#[test]
fn clients_without_json_get_links() {
    let rules = VersionRules {
        block: selectors(Listing::Pypi, &["a-b@1.2"]),
        ..cooling(Listing::Pypi)
    };
    let simple = SIMPLE.replace("\"u\"", "\"https://f/x?a=1&b=\\\"<\"");
    let screened = screen(&rules, &simple, Some(1)).unwrap();
    assert_eq!(screened.content_type, Some("text/html; charset=utf-8"));
    let text = text_of(screened.body);
    let links: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("<a "))
        .collect();
    assert_eq!(
        links,
        [
            "<a href=\"https://f/a_b-1.0-py3-none-any.whl#sha256=00\" data-requires-python=\"&gt;=3.8\" \
             data-core-metadata=\"sha256=11\">a_b-1.0-py3-none-any.whl</a><br>",
            "<a href=\"https://f/a-b-1.1.tar.gz\" data-yanked=\"younger than mirror.min_age allows\">a-b-1.1.tar.gz</a><br>",
            "<a href=\"https://f/x?a=1&amp;b=&quot;&lt;\" data-yanked=\"bad\">a_b-1.3-py3-none-any.whl</a><br>",
        ]
    );
}

#[test]
fn an_index_of_html_alone_has_no_dates() {
    let page = "<!DOCTYPE html><p>a\n<a href=\"f/a_b-1.0-py3-none-any.whl#sha256=0\" data-requires-python=\"&gt;3\">one</a><br>\n\
        <A class='>' href='f/a-b-1.1.tar.gz'>two</A>\n<a href=\"../\">up</a><abbr>x</abbr><a data-yanked=\"\" href=\"a_b-1.2-py3-none-any.whl\">three</a>";
    let rules = VersionRules {
        block: selectors(Listing::Pypi, &["a-b@1.1"]),
        ..cooling(Listing::Pypi)
    };
    let screen = |rules: &VersionRules| {
        let screened = rules.screen(page.into(), b"text/html", Some(1), b"/simple/a-b/", NOW);
        text_of(screened.unwrap().body)
    };
    let expected = page
        .replace("<A class='>' href='f/a-b-1.1.tar.gz'>two</A>", "")
        .replacen(
            "<a href",
            "<a data-yanked=\"of unknown age (mirror.unknown_age)\" href",
            1,
        )
        // This link already had the attribute `data-yanked`. Screening writes another `data-yanked` before
        // it. Clients use the first of two equal attributes.
        .replace(
            "<a data-yanked=\"\"",
            "<a data-yanked=\"of unknown age (mirror.unknown_age)\" data-yanked=\"\"",
        );
    assert_eq!(screen(&rules), expected);
    let shows = VersionRules {
        hides_undated: false,
        block: Vec::new(),
        ..rules
    };
    assert_eq!(screen(&shows), page);
}

#[test]
fn a_package_with_the_name_of_the_mark_is_hidden_too() {
    let page = "<a href=\"data-yanked-1.0.tar.gz\">x</a>";
    let rules = cooling(Listing::Pypi);
    let screened = rules.screen(
        page.into(),
        b"text/html",
        None,
        b"/simple/data-yanked/",
        NOW,
    );
    assert!(text_of(screened.unwrap().body).starts_with("<a data-yanked=\"of unknown age"));
}

#[test]
fn documents_with_more_changes_than_any_registry_needs_are_refused() {
    let link = "<a href=\"a-1.0.zip\">";
    let lines = "{\"name\":\"a\",\"vers\":\"1.0.0\"}\n";
    for (listing, part) in [(Listing::Pypi, link), (Listing::Cargo, lines)] {
        let rules = cooling(listing);
        let text = part.repeat(200_001);
        let screened = rules.screen(text.into(), b"text/plain", None, b"/a", NOW);
        assert_eq!(screened.unwrap_err(), TOO_MANY);
    }
}

const CRATE: &str = "{\"name\":\"a-b\",\"vers\":\"1.0.0\",\"yanked\":false,\"pubtime\":\"2020-01-01T00:00:00Z\"}\n\
{\"name\":\"a-b\",\"vers\":\"1.1.0\",\"cksum\":\"yanked\",\"yanked\":false,\"pubtime\":\"2026-11-25T00:00:00Z\"}\n\
{\"name\":\"a-b\",\"vers\":\"1.2.0\",\"pubtime\":\"2026-11-25T00:00:01Z\"}\nnonsense\n\
{\"name\":\"a-b\",\"vers\":\"1.3.0\",\"yanked\":true}\n{\"name\":\"a-b\",\"vers\":\"1.4.0+x\",\"yanked\":false}";

#[test]
fn young_and_blocked_crates_are_yanked() {
    let rules = cooling(Listing::Cargo);
    let screened = rules
        .screen(CRATE.into(), b"text/plain", None, b"/a-/b/a-b", NOW)
        .unwrap();
    assert_eq!(screened.matures, time("2026-11-28T00:00:00Z"));
    let expected = CRATE
        .replace("\"yanked\",\"yanked\":false", "\"yanked\",\"yanked\":true")
        .replace(
            "{\"name\":\"a-b\",\"vers\":\"1.2.0\"",
            "{\"yanked\":true,\"name\":\"a-b\",\"vers\":\"1.2.0\"",
        )
        .replace("+x\",\"yanked\":false", "+x\",\"yanked\":true");
    assert_eq!(text_of(screened.body), expected);
    let rules = blocking(Listing::Cargo, &["A_B@1.0.0"]);
    let text = shown(&rules, CRATE, None);
    assert_eq!(text, CRATE.replacen("false", "true", 1));
}

#[test]
fn a_version_is_old_enough_to_the_second() {
    let rules = cooling(Listing::Npm);
    let published = time("2026-11-22T12:00:00.000Z").unwrap();
    let verdict = |now| rules.verdict("a", "1.0.0", Some(published), now);
    let until = published + i64::from(3 * DAY);
    assert_eq!(verdict(until - 1), Verdict::Young(until));
    assert_eq!(verdict(until), Verdict::Shown);
    assert_eq!(time("2026-11-22T12:00:00.001Z"), Some(published + 1));
    assert_eq!(time("2026-11-22T13:00:00+01:00"), Some(published));
    for wrong in ["", "2026-11-22", "2026-11-22T12:00:00", "yesterday"] {
        assert_eq!(time(wrong), None, "{wrong}");
    }
    assert!(matches!(
        rules.verdict("a", "1.0.0", Some(i64::MAX), 0),
        Verdict::Young(_)
    ));
}

#[test]
fn entries_that_are_none_are_told() {
    for (listing, wrong) in [
        (Listing::Npm, "left-pad@^1.3"),
        (Listing::Npm, "left-pad@latest"),
        (Listing::Npm, "left-pad@"),
        (Listing::Npm, "@scope"),
        (Listing::Npm, "a/b"),
        (Listing::Npm, "a b"),
        (Listing::Npm, ""),
        (Listing::Npm, "@"),
        (Listing::Pypi, "a@>=1"),
        (Listing::Pypi, "@a/b"),
        (Listing::Cargo, "a@1"),
    ] {
        assert!(Selector::read(listing, wrong).is_err(), "{wrong}");
    }
    for (listing, right) in [
        (Listing::Npm, "@scope/*"),
        (Listing::Npm, "@scope/a@1.0.0-rc.1"),
        (Listing::Npm, "*"),
        (Listing::Pypi, "Zope.*@1.0rc1"),
        (Listing::Cargo, "a_b@1.0.0+x"),
    ] {
        assert!(Selector::read(listing, right).is_ok(), "{right}");
    }
    let marks = [&["a"][..], &["b"], &[]].map(|all| blocking(Listing::Npm, all).mark());
    assert!(marks[0] != marks[1] && marks[1] != marks[2]);
}

proptest::proptest! {
    /// Screening never panics, for any text. Parts that no rule concerns stay unchanged.
    #[test]
    fn any_text_is_screened_or_refused(text in "[\\[\\]{}\":,a-c0-9 \\\\]{0,80}") {
        for listing in [Listing::Npm, Listing::Pypi, Listing::Cargo] {
            let rules = blocking(listing, &["zzz"]);
            for (content_type, form) in [(JSON, Some(0)), (b"text/html", Some(1))] {
                if let Ok(screened) = rules.screen(text.clone().into(), content_type, form, b"/a", NOW) {
                    proptest::prop_assert_eq!(text_of(screened.body), text.clone());
                }
            }
        }
    }
}
