//! apt: package lists and one package through Foxy, if a package mirror is reachable.

use std::process::Command;

use crate::clients::process::{Foxy, run, text, tool};

#[test]
fn update_and_download_twice() {
    let Some(_) = tool("apt-get", "apt") else {
        return;
    };
    let foxy = Foxy::forward(&[443]);
    let state = foxy.dir().join("apt");
    let apt = |args: &[&str]| {
        let lists = state.join("lists");
        let archives = state.join("archives");
        for dir in [lists.join("partial"), archives.join("partial")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let mut command = Command::new("apt-get");
        command
            .current_dir(&state)
            .args(["-o", &format!("Acquire::http::Proxy={}", foxy.url())])
            .args([
                "-o",
                "Acquire::https::Proxy=DIRECT",
                "-o",
                "Acquire::Retries=0",
            ])
            .args(["-o", &format!("Dir::State::lists={}", lists.display())])
            .args([
                "-o",
                &format!("Dir::Cache::archives={}", archives.display()),
            ])
            .args([
                "-o",
                "APT::Sandbox::User=root",
                "-o",
                "Dir::Cache::pkgcache=",
            ])
            .args(args);
        command
    };
    let Ok(mirror) = reachable_mirror(&foxy) else {
        eprintln!("no package mirror can be reached from here over http: apt was not tried");
        return;
    };
    let sources = state.join("sources.list");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(&sources, mirror).unwrap();
    let list = format!("Dir::Etc::sourcelist={}", sources.display());
    let only = ["-o", &list, "-o", "Dir::Etc::sourceparts=-"];
    let said = text(apt(&only).arg("update"));
    assert!(said.contains("Get:1"), "{said}");
    for _ in 0..2 {
        let _ = std::fs::remove_file(state.join("hostname.deb"));
        run(apt(&only).args(["download", "hostname"]));
        let fetched = std::fs::read_dir(&state)
            .unwrap()
            .flatten()
            .find(|e| e.file_name().to_string_lossy().ends_with(".deb"))
            .expect("the package is there");
        run(Command::new("dpkg-deb").arg("--info").arg(fetched.path()));
        std::fs::remove_file(fetched.path()).unwrap();
    }
}

/// Returns a `deb` line for the first http mirror in this system's settings that answers through Foxy.
fn reachable_mirror(foxy: &Foxy) -> Result<String, ()> {
    let policy = Command::new("apt-cache")
        .arg("policy")
        .output()
        .map_err(|_| ())?;
    let said = String::from_utf8_lossy(&policy.stdout).into_owned();
    // The suite of the main archive is used, because it has every package. The suites of updates have only
    // some packages.
    for line in said.lines().filter(|line| line.contains(" http://")) {
        let mut words = line.split_whitespace().skip(1);
        let (Some(base), Some(place)) = (words.next(), words.next()) else {
            continue;
        };
        let Some((suite, component)) = place.split_once('/') else {
            continue;
        };
        if suite.contains('-') || component != "main" {
            continue;
        }
        let url = format!("{base}/dists/{suite}/InRelease");
        let proxy = foxy.url();
        let probe = ["-sf", "-m", "15", "-o", "/dev/null", "-x", &proxy, &url];
        if Command::new("curl")
            .args(probe)
            .status()
            .is_ok_and(|s| s.success())
        {
            return Ok(format!("deb {base} {suite} {component}\n"));
        }
    }
    Err(())
}
