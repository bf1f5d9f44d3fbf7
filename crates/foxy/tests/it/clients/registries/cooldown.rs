//! pip, uv, npm and cargo use mirrors with rules about versions. A version that is too young is not chosen.
//! It is installed only if a lock file or an exact version number (pin) names it. A blocked version is never
//! installed.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_base::{Clock, SystemClock};
use sha2::{Digest, Sha512};

use super::packages::{hex, tar, zip};
use super::{alone, file};
use crate::clients::process::{Foxy, fetched_tool, run, tool};
use crate::clients::web::{Request, Response, Web, serve};

/// Each registry has an old version with a date in 2020, and a young version that is one hour old.
const OLD: (&str, &str) = ("1.0.0", "2020-01-01T00:00:00.000Z");
const YOUNG: &str = "1.1.0";

fn now() -> String {
    // The time of the young version is one hour ago, so that differences between clocks do not matter.
    let seconds = SystemClock::default().wall().0.div_euclid(1000) - 3600;
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}

fn versions() -> [(&'static str, String); 2] {
    [(OLD.0, OLD.1.to_owned()), (YOUNG, now())]
}

fn wheel(version: &str) -> Vec<u8> {
    let metadata = format!("Metadata-Version: 2.1\nName: foxydemo\nVersion: {version}\n");
    let info = format!("foxydemo-{version}.dist-info");
    zip(&[
        ("foxydemo/__init__.py", version),
        (&format!("{info}/METADATA"), &metadata),
        (
            &format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        ),
        (&format!("{info}/RECORD"), ""),
    ])
}

fn tarball(version: &str) -> Vec<u8> {
    let about = format!("{{\"name\":\"foxydemo\",\"version\":\"{version}\"}}");
    tar(&[
        ("package/package.json", &about),
        ("package/index.js", version),
    ])
}

fn integrity(version: &str) -> String {
    format!(
        "sha512-{}",
        STANDARD.encode(Sha512::digest(tarball(version)))
    )
}

fn krate(version: &str) -> Vec<u8> {
    let about =
        format!("[package]\nname = \"foxydemo\"\nversion = \"{version}\"\nedition = \"2021\"\n");
    let folder = format!("foxydemo-{version}");
    tar(&[
        (&format!("{folder}/Cargo.toml"), &about),
        (&format!("{folder}/src/lib.rs"), ""),
    ])
}

fn wheel_name(version: &str) -> String {
    format!("foxydemo-{version}-py3-none-any.whl")
}

/// Calls `each` for every version and its time, and joins the returned texts.
fn list(each: impl Fn(&str, &str) -> String, between: &str) -> String {
    let all = versions();
    let each = all.iter().map(|(version, time)| each(version, time));
    each.collect::<Vec<_>>().join(between)
}

fn simple(base: &str) -> String {
    let file = |version: &str, time: &str| {
        let name = wheel_name(version);
        let digest = hex(&wheel(version));
        format!(
            "{{\"filename\":\"{name}\",\"url\":\"{base}/py/files/{name}\",\"hashes\":{{\"sha256\":\"{digest}\"}},\"upload-time\":\"{time}\",\"yanked\":false}}"
        )
    };
    let files = list(file, ",");
    format!("{{\"meta\":{{\"api-version\":\"1.1\"}},\"name\":\"foxydemo\",\"files\":[{files}]}}")
}

/// Returns the packument (npm's index document). Its abbreviated form has no dates, as in npm's own registry.
fn packument(base: &str, is_short: bool) -> String {
    let version = |version: &str, _: &str| {
        format!(
            "\"{version}\":{{\"name\":\"foxydemo\",\"version\":\"{version}\",\"dist\":{{\"integrity\":\"{}\",\"tarball\":\"{base}/npm/foxydemo/-/foxydemo-{version}.tgz\"}}}}",
            integrity(version)
        )
    };
    let versions = list(version, ",");
    let date = |version: &str, time: &str| format!("\"{version}\":\"{time}\"");
    let time = match is_short {
        true => String::new(),
        false => format!(",\"time\":{{{}}}", list(date, ",")),
    };
    format!(
        "{{\"name\":\"foxydemo\",\"dist-tags\":{{\"latest\":\"{YOUNG}\"}},\"versions\":{{{versions}}}{time}}}"
    )
}

fn index() -> String {
    let line = |version: &str, time: &str| {
        format!(
            "{{\"name\":\"foxydemo\",\"vers\":\"{version}\",\"deps\":[],\"cksum\":\"{}\",\"features\":{{}},\"yanked\":false,\"pubtime\":\"{}\"}}\n",
            hex(&krate(version)),
            time.get(..19).unwrap_or(time).to_owned() + "Z"
        )
    };
    list(line, "")
}

fn artefact(path: &str) -> Option<Vec<u8>> {
    [OLD.0, YOUNG].into_iter().find_map(|version| {
        if path.ends_with(&wheel_name(version)) {
            Some(wheel(version))
        } else if path.ends_with(&format!("/foxydemo-{version}.tgz")) {
            Some(tarball(version))
        } else if path.ends_with(&format!("/foxydemo/{version}/download")) {
            Some(krate(version))
        } else {
            None
        }
    })
}

/// Returns media type and body for a path.
fn answer(request: &Request) -> Option<(&'static str, Vec<u8>)> {
    let base = format!("http://{}", request.fields["host"]);
    let (content_type, text) = match &request.path[..] {
        "/py/simple/foxydemo/" => ("application/vnd.pypi.simple.v1+json", simple(&base)),
        "/npm/foxydemo" => {
            let accept = request.fields.get("accept");
            let is_short = accept.is_some_and(|text| text.starts_with("application/vnd.npm"));
            ("application/json", packument(&base, is_short))
        }
        "/crates/config.json" => {
            let text = format!("{{\"dl\":\"{base}/crates/dl\"}}");
            ("application/json", text)
        }
        "/crates/fo/xy/foxydemo" => ("text/plain", index()),
        path => return artefact(path).map(|body| ("application/octet-stream", body)),
    };
    Some((content_type, text.into_bytes()))
}

fn registries() -> Web {
    serve(|request: &Request| match answer(request) {
        Some((content_type, body)) => Response::new(200, content_type, body),
        None => Response::new(404, "text/plain", "no such thing"),
    })
    .unwrap()
}

/// Starts Foxy twice, each time with a mirror that requires a minimum age of versions. The second mirror also
/// blocks the young version.
fn foxy(web: &Web, preset: &str, path: &str) -> [Foxy; 2] {
    let section = |more: &str| {
        let url = web.url(path);
        format!("[[mirror]]\npreset = \"{preset}\"\nupstream = \"{url}\"\nmin_age = \"3d\"\n{more}")
    };
    let block = format!("block = [\"foxydemo@{YOUNG}\"]\n");
    [
        Foxy::mirroring(&section("")),
        Foxy::mirroring(&section(&block)),
    ]
}

/// Runs a command that must fail, and returns its output.
fn fails(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!output.status.success(), "{said}");
    said
}

fn folder(foxy: &Foxy, name: &str) -> std::path::PathBuf {
    let folder = foxy.dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn pip() {
    let Some(_) = tool("pip", "python3-pip") else {
        return;
    };
    let download = |foxy: &Foxy, folder: &Path, wanted: &str| {
        let mut pip = alone(Command::new("pip"), folder);
        let kept = |name: &str| std::env::var_os(name).unwrap_or_default();
        pip.env("PATH", kept("PATH"))
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PYENV_ROOT", kept("PYENV_ROOT"));
        let index = format!("{}/pypi/simple/", foxy.url());
        pip.args(["download", "--no-cache-dir", "--disable-pip-version-check"]);
        pip.args(["--no-deps", "--retries", "0", "--index-url", &index]);
        pip.args(["-d", "files", wanted]);
        pip
    };
    let web = registries();
    let [cools, blocks] = foxy(&web, "pypi", "/py");
    let newest = folder(&cools, "newest");
    run(&mut download(&cools, &newest, "foxydemo"));
    assert!(file(&newest.join("files"), ".whl") == wheel(OLD.0));
    let pinned = folder(&cools, "pinned");
    run(&mut download(&cools, &pinned, "foxydemo==1.1.0"));
    assert!(file(&pinned.join("files"), ".whl") == wheel(YOUNG));
    let blocked = folder(&blocks, "blocked");
    let said = fails(&mut download(&blocks, &blocked, "foxydemo==1.1.0"));
    assert!(said.contains("No matching distribution"), "{said}");
    let url = format!(
        "foxydemo @ {}/pypi/files/{}",
        blocks.url(),
        wheel_name(YOUNG)
    );
    let said = fails(&mut download(&blocks, &blocked, &url));
    assert!(said.contains("403"), "{said}");
}

#[test]
fn uv() {
    let Some(program) = fetched_tool("uv") else {
        return;
    };
    let uv = |foxy: &Foxy, folder: &Path, args: &[&str]| {
        let about = "[project]\nname = \"x\"\nversion = \"0.1.0\"\nrequires-python = \">=3.8\"\ndependencies = [\"foxydemo\"]\n";
        std::fs::write(folder.join("pyproject.toml"), about).unwrap();
        let mut uv = alone(Command::new(&program), folder);
        uv.env("UV_DEFAULT_INDEX", format!("{}/pypi/simple/", foxy.url()));
        uv.args(["--no-cache", "--no-python-downloads"]).args(args);
        uv
    };
    let locked = |foxy: &Foxy, folder: &Path| {
        let (url, name, digest) = (foxy.url(), wheel_name(YOUNG), hex(&wheel(YOUNG)));
        let text = format!(
            "version = 1\nrevision = 3\nrequires-python = \">=3.8\"\n\n\
             [[package]]\nname = \"foxydemo\"\nversion = \"{YOUNG}\"\n\
             source = {{ registry = \"{url}/pypi/simple/\" }}\n\
             wheels = [{{ url = \"{url}/pypi/files/{name}\", hash = \"sha256:{digest}\" }}]\n\n\
             [[package]]\nname = \"x\"\nversion = \"0.1.0\"\nsource = {{ virtual = \".\" }}\n\
             dependencies = [{{ name = \"foxydemo\" }}]\n\n\
             [package.metadata]\nrequires-dist = [{{ name = \"foxydemo\" }}]\n"
        );
        std::fs::write(folder.join("uv.lock"), text).unwrap();
    };
    let installed = |folder: &Path| {
        let text = file(&folder.join(".venv"), "foxydemo/__init__.py");
        String::from_utf8(text).unwrap()
    };
    let web = registries();
    let [cools, blocks] = foxy(&web, "pypi", "/py");
    let newest = folder(&cools, "newest");
    run(&mut uv(&cools, &newest, &["sync"]));
    assert_eq!(installed(&newest), OLD.0);
    let pinned = folder(&cools, "pinned");
    locked(&cools, &pinned);
    run(&mut uv(&cools, &pinned, &["sync", "--locked"]));
    assert_eq!(installed(&pinned), YOUNG);
    let blocked = folder(&blocks, "blocked");
    locked(&blocks, &blocked);
    let said = fails(&mut uv(&blocks, &blocked, &["sync", "--frozen"]));
    assert!(said.contains("403"), "{said}");
}

#[test]
fn npm() {
    let Some(_) = tool("npm", "npm") else {
        return;
    };
    let npm = |foxy: &Foxy, folder: &Path, command: &str| {
        let about =
            "{\"name\":\"x\",\"version\":\"1.0.0\",\"dependencies\":{\"foxydemo\":\"^1.0.0\"}}";
        std::fs::write(folder.join("package.json"), about).unwrap();
        let mut npm = alone(Command::new("npm"), folder);
        let registry = format!("{}/npm/", foxy.url());
        npm.args([command, "--registry", &registry, "--cache", "cache"]);
        npm.args([
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--fetch-retries=0",
        ]);
        npm
    };
    // Writes the lock file that npm would write if it used the registry without the mirror.
    let locked = |folder: &Path| {
        let text = format!(
            "{{\"name\":\"x\",\"version\":\"1.0.0\",\"lockfileVersion\":3,\"requires\":true,\"packages\":{{\
             \"\":{{\"name\":\"x\",\"version\":\"1.0.0\",\"dependencies\":{{\"foxydemo\":\"^1.0.0\"}}}},\
             \"node_modules/foxydemo\":{{\"version\":\"{YOUNG}\",\"integrity\":\"{}\",\
             \"resolved\":\"https://registry.npmjs.org/foxydemo/-/foxydemo-{YOUNG}.tgz\"}}}}}}",
            integrity(YOUNG)
        );
        std::fs::write(folder.join("package-lock.json"), text).unwrap();
    };
    let source = |folder: &Path| file(&folder.join("node_modules/foxydemo"), "index.js");
    let web = registries();
    let [cools, blocks] = foxy(&web, "npm", "/npm");
    let newest = folder(&cools, "newest");
    run(&mut npm(&cools, &newest, "install"));
    assert_eq!(source(&newest), OLD.0.as_bytes());
    let pinned = folder(&cools, "pinned");
    locked(&pinned);
    run(&mut npm(&cools, &pinned, "ci"));
    assert_eq!(source(&pinned), YOUNG.as_bytes());
    let blocked = folder(&blocks, "blocked");
    locked(&blocked);
    let said = fails(&mut npm(&blocks, &blocked, "ci"));
    assert!(said.contains("is blocked by the operator"), "{said}");
}

#[test]
fn cargo() {
    let cargo = |foxy: &Foxy, folder: &Path, locked: bool| {
        let home = folder.join("home");
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(folder.join("src/main.rs"), "fn main() {}").unwrap();
        let project = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
            [dependencies]\nfoxydemo = \"1.0.0\"\n";
        std::fs::write(folder.join("Cargo.toml"), project).unwrap();
        let settings = format!(
            "[source.crates-io]\nreplace-with = \"foxy\"\n[source.foxy]\nregistry = \"sparse+{}/cargo/\"\n[net]\nretry = 0\n",
            foxy.url()
        );
        std::fs::write(home.join("config.toml"), settings).unwrap();
        let mut cargo = super::plain_cargo(folder, &home);
        cargo.arg("fetch");
        if locked {
            let text = format!(
                "version = 3\n[[package]]\nname = \"foxydemo\"\nversion = \"{YOUNG}\"\n\
                 source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"{}\"\n\
                 [[package]]\nname = \"x\"\nversion = \"0.1.0\"\ndependencies = [\n \"foxydemo\",\n]\n",
                hex(&krate(YOUNG))
            );
            std::fs::write(folder.join("Cargo.lock"), text).unwrap();
            cargo.arg("--locked");
        }
        cargo
    };
    let web = registries();
    let [cools, blocks] = foxy(&web, "cargo", "/crates");
    let crate_of = |folder: &Path| file(&folder.join("home/registry/cache"), ".crate");
    let newest = folder(&cools, "newest");
    run(&mut cargo(&cools, &newest, false));
    assert!(crate_of(&newest) == krate(OLD.0));
    let pinned = folder(&cools, "pinned");
    run(&mut cargo(&cools, &pinned, true));
    assert!(crate_of(&pinned) == krate(YOUNG));
    let blocked = folder(&blocks, "blocked");
    let said = fails(&mut cargo(&blocks, &blocked, true));
    assert!(said.contains("is blocked by the operator"), "{said}");
}
