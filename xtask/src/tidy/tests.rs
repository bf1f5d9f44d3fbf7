//! Tests that every rule finds its own violations and no other violations.

use super::*;

fn file(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn complaints(rule: Rule, path: &str, text: &str) -> usize {
    rule(&file(path, text)).len()
}

#[test]
fn length_counts_code_and_tests_apart() {
    let code = "let a = 1;\n".repeat(500);
    let tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}");
    assert_eq!(complaints(rules::length, "crates/a/src/b.rs", &code), 0);
    assert_eq!(
        complaints(rules::length, "crates/a/src/b.rs", &format!("{code}//\n")),
        1
    );
    assert_eq!(
        complaints(rules::length, "crates/a/src/b.rs", &tests),
        1,
        "over 1000 in all"
    );
    assert_eq!(
        complaints(
            rules::length,
            "crates/a/src/b/tests.rs",
            &format!("{code}//\n")
        ),
        0
    );
    assert_eq!(
        complaints(rules::length, "docs/long.md", &format!("{code}{code}//\n")),
        0
    );
}

#[test]
fn files_begin_with_their_promise() {
    assert_eq!(complaints(rules::headline, "a.rs", "//! Keeps time.\n"), 0);
    assert_eq!(complaints(rules::headline, "a.rs", "use std::fs;\n"), 1);
}

#[test]
fn leftovers_and_paths_are_found_with_their_line() {
    let found = rules::leftovers(&file("a.rs", "//! x\n// TODO later\n"));
    assert!(found[0].starts_with("line 2: `TODO`"), "{found:?}");
    assert_eq!(
        complaints(rules::machine_paths, "a.md", "see /home/me/x\n"),
        1
    );
    assert_eq!(complaints(rules::machine_paths, "a.md", "see docs/x\n"), 0);
}

#[test]
fn clocks_are_read_in_base_only() {
    let call = "let t = Instant::now();\n";
    assert_eq!(complaints(rules::clocks, "crates/proxy/src/a.rs", call), 1);
    assert_eq!(
        complaints(rules::clocks, "crates/base/src/clock.rs", call),
        0
    );
    let timer = format!("use tokio::time::Instant;\n{call}");
    assert_eq!(
        complaints(rules::clocks, "crates/proxy/src/a.rs", &timer),
        0
    );
}

#[test]
fn lints_are_switched_off_with_a_reason() {
    let bare = "#[allow(dead_code)]\nfn a() {}\n\n\n\n\n\n";
    let argued = "#[expect(\n    dead_code,\n    reason = \"read by tests\"\n)]\nfn a() {}\n";
    assert_eq!(complaints(rules::reasons_for_exceptions, "a.rs", bare), 1);
    assert_eq!(complaints(rules::reasons_for_exceptions, "a.rs", argued), 0);
}

#[test]
fn white_space_at_ends() {
    assert_eq!(complaints(rules::white_space, "a.md", "text \nmore"), 2);
    assert_eq!(complaints(rules::white_space, "a.md", "text\nmore\n"), 0);
}

#[test]
fn scenarios_are_short() {
    let long = "x\n".repeat(61);
    assert_eq!(
        complaints(rules::scenario_length, "scenarios/tests/it/vary.rs", &long),
        1
    );
    assert_eq!(
        complaints(rules::scenario_length, "scenarios/tests/it/main.rs", &long),
        0
    );
}

#[test]
fn links_are_read_outside_code() {
    let text = "See [a](b.md) and [c](d.md#e).\n```\n[not](this)\n```\n";
    assert_eq!(links::targets(text), ["b.md", "d.md#e"]);
    assert_eq!(
        links::anchor("## Two words, and `code`"),
        "two-words-and-code"
    );
    let broken =
        "[x](no-such-file.md) [y](#nowhere) [z](https://example.com/) [w](#here)\n# Here\n";
    assert_eq!(complaints(links::relative_links, "README.md", broken), 2);
}

#[test]
fn manifests_take_settings_from_the_workspace() {
    let good = "version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
                license.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true\n\
                [dependencies]\nbytes.workspace = true\n";
    assert_eq!(
        complaints(manifests::shared_settings, "crates/a/Cargo.toml", good),
        0
    );
    let apart = "[workspace]\n[dependencies]\nbytes = \"1\"\n";
    assert_eq!(
        complaints(manifests::shared_settings, "bench/a/Cargo.toml", apart),
        0
    );
    let own = good.replace("bytes.workspace = true", "bytes = \"1\"");
    assert_eq!(
        complaints(manifests::shared_settings, "crates/a/Cargo.toml", &own),
        1
    );
}

#[test]
fn unused_dependencies_are_found() {
    let manifest = file(
        "crates/a/Cargo.toml",
        "[dependencies]\nmemchr.workspace = true\nitoa.workspace = true\n",
    );
    let code = file(
        "crates/a/src/lib.rs",
        "use memchr::memchr;\nlet itoas = 1;\n",
    );
    let outcome = manifests::unused_dependencies(&[manifest, code]);
    assert_eq!((outcome.passed, outcome.complaints.len()), (1, 1));
}

#[test]
fn names_in_guides_exist() {
    let code = [
        file(
            "crates/foxy/src/admin/metrics/mod.rs",
            "BytesOut => \"client_sent_bytes\", (\"ram_bytes\" \"foxy_up_seconds\"",
        ),
        file(
            "crates/proxy/src/state/counters/mod.rs",
            "    A = \"fills_started\",\n",
        ),
        file(
            "crates/proxy/src/state/outcome.rs",
            "\"memory-hit\" allow_client",
        ),
    ];
    let complaints = |text: &str| {
        let guide = [file("docs/operating.md", text)];
        let files: Vec<Source> = guide.into_iter().chain(code.iter().map(copy)).collect();
        names::guides(&files).complaints.len()
    };
    let right = "`foxy_client_sent_bytes_total` foxy_ram_bytes foxy_up_seconds_bucket\n\
                 foxy_fills_started_total `foxy_proxy` `log.level = \"info\"` `memory-hit`\n\
                 `--allow-client` `Host` `a.b`\n";
    assert_eq!(complaints(right), 0);
    for wrong in [
        "foxy_ram_bytes_total",
        "foxy_fills_started",
        "`log.levels`",
        "`memory-hits`",
        "`--allow-clients`",
    ] {
        assert_eq!(complaints(wrong), 1, "{wrong}");
    }
}

#[test]
fn words_stand_once_in_the_glossary() {
    let text = "| word | meaning |\n|---|---|\n| drain | to end |\n| drain (a store) | to move |\n";
    assert_eq!(complaints(names::glossary, "docs/glossary.md", text), 1);
    let once = text.replace("drain (", "share (");
    assert_eq!(complaints(names::glossary, "docs/glossary.md", &once), 0);
}

fn copy(source: &Source) -> Source {
    file(&source.path, &source.text)
}
