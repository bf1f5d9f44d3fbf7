//! ccache with a build cache: a second machine does not compile files that the first machine has compiled.

use std::path::Path;
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::process::{Foxy, run, text, tool};

const TOKEN: &str = "token-of-the-builders";

#[test]
fn a_second_machine_compiles_nothing() {
    let (Some(_), Some(_)) = (tool("ccache", "ccache"), tool("cc", "gcc")) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let digest = Sha256::digest(TOKEN);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let tokens = scratch.path().join("tokens");
    std::fs::write(&tokens, format!("{digest} user=ci\n")).unwrap();
    let (foxy, address) = Foxy::building(&format!(
        "[login]\ntoken_file = {tokens:?}\nat = \"build\"\n"
    ));
    let source = scratch.path().join("a.c");
    std::fs::write(&source, "int answer(void) { return 42; }\n").unwrap();
    // Each machine has its own local cache of ccache. All machines have the same source in the same place.
    let compile = |machine: &str, storage: &str| {
        let cache = foxy.dir().join(machine);
        let object = cache.join("a.o");
        std::fs::create_dir_all(&cache).unwrap();
        let with = |command: &mut Command| {
            command
                .current_dir(scratch.path())
                .env("CCACHE_DIR", &cache)
                .env("CCACHE_REMOTE_STORAGE", storage);
        };
        let mut compiler = Command::new("ccache");
        compiler.args(["cc", "-c", "a.c", "-o"]).arg(&object);
        with(&mut compiler);
        run(&mut compiler);
        let mut statistics = Command::new("ccache");
        statistics.arg("--print-stats");
        with(&mut statistics);
        (bytes_of(&object), text(&mut statistics))
    };
    let count = |statistics: &str, name: &str| {
        let line = statistics.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_whitespace().nth(1));
        value.map_or(0, |value| value.parse::<u32>().unwrap())
    };
    // Without a login nothing is stored, but the compilation succeeds.
    let (plain, _) = compile("nobody", &format!("http://{address}"));
    let with = |layout: &str| format!("http://{address}{layout}|bearer-token={TOKEN}");
    let (first, said) = compile("one", &with(""));
    assert_eq!(count(&said, "remote_storage_miss"), 1, "{said}");
    assert_eq!(count(&said, "remote_storage_error"), 0, "{said}");
    let (second, said) = compile("two", &with(""));
    assert_eq!(count(&said, "remote_storage_hit"), 1, "{said}");
    assert_eq!(count(&said, "cache_miss"), 0, "{said}");
    // Reading needs no login. A token also works as a password.
    let (third, said) = compile("three", &format!("http://{address}|read-only"));
    assert_eq!(count(&said, "remote_storage_hit"), 1, "{said}");
    let (_, said) = compile("four", &format!("http://ci:{TOKEN}@{address}/team"));
    assert_eq!(count(&said, "remote_storage_error"), 0, "{said}");
    let (_, said) = compile("five", &format!("http://{address}/team"));
    assert_eq!(count(&said, "remote_storage_hit"), 1, "{said}");
    assert!([first, second, third].iter().all(|object| *object == plain));
}

fn bytes_of(object: &Path) -> Vec<u8> {
    std::fs::read(object).unwrap()
}
