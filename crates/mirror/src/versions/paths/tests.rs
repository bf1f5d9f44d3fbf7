//! Tests with paths of every preset's artefacts and documents, and with attempts to bypass a rule.

use super::*;
use crate::{Mirror, Preset, Selector, preset};

fn shown(listing: Listing, path: &str) -> String {
    let named = named(listing, &segments(path.as_bytes()));
    let texts = named.into_iter().map(|(package, which)| match which {
        Which::Document => package,
        Which::Version(version) => format!("{package} {version}"),
        Which::Unknown => format!("{package} ?"),
        Which::Tag(tag) => format!("{package} tag {tag}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[test]
fn paths_of_npm() {
    for (path, expected) in [
        ("/left-pad", "left-pad"),
        ("/@scope%2fname", "@scope/name"),
        ("/@scope/name", "@scope/name"),
        ("/left-pad/-/left-pad-1.3.0.tgz", "left-pad 1.3.0"),
        ("/left-pad/-/left-pad-1.3.0-rc.1.tgz", "left-pad 1.3.0-rc.1"),
        ("/@scope/name/-/name-1.0.0.tgz", "@scope/name 1.0.0"),
        ("/@scope%2Fname/-/name-1.0.0.tgz", "@scope/name 1.0.0"),
        (
            "/%40scope/name/-/@scope/name-1.0.0.tgz",
            "@scope/name 1.0.0",
        ),
        ("/Left-Pad/-/LEFT-PAD-1.3.0.TGZ", "Left-Pad 1.3.0"),
        ("/left%2dpad/%2d/left-pad%2D1.3.0.tgz", "left-pad 1.3.0"),
        ("/left%252dpad/-/left-pad-1.3.0.tgz", "left-pad 1.3.0"),
        ("//left-pad//-/left-pad-1.3.0.tgz", "left-pad 1.3.0"),
        ("/left-pad/-/other.tgz", "left-pad ?"),
        ("/left-pad/-/left-pad-1.3.0.zip", "left-pad ?"),
        ("/left-pad;a=b/-/left-pad-1.3.0.tgz;c", "left-pad 1.3.0"),
        ("/left-pad/-/left-pad-1.3.0.tgz%3fc", "left-pad 1.3.0"),
        ("/left-pad/-/left-pad-1.3.0.tgz%00.x", "left-pad 1.3.0"),
        ("/base/npm/left-pad/-/left-pad-1.3.0.tgz", "left-pad 1.3.0"),
        ("/left-pad/1.3.0", "left-pad 1.3.0"),
        ("/@scope/name/1.3.0", "@scope/name 1.3.0"),
        ("/left-pad/latest", "left-pad tag latest"),
        ("/@scope/name/next", "@scope/name tag next"),
        ("/-/v1/search", ""),
        ("/", ""),
    ] {
        assert_eq!(shown(Listing::Npm, path), expected, "{path}");
    }
}

#[test]
fn paths_of_pypi() {
    for (path, expected) in [
        ("/simple/Left.Pad/", "Left.Pad"),
        ("/simple/", ""),
        (
            "/packages/ab/cd/ef/left_pad-1.3.0-py3-none-any.whl",
            "left_pad 1.3.0",
        ),
        (
            "/packages/x/left_pad-1.3.0-py3-none-any.whl.metadata",
            "left_pad 1.3.0",
        ),
        (
            "/packages/x/left_pad-1.3.0-1-cp311-cp311-linux_x86_64.whl",
            "left_pad 1.3.0",
        ),
        (
            "/packages/x/left_pad%2d1.3.0%2Dpy3-none-any.WHL",
            "left_pad 1.3.0",
        ),
        ("/packages/x/left-pad-1.3.0.tar.gz", "left-pad 1.3.0"),
        (
            "/packages/x/left_pad-1.3.0.post1.tar.gz.asc",
            "left_pad 1.3.0.post1",
        ),
        ("/packages/x/foo-2-1.0.zip", "foo-2 1.0"),
        ("/packages/x/foo-1.0-1.tar.gz", "foo 1.0-1, foo-1.0 1"),
        ("/packages/x/foo-1.0-py2.7.egg", "foo 1.0"),
        ("/packages/x/foo-1.0.win32-py2.7.exe", "foo ?"),
        ("/packages/x/foo-bar-strange.tar.gz", "foo ?, foo-bar ?"),
        ("/packages/x/readme", ""),
        ("/packages/x/foo-1.0_1-py3-none-any.whl", "foo 1.0-1"),
        (
            "/simple/foo-1.0-py3-none-any.whl",
            "foo 1.0, foo-1.0-py3-none-any.whl",
        ),
    ] {
        assert_eq!(shown(Listing::Pypi, path), expected, "{path}");
    }
}

#[test]
fn paths_of_cargo() {
    for (path, expected) in [
        ("/le/ft/left-pad", "left-pad"),
        ("/3/a/abc", "abc"),
        ("/1/a", "a"),
        ("/config.json", ""),
        ("/api/v1/crates/left-pad/1.3.0/download", "left-pad 1.3.0"),
        ("/crates/left-pad/1.3.0/download", "left-pad 1.3.0"),
        ("/crates/left-pad/1.3.0/DOWNLOAD", "left-pad 1.3.0"),
        ("/crates/left-pad/left-pad-1.3.0.crate", "left-pad 1.3.0"),
        ("/crates/a/a-1.3.0-rc-1.0.crate", "a 1.3.0-rc-1.0"),
        ("/crates/a/a%2d1.3.0%2ecrate", "a 1.3.0"),
        ("/files/strange.crate", ""),
    ] {
        assert_eq!(shown(Listing::Cargo, path), expected, "{path}");
    }
}

fn rules(listing: Listing, block: &[&str]) -> VersionRules {
    let read = |text: &&str| Selector::read(listing, text).unwrap();
    VersionRules {
        listing,
        min_age: None,
        except: Vec::new(),
        hides_undated: true,
        block: block.iter().map(read).collect(),
    }
}

/// Returns the refusal of a path at the preset's upstream. The class of the path follows from the preset.
fn refused(preset: &Preset, rules: &VersionRules, path: &str) -> Option<Refused> {
    let (upstream, hosts) = (preset.upstream.clone(), preset.hosts.clone());
    let mirror = Mirror::new("m".into(), "/m", upstream, hosts, preset.classes.clone());
    let mirror = mirror.under(rules.clone());
    let path = format!("/m{path}");
    mirror.refusal(mirror.target(path.as_bytes()).unwrap(), path.as_bytes())
}

#[test]
fn blocked_artefacts_are_refused_however_they_are_written() {
    let npm = rules(Listing::Npm, &["left-pad@1.3.0", "@evil/*", "event-stream"]);
    let pypi = rules(Listing::Pypi, &["Left.Pad@1.3", "torch@2.0"]);
    let cargo = rules(Listing::Cargo, &["left_pad@1.3.0", "evil-*"]);
    for (name, rules, refusals, passes) in [
        (
            "npm",
            npm,
            &[
                "/left-pad/-/left-pad-1.3.0.tgz",
                "/LEFT-PAD/-/left-pad-1.3.0.tgz",
                "/left%2Dpad/-/left%2dpad-1%2E3.0.tgz",
                "/left-pad/-/left-pad-1.3.0+b.tgz",
                "/left-pad/-/v1.tgz",
                "/left-pad/-/-/left-pad-1.3.0.tgz",
                "/other/-/left-pad-1.3.0.tgz",
                "/left-pad;x/-/left-pad-1.3.0.tgz",
                "/left-pad/-/left-pad-1.3.0.tgz;x",
                "//left-pad/-//left-pad-1.3.0.tgz",
                "/left-pad\\-\\left-pad-1.3.0.tgz",
                "/-/%252e%252e/other",
                "/left-pad/1.3.0",
                "/left-pad/latest",
                "/@evil/x",
                "/@evil%2fx",
                "/@EVIL%2Fx/-/x-9.0.0.tgz",
                "/event-stream",
                "/event-stream/-/event-stream-1.0.0.tgz",
            ][..],
            &[
                "/left-pad",
                "/left-pad/-/left-pad-1.3.1.tgz",
                "/left-pad/1.3.1",
                "/@types/left-pad/-/left-pad-1.3.0.tgz",
                "/left-pad-x/-/left-pad-x-1.3.0.tgz",
                "/other/latest",
                "",
                "/",
                "/-/v1/search",
            ][..],
        ),
        (
            "pypi",
            pypi,
            &[
                "/packages/a/left_pad-1.3.0-py3-none-any.whl",
                "/packages/a/LEFT_PAD-1.3-py3-none-any.whl.metadata",
                "/packages/a/left.pad-v1.3.tar.gz",
                "/packages/a/torch-2.0.0%2Bcpu-cp311-cp311-linux_x86_64.whl",
                "/packages/a/no-version",
                "/s%69mple/left-pad/",
                "/%252573imple/left-pad/",
                "//simple/other/",
                "/simple;x/other/",
                "/Simple/other/",
                "/simple%5Cother/",
                "/simple/left_pad-1.3-py3-none-any.whl",
                "/~files.pythonhosted.org/packages/a/left_pad-1.3-py3-none-any.whl",
            ][..],
            &[
                "/packages/a/left_pad-1.3.1-py3-none-any.whl",
                "/packages/a/left_pad-1.3rc1.tar.gz",
                "/simple/Left_Pad/",
                "/simple",
                "/",
                "/pypi/left-pad/json",
                "/packages/a/torch-2.0.1+cpu-cp311-cp311-linux_x86_64.whl",
                "/simple/left-pad/",
                "/simple/",
            ][..],
        ),
        (
            "cargo",
            cargo,
            &[
                "/crates/left-pad/1.3.0/download",
                "/~static.crates.io/crates/Left_Pad/left_pad-1.3.0.crate",
                "/~crates.io/api/v1/crates/left-pad/1.3.0/download",
                "/crates/evil-x/0.1.0/download",
                "/ev/il/evil-x",
                "/a/download",
            ][..],
            &[
                "/crates/left-pad/1.3.1/download",
                "/le/ft/left-pad",
                "/config.json",
            ][..],
        ),
    ] {
        let preset = preset(name).unwrap();
        for path in refusals {
            assert!(refused(preset, &rules, path).is_some(), "{name}: {path}");
        }
        for path in passes {
            assert_eq!(refused(preset, &rules, path), None, "{name}: {path}");
        }
    }
}

#[test]
fn a_refusal_says_what_and_why() {
    let rules = rules(Listing::Npm, &["left-pad@1.3.0"]);
    let refused = rules.refusal(
        b"/left-pad/-/left-pad-1.3.0.tgz",
        Kind::Immutable,
        true,
        |_| false,
    );
    let refused = refused.unwrap();
    assert_eq!(refused.reason(), "version-blocked");
    assert_eq!(
        refused.text(),
        "left-pad@1.3.0 is blocked by the operator of this mirror (mirror.block: left-pad@1.3.0)"
    );
}

#[test]
fn every_path_of_a_version_of_a_crate_is_one() {
    let one = Some(b"/a-b/1.0.0+x/download".to_vec());
    assert_eq!(crate_path(b"A_b", b"1.0.0+x"), one);
    for (path, is_one) in [
        ("/crates/a-b/1.0.0+x/download", true),
        ("/api/v1/crates/A_b/1.0.0%2Bx/download", true),
        ("/~static.test/crates/a-b/a-b-1.0.0+x.crate", true),
        ("/a-b/a-b-1.0.0.crate", false),
        ("/a-b/download", false),
        // It is not clear which of the two numbers is the version.
        ("/a-b-1.0.0-1.0.0+x.crate", false),
        ("/a/../b/a b/1.0.0+x/download", false),
        ("/aa/bb/a-b", false),
    ] {
        assert_eq!(crate_of(path.as_bytes()) == one, is_one, "{path}");
    }
    assert_eq!(crate_of(b"/a-b-1.0.0-1.0.0+x.crate"), None);
    for (name, version) in [("a/b", "1.0.0"), ("", "1.0.0"), ("a", "1/0"), ("a", "")] {
        assert_eq!(crate_path(name.as_bytes(), version.as_bytes()), None);
    }
}
