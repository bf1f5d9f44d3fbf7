//! uv, pnpm and both generations of yarn install a package with the settings that `foxy mirror setup` has
//! made. The tests also check the lock files.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{MODULE, SOURCE};
use super::settings::{set_up, undo};
use super::{alone, file, three_times};
use crate::clients::process::{Foxy, fetched_tool, run};

const PROJECT: &str =
    "{\"name\":\"x\",\"version\":\"1.0.0\",\"dependencies\":{\"foxydemo\":\"1.0.0\"}}";

/// Returns a command for this program, with the program's own folder first in PATH.
fn client(program: &Path, folder: &Path) -> Command {
    let mut client = alone(Command::new(program), folder);
    client.env("PATH", path(program));
    client
}

/// Returns the current PATH, with the program's own folder first.
fn path(program: &Path) -> std::ffi::OsString {
    let own = program.parent().unwrap().to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others))).unwrap()
}

/// True if the lock file contains the address of the mirror.
fn names(foxy: &Foxy, folder: &Path, lock: &str) -> bool {
    let text = std::fs::read_to_string(folder.join(lock)).unwrap();
    assert!(text.contains("foxydemo"), "{text}");
    text.contains(&foxy.proxy.to_string())
}

#[test]
fn uv() {
    let Some(uv) = fetched_tool("uv") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        let project = "[project]\nname = \"x\"\nversion = \"0.1.0\"\nrequires-python = \">=3.8\"\ndependencies = [\"foxydemo\"]\n";
        std::fs::write(folder.join("pyproject.toml"), project).unwrap();
        set_up(foxy, "uv", folder, &[]);
        let uv = |args: &[&str]| {
            let mut uv = client(&uv, folder);
            uv.args(["--no-python-downloads", "--no-cache"]);
            run(uv.args(args));
        };
        uv(&["sync"]);
        assert!(names(foxy, folder, "uv.lock"));
        // The URLs in the lock file differ from the registry's own URLs only at their beginning.
        let lock = std::fs::read_to_string(folder.join("uv.lock")).unwrap();
        assert!(
            lock.contains(&format!("{}/pypi/simple/\"", foxy.url())),
            "{lock}"
        );
        assert!(lock.contains(&format!("{}/pypi/~", foxy.url())), "{lock}");
        // The exported requirements have digests, but no URLs.
        uv(&[
            "export",
            "--frozen",
            "--no-emit-project",
            "-q",
            "-o",
            "requirements.txt",
        ]);
        assert!(!names(foxy, folder, "requirements.txt"));
        std::fs::remove_dir_all(folder.join(".venv")).unwrap();
        uv(&["venv", "-q"]);
        uv(&["pip", "sync", "requirements.txt"]);
        undo(foxy, "uv", folder, &[]);
        file(&folder.join(".venv"), "foxydemo/__init__.py")
    };
    three_times(install, |_| MODULE.into());
}

#[test]
fn pnpm() {
    let Some(pnpm) = fetched_tool("pnpm") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        std::fs::write(folder.join("package.json"), PROJECT).unwrap();
        let path = path(&pnpm).into();
        set_up(foxy, "pnpm", folder, &[("PATH", &path)]);
        run(client(&pnpm, folder).args(["install", "--store-dir", "cache"]));
        assert!(!names(foxy, folder, "pnpm-lock.yaml"));
        undo(foxy, "pnpm", folder, &[("PATH", &path)]);
        file(&folder.join("node_modules/foxydemo/"), "index.js")
    };
    three_times(install, |_| SOURCE.into());
}

/// Yarn 1 writes the mirror's URLs into its lock file.
#[test]
fn yarn_1() {
    let Some(yarn) = fetched_tool("yarn-1") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        std::fs::write(folder.join("package.json"), PROJECT).unwrap();
        let path = path(&yarn).into();
        // With the variable `FAKEROOTKEY`, yarn 1 keeps its settings in the home folder even if it runs as
        // root.
        let yes = PathBuf::from("yes");
        let env = [("PATH", &path), ("FAKEROOTKEY", &yes)];
        set_up(foxy, "yarn", folder, &env);
        let mut yarn = client(&yarn, folder);
        yarn.env("FAKEROOTKEY", "yes");
        run(yarn.args(["install", "--cache-folder", "cache", "--no-progress"]));
        assert!(names(foxy, folder, "yarn.lock"));
        undo(foxy, "yarn", folder, &env);
        file(&folder.join("node_modules/foxydemo"), "index.js")
    };
    three_times(install, |_| SOURCE.into());
}

#[test]
fn yarn_later() {
    let Some(yarn) = fetched_tool("yarn") else {
        return;
    };
    let install = |foxy: &Foxy, folder: &Path| {
        std::fs::write(folder.join("package.json"), PROJECT).unwrap();
        std::fs::write(folder.join("yarn.lock"), "").unwrap();
        let path = path(&yarn).into();
        set_up(foxy, "yarn", folder, &[("PATH", &path)]);
        let mut install = client(&yarn, folder);
        install
            .env("YARN_NODE_LINKER", "node-modules")
            .env("YARN_ENABLE_TELEMETRY", "0")
            .env("YARN_ENABLE_IMMUTABLE_INSTALLS", "0")
            // The packument of this test has no dates, so yarn's own minimum age is turned off.
            .env("YARN_NPM_MINIMAL_AGE_GATE", "0");
        run(install.arg("install"));
        assert!(!names(foxy, folder, "yarn.lock"));
        undo(foxy, "yarn", folder, &[("PATH", &path)]);
        file(&folder.join("node_modules/foxydemo"), "index.js")
    };
    three_times(install, |_| SOURCE.into());
}
