//! Tests of rules in the form that users write, and of the messages about mistakes.

use std::path::{Path, PathBuf};

use super::super::{Config, Machine, Problem, parse};

#[derive(Debug)]
struct Small;

impl Machine for Small {
    fn memory(&self) -> u64 {
        8 << 30
    }
    fn cores(&self) -> usize {
        2
    }
    fn free_space(&self, _: &Path) -> Option<u64> {
        Some(50 << 30)
    }
    fn existing(&self, _: &Path) -> Option<u64> {
        None
    }
    fn state_folder(&self) -> PathBuf {
        PathBuf::from("/cache/foxy")
    }
}

fn build(text: &str) -> Result<Config, Vec<String>> {
    let strings = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
    let raw = parse(text, "foxy.toml").map_err(strings)?;
    Config::build(&raw, &Small).map_err(strings)
}

#[test]
fn a_rule_changes_what_it_says_and_nothing_else() {
    let text = r#"
[cache]
default_ttl = "1m"
ttl_max = "1d"
min_size = 100
max_size = "1GiB"
[[rule]]
name = "images"
host = "*.Example.com"
path = ["/img/*", "*.png"]
query_ignore = ["utm_*"]
query_sort = true
key_headers = ["X-Device"]
key_cookies = ["lang"]
bypass_headers = ["X-Preview", "User-Agent: *curl*"]
bypass_cookies = ["sess*"]
strip_set_cookie = true
max_size = "10MiB"
ttl_min = "10m"
negative_ttl = "5s"
[[rule]]
"#;
    let rules = build(text).unwrap().proxy.user_rules;
    let [images, other] = rules.all() else {
        panic!("two rules");
    };
    let config = &images.config;
    assert_eq!(images.name, "images");
    assert_eq!(config.key_parts, ["x-device", "cookie:lang"]);
    assert_eq!(
        (config.ttl_min_s, config.ttl_max_s),
        (Some(600), Some(86_400))
    );
    assert_eq!(
        (config.default_ttl_s, config.negative_ttl_s),
        (Some(60), Some(5))
    );
    assert_eq!(config.store_bytes_max, 10 << 20);
    assert_eq!(other.config.store_bytes_max, 1 << 30, "as in [cache]");
    assert_eq!(other.config.store_bytes_min, 100);
    assert!(config.strip_set_cookie && images.query.sort);
    assert_eq!(images.bypass.fields.len(), 2);
    assert_eq!(other.name, "rule-2");
    assert_eq!(other.config.default_ttl_s, Some(60));
    assert!(!other.config.strip_set_cookie && other.hosts.is_empty());
    let mut key = b"forward GET http://www.example.com/a.png?b&utm_x=1&a".to_vec();
    let id = rules.apply("forward", &mut key);
    assert_eq!(rules.get(id).map(|rule| rule.name.as_str()), Some("images"));
    assert_eq!(key, b"forward GET http://www.example.com/a.png?a&b");
}

#[test]
fn paths_are_compared_in_the_form_that_their_site_has() {
    let sites = r#"
[cache]
normalise = false
[[site]]
name = "a"
origin = "http://a"
listen = "127.0.0.1:1"
normalise = true
[[site]]
name = "b"
origin = "http://b"
listen = "127.0.0.1:2"
[[rule]]
path = "/%7ea/*"
[[rule]]
site = "b"
path = "/%7eb/*"
"#;
    let rules = build(sites).unwrap().proxy.user_rules;
    assert!(!rules.keeps_escapes("a") && rules.keeps_escapes("b"));
    assert!(rules.keeps_escapes("forward"));
    let paths: Vec<_> = rules.all().iter().map(|rule| &rule.paths[0]).collect();
    assert_eq!(paths[0].as_bytes(), b"/~a/*");
    assert_eq!(paths[1].as_bytes(), b"/%7eb/*");
    let plain = build("").unwrap().proxy.user_rules;
    assert!(!plain.keeps_escapes("forward"));
}

#[test]
fn slips_are_named_with_line_key_and_how_to_mend_them() {
    for (rule, place, words) in [
        ("pathh = \"/a\"", "foxy.toml:2", "did you mean `rule.path`?"),
        ("path = \"a\"", "foxy.toml:2", "begins with `/`"),
        ("path = \"/a?b\"", "foxy.toml:2", "without the query"),
        ("host = \"http://a\"", "foxy.toml:2", "more than a host"),
        ("host = []", "foxy.toml:2", "the list is empty"),
        ("ttl_min = \"5 weeks\"", "foxy.toml:2", "rule.ttl_min"),
        (
            "ttl_min = \"2h\"\nttl_max = \"1h\"",
            "foxy.toml:2",
            "lower one or raise the other",
        ),
        (
            "query_keep = \"a\"\nquery_ignore = \"b\"",
            "foxy.toml:2",
            "take one out",
        ),
        (
            "path = \"/\"\nmin_size = 2\nmax_size = 1",
            "foxy.toml:3",
            "use `bypass`",
        ),
        (
            "site = \"forwrad\"",
            "foxy.toml:2",
            "did you mean `forward`?",
        ),
        ("key_cookies = \"s*\"", "foxy.toml:2", "without `*`"),
        ("bypass = \"yes\"", "foxy.toml:2", "true or false"),
        (
            "name = \"a\"\npath = \"/x\"\n[[rule]]\nname = \"a\"",
            "foxy.toml:5",
            "is taken",
        ),
        (
            "host = \"*.a.b\"\n[[rule]]\nhost = \"w.a.b\"\npath = \"/x\"",
            "foxy.toml:4",
            "never decides",
        ),
    ] {
        let problems = build(&format!("[[rule]]\n{rule}\n")).expect_err(rule);
        let [problem] = &problems[..] else {
            panic!("{rule}: {problems:?}");
        };
        assert!(problem.starts_with(place), "{rule}: {problem}");
        assert!(problem.contains(words), "{rule}: {problem}");
    }
    let single = build("[rule]\npath = \"/a\"").expect_err("not repeated");
    assert!(single[0].contains("write [[rule]]"), "{single:?}");
}
