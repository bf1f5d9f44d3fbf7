//! With `--strict`, a store that cannot be used prevents the start. The message describes what the operator
//! can do.

use foxy::config::{Config, ThisMachine, parse};
use foxy::{Parts, Running, StartError, start};

fn begin(path: &std::path::Path, size: &str) -> Result<Running, StartError> {
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"off\"\nworkers = 1\n[[store]]\npath = {path:?}\n{size}"
    );
    let given = parse(&text, "scene").expect("valid configuration");
    let config = Config::build(&given, &ThisMachine).expect("right configuration");
    let parts = Parts {
        strict: true,
        ..Parts::system()
    };
    start(&config, parts)
}

fn problem(path: &std::path::Path, size: &str) -> String {
    match begin(path, size) {
        Ok(_) => panic!("no refusal"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn story() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);

    let running = begin(&path("store"), "size = \"32MiB\"").unwrap();
    assert!(problem(&path("store"), "").contains("in use"));
    running.shutdown();
    begin(&path("store"), "").unwrap().shutdown();

    std::fs::write(path("letters"), "Dear aunt, ".repeat(3_000_000)).unwrap();
    assert!(problem(&path("letters"), "").contains("another program's data"));
    assert!(
        std::fs::read_to_string(path("letters"))
            .unwrap()
            .starts_with("Dear aunt")
    );

    std::fs::write(path("small"), "x").unwrap();
    let said = problem(&path("small"), "");
    assert!(said.contains("small") && said.contains(';'), "{said}");
    assert!(problem(folder.path(), "size = \"32MiB\"").contains("is a directory"));
    let said = problem(&path("store/below"), "size = \"32MiB\"");
    assert!(said.contains("correct the path"), "{said}");
    assert!(problem(&path("huge"), "size = \"8000TiB\"").contains("choose a smaller size"));
}
