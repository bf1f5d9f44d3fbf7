//! Tests every setting of the table with valid and invalid values, in a file, in an environment variable and
//! in a reload.

use std::ffi::OsString;

use super::super::kind::Kind;
use super::super::pattern::PatternKind;
use super::super::raw::full_name;
use super::super::rewriting::RewriteTarget;
use super::super::table::{REPEATED, SETTINGS, Setting};
use super::*;

/// A value as texts: the entries of a list, or one text.
type Texts = Vec<String>;

fn one(text: impl Into<String>) -> Texts {
    vec![text.into()]
}

fn all(texts: &[&str]) -> Vec<Texts> {
    texts.iter().map(|text| one(*text)).collect()
}

/// Returns a valid value and invalid values. For most settings, the valid value is not the default. Most
/// kinds have six invalid values. Kinds that accept almost any text have fewer.
fn samples(kind: Kind) -> (Texts, Vec<Texts>) {
    let wrong = |texts: &[&str]| all(texts);
    match kind {
        Kind::Size(min, max) => (
            one((min.max(1) + 7).min(max).to_string()),
            wrong(&[
                "",
                "abc",
                "-1",
                "1.5.2MiB",
                "10 parsecs",
                "99999999999999999999999",
            ]),
        ),
        Kind::SizeOrShare(min) => (
            one((min.max(1) + 7).to_string()),
            wrong(&["", "abc", "-1", "0%", "101%", "%"]),
        ),
        Kind::Duration(min, max) => (
            one(format!("{}s", (min.max(1) + 7).min(max))),
            wrong(&["", "abc", "-1s", "5 weeks", "99999999999d", "s"]),
        ),
        Kind::DurationOrOff(min, max) => (
            one(format!("{}s", (min.max(1) + 7).min(max))),
            wrong(&["", "abc", "-1s", "5 weeks", "99999999999d", "never"]),
        ),
        Kind::Count(min, max) => (
            one((min.max(1) + 7).min(max).to_string()),
            wrong(&["", "abc", "-1", "1.5", "0x10", "99999999999999999999999"]),
        ),
        Kind::Flag => (
            one("true"),
            wrong(&["", "yes", "1", "on", "truefalse", "-"]),
        ),
        Kind::Word(words) => {
            let last = words.last().unwrap();
            (
                one(*last),
                wrong(&["", "unknown", "a,b", " ", "*", &format!("{last}x")]),
            )
        }
        Kind::Words(words) => (
            one(words[0]),
            wrong(&["", "unknown", "a,b", " ", "*", &format!("{}x", words[0])]),
        ),
        Kind::Path | Kind::Text | Kind::LogTarget => (one("/nowhere/at-all"), wrong(&[""])),
        Kind::LogFormat => (
            one("{client} {status}"),
            wrong(&[
                "",
                "apache",
                "{nothing}",
                "{client",
                "client}",
                "{client} \"{url}",
            ]),
        ),
        Kind::Files => (one("/nowhere/*.toml"), wrong(&[""])),
        Kind::Name => (
            one("other"),
            wrong(&["", "two words", "a/b", "a:b", "ä", &"x".repeat(65)]),
        ),
        Kind::FieldNames => (
            one("X-Other"),
            wrong(&["", "two words", "a:b", "ä", "(a)", "a\tb"]),
        ),
        Kind::HostName => (
            one("other.test"),
            wrong(&["", "two words", "a/b", "http://a", "ä ", "a\tb"]),
        ),
        Kind::HostNames | Kind::SiteHosts => (
            one("other.test"),
            wrong(&["", "two words", "a/b", "http://a", "a\tb", "a b.test"]),
        ),
        Kind::UrlPaths => (
            one("/other"),
            wrong(&["", "other", "a/b", "?a", "http://a/", " /a"]),
        ),
        Kind::ServerUrls => (
            one("http://other.test/path"),
            wrong(&[
                "",
                "other.test",
                "ftp://a.test/",
                "/path",
                "http://",
                "http://u@a.test/",
            ]),
        ),
        Kind::AddressOrOff | Kind::Addresses => (
            one("127.0.0.1:7777"),
            wrong(&[
                "",
                "7777",
                "a.test:80",
                "1.2.3.4",
                "::1:80:",
                "127.0.0.1:99999",
            ]),
        ),
        Kind::NameServers => (
            one("192.0.2.53"),
            wrong(&[
                "",
                "dns.test",
                "1.2.3",
                "1.2.3.4:99999",
                "http://1.2.3.4",
                "-",
            ]),
        ),
        Kind::Networks => (
            one("192.0.2.0/24"),
            wrong(&[
                "",
                "10.0.0.0/33",
                "a.test",
                "10.0.0",
                "fd00::/129",
                "everybody",
            ]),
        ),
        Kind::Ports => (one("4444"), wrong(&["", "0", "65536", "-1", "a", "80-90"])),
        Kind::PortRanges => (
            one("4444-4450"),
            wrong(&["", "0", "80-", "90-80", "80-65536", "a-b"]),
        ),
        Kind::Origins => (
            one("http://other.test"),
            wrong(&[
                "",
                "two words",
                "gopher://a.test",
                "http://",
                "http://a.test/path",
                "http://a.test weight=x",
            ]),
        ),
        Kind::RequestPath => (
            one("/health"),
            wrong(&["", "health", "http://a/", "a/b", " ", "*"]),
        ),
        Kind::ErrorPages => (
            one("502 /nowhere/502.html"),
            wrong(&[
                "",
                "502",
                "abc /x.html",
                "99 /x.html",
                "/x.html",
                "600 /x.html",
            ]),
        ),
        Kind::Patterns(of) => patterns(of),
        Kind::Rewrites(of) => rewrites(of),
    }
}

fn patterns(of: PatternKind) -> (Texts, Vec<Texts>) {
    match of {
        PatternKind::Site => (one("forward"), all(&["", "a b", "a/b", "a:b", "ä", "*"])),
        PatternKind::Host => (
            one("*.other.test"),
            all(&["", "a b", "http://a", "a/b", "a:80", "ä"]),
        ),
        PatternKind::Path => (
            one("/other/*"),
            all(&["", "a", "/a?b", "/a b", "/a#b", "?"]),
        ),
        PatternKind::Parameter => (one("utm_*"), all(&["", "a=b", "a&b", "?a", "#", "a b"])),
        PatternKind::Cookie => (one("session"), all(&["", "a b", "s*", "a=b", "a;b", "ä"])),
        PatternKind::CookiePattern => (one("sess*"), all(&["", "a b", "a=b", "a;b", "ä", "(a)"])),
        PatternKind::Field => (one("X-Other"), all(&["", "a b", ": x", "ä", "(a)", "a;b"])),
        PatternKind::Destination => (
            one("*.other.test"),
            all(&["", "a b", "http://a", "a/b", "a:80", "ä"]),
        ),
        PatternKind::Method => (one("POST"), all(&["", "a b", "a:b", "ä", "(a)", "a/b"])),
        PatternKind::Time => (
            one("mon-fri 08:00-17:30"),
            all(&[
                "",
                "never",
                "25:00-26:00",
                "mon-",
                "08:00",
                "xxx 08:00-09:00",
            ]),
        ),
        PatternKind::Group => (
            one("staff: ann"),
            all(&["", "staff", "staff:", ": ann", ":", " "]),
        ),
        PatternKind::ClientName => (one("CN=other"), all(&["", " "])),
        PatternKind::User => (one("ann"), all(&["", "a\u{7}b"])),
        PatternKind::Command => (one("/nowhere/helper"), all(&[""])),
        PatternKind::Package => (one("left-pad"), all(&["", "a b", "a\u{7}b"])),
    }
}

fn rewrites(of: RewriteTarget) -> (Texts, Vec<Texts>) {
    match of {
        RewriteTarget::Requests | RewriteTarget::Answers => (
            one("set X-Other: 1"),
            all(&[
                "",
                "X-A: 1",
                "set",
                "set X-A",
                "set X A: 1",
                "set X-A: {unknown}",
            ]),
        ),
        RewriteTarget::Paths => (
            one("prefix /a /b"),
            all(&[
                "",
                "/a /b",
                "prefix /a",
                "prefix a b",
                "regex ( /b",
                "suffix /a /b",
            ]),
        ),
        RewriteTarget::Redirects => (
            one("301 prefix /a /b"),
            all(&[
                "",
                "prefix /a /b",
                "299 prefix /a /b",
                "301 prefix /a",
                "301 regex ( /b",
                "301",
            ]),
        ),
    }
}

fn quoted(texts: &[String], list: bool) -> String {
    let each: Vec<_> = texts.iter().map(|text| format!("{text:?}")).collect();
    match list {
        true => format!("[{}]", each.join(", ")),
        false => each.join(", "),
    }
    // TOML writes the escape of this character in another form than Rust.
    .replace("\\u{7}", "\\u0007")
}

/// Returns the text of a configuration file. Its section contains the settings that `setting` needs. If
/// `texts` are given, the section also contains `setting` itself.
fn file(setting: &Setting, texts: Option<&Texts>) -> String {
    let around = match setting.section {
        "site" => "name = \"s\"\nlisten = \"127.0.0.1:8888\"\norigin = \"http://a.test\"\n",
        "mirror" => "preset = \"pypi\"\n",
        "parent" => "name = \"p\"\nurl = \"http://a.test\"\n",
        "rate" => "name = \"r\"\nrequests = 5\n",
        "store" => "path = \"/s\"\n",
        _ => "",
    };
    let own = format!("{} = ", setting.name);
    let around: String = around
        .lines()
        .filter(|line| texts.is_none() || !line.starts_with(&own))
        .map(|line| format!("{line}\n"))
        .collect();
    let line = texts.map_or(String::new(), |texts| {
        format!("{own}{}\n", quoted(texts, setting.kind.is_list()))
    });
    match setting.section {
        "" => line,
        section if REPEATED.contains(&section) => format!("[[{section}]]\n{line}{around}"),
        section => format!("[{section}]\n{line}{around}"),
    }
}

fn by_variable(setting: &Setting, texts: &Texts) -> Result<Config, Vec<String>> {
    let section = match setting.section {
        "" => String::new(),
        section if REPEATED.contains(&section) => format!("{section}__1__"),
        section => format!("{section}__"),
    };
    let name = format!("FOXY__{section}{}", setting.name).to_ascii_uppercase();
    let value = match setting.kind.is_list() {
        true => quoted(texts, true),
        false => texts[0].clone(),
    };
    let mut raw = parse(&file(setting, None), "foxy.toml").unwrap();
    raw.overlay_environment([(OsString::from(name), OsString::from(value))]);
    let strings = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
    Config::build(&raw, &LAPTOP).map_err(strings)
}

/// Returns the values for a setting. Usually these are the values for the setting's kind. A setting whose
/// texts need a special form has its own values.
fn of(setting: &Setting) -> (Texts, Vec<Texts>) {
    match full_name(setting.section, setting.name).as_str() {
        "mirror.preset" => (
            one("npm"),
            all(&["", "pip", "npm pypi", "NPM", "/npm", "unknown"]),
        ),
        // The file is read when the setting is read, so the valid value must name an existing file.
        "mirror.block_file" => (one("/dev/null"), all(&["", "/nowhere/at-all"])),
        "access.time_zone" => (one("UTC"), all(&["", "Nowhere/City", "/", "UTC+99"])),
        _ => samples(setting.kind),
    }
}

fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| setting.name != "include")
}

/// True if one of the problems is about the value of this setting.
fn refused(built: &Result<Config, Vec<String>>, key: &str) -> bool {
    let about = format!("{key} = ");
    let problems = built.as_ref().err();
    problems.is_some_and(|all| all.iter().any(|problem| problem.contains(&about)))
}

#[test]
fn wrong_values_are_refused_in_files_and_variables_and_right_ones_are_not() {
    let (mut count, mut faults) = (0, Vec::new());
    for setting in settings() {
        let key = full_name(setting.section, setting.name);
        let (right, wrong) = of(setting);
        let both = |texts: &Texts| {
            let file = build(&file(setting, Some(texts)));
            [
                refused(&file, &key),
                refused(&by_variable(setting, texts), &key),
            ]
        };
        if both(&right) != [false, false] {
            faults.push(format!("{key} refuses {right:?}"));
        }
        for wrong in wrong {
            if both(&wrong) != [true, true] {
                faults.push(format!("{key} takes {wrong:?}: {:?}", both(&wrong)));
            }
            count += 2;
        }
    }
    assert_eq!(faults, [""; 0]);
    assert!(count > 1500, "{count}");
}

#[test]
fn a_value_means_the_same_in_a_file_and_a_variable_and_no_reload_overlooks_it() {
    let shown = |config: &Config| format!("{config:?}");
    let (mut compared, mut differ) = (0, 0);
    for setting in settings() {
        let key = full_name(setting.section, setting.name);
        let (right, _) = of(setting);
        let (Ok(old), Ok(new)) = (
            build(&file(setting, None)),
            build(&file(setting, Some(&right))),
        ) else {
            // This setting cannot be tested alone, because it needs other settings or files.
            continue;
        };
        compared += 1;
        let variable = by_variable(setting, &right).unwrap();
        assert_eq!(shown(&variable), shown(&new), "{key}");
        if shown(&old) == shown(&new) {
            continue;
        }
        differ += 1;
        let (next, changes) = new.after(&old);
        assert!(
            !changes.now.is_empty() || !changes.later.is_empty(),
            "a reload says nothing about {key}"
        );
        if changes.later.is_empty() {
            assert_eq!(shown(&next), shown(&new), "{key} is said to be in effect");
        }
    }
    assert!(compared > 150 && differ > 130, "{compared}, {differ}");
}
