//! skopeo, podman and containerd pull an image through a mirror. The registry is a fake that behaves like a
//! real registry: a separate service issues tokens, layers are behind signed URLs of a separate storage
//! server, answers have no validators, and there are rate limits.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::process::{Foxy, run, tool};
use super::web::{Request, Response, Web, serve};

/// Bytes of the larger layer. It cannot be compressed, and is larger than Foxy's memory for objects.
const LAYER: usize = 24 << 20;

/// The blobs of an image, each with its digest. The first blob is the manifest, and the second blob is the
/// configuration.
struct Image {
    blobs: Vec<(String, Vec<u8>)>,
}

impl Image {
    fn new() -> Self {
        let mut seed = 7_u64;
        let noise = (0..LAYER).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        });
        let files = [
            ("etc/issue", b"foxy\n".to_vec()),
            ("usr/noise", noise.collect()),
        ];
        let layers: Vec<(Vec<u8>, String)> = files.map(|(name, text)| layer(name, &text)).into();
        let plain: Vec<String> = layers.iter().map(|(_, id)| format!("\"{id}\"")).collect();
        let config = format!(
            "{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{{}},\"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[{}]}}}}",
            plain.join(",")
        );
        let about = |kind: &str, bytes: &[u8]| {
            format!(
                "{{\"mediaType\":\"application/vnd.oci.image.{kind}\",\"digest\":\"{}\",\"size\":{}}}",
                name_of(bytes),
                bytes.len()
            )
        };
        let listed: Vec<String> = layers
            .iter()
            .map(|(bytes, _)| about("layer.v1.tar+gzip", bytes))
            .collect();
        let manifest = format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"{MANIFEST}\",\"config\":{},\"layers\":[{}]}}",
            about("config.v1+json", config.as_bytes()),
            listed.join(",")
        );
        let blobs = [manifest.into_bytes(), config.into_bytes()].into_iter();
        let blobs = blobs.chain(layers.into_iter().map(|(bytes, _)| bytes));
        Self {
            blobs: blobs.map(|bytes| (name_of(&bytes), bytes)).collect(),
        }
    }

    fn blob(&self, name: &str) -> Option<&[u8]> {
        let found = self.blobs.iter().find(|(own, _)| own == name);
        found.map(|(_, bytes)| &bytes[..])
    }
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn name_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns a layer with one file, and the digest of its uncompressed form.
fn layer(name: &str, text: &[u8]) -> (Vec<u8>, String) {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, text).unwrap();
    let plain = tar.into_inner().unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    (gzip.finish().unwrap(), name_of(&plain))
}

struct Registry {
    web: Web,
    storage: Web,
    image: Arc<Image>,
    /// Methods and paths of the requests.
    asked: Arc<Mutex<Vec<String>>>,
    fails: Arc<AtomicBool>,
}

impl Registry {
    fn start() -> Self {
        let (image, asked) = (Arc::new(Image::new()), Arc::<Mutex<Vec<String>>>::default());
        let fails = Arc::new(AtomicBool::new(false));
        let (own, seen) = (Arc::clone(&image), Arc::clone(&asked));
        let storage = serve(move |request: &Request| {
            let line = format!("{} {}", request.method, request.path);
            seen.lock().unwrap().push(line);
            stored(&own, request)
        });
        let storage = storage.unwrap();
        let (own, failing, at) = (Arc::clone(&image), Arc::clone(&fails), storage.url(""));
        let web = serve(
            move |request: &Request| match failing.load(Ordering::SeqCst) {
                true => Response::new(429, "application/json", "{}").with("Retry-After", "60"),
                false => answer(&own, request, &at),
            },
        );
        Self {
            web: web.unwrap(),
            storage,
            image,
            asked,
            fails,
        }
    }

    /// Starts a Foxy with a mirror of this registry. `name` is the registry's name in the requests of
    /// clients.
    fn foxy(&self, name: &str) -> Foxy {
        let [url, storage] = [&self.web, &self.storage].map(|web| web.url(""));
        Foxy::mirroring(&format!(
            "[[mirror]]\npreset = \"oci\"\nname = \"{name}\"\nupstream = \"{url}\"\nhosts = [\"{storage}\"]\nfresh = \"1s\"\n"
        ))
    }

    /// Pulls the image three times: when nothing is stored, when the image is stored, and when the registry's
    /// rate limit is reached.
    fn rounds(&self, foxy: &Foxy, pull: impl Fn(&str)) {
        for (round, fails) in [("cold", false), ("warm", false), ("limited", true)] {
            self.fails.store(fails, Ordering::SeqCst);
            // After this pause, the stored tags are stale.
            std::thread::sleep(Duration::from_millis(1100));
            pull(round);
            self.each_fetched_once(foxy, round);
        }
    }

    /// Checks that each blob was fetched once. If the disk is slower than the registry, Foxy may drop parts
    /// of a blob and fetch them again. So each dropped part permits one further fetch.
    fn each_fetched_once(&self, foxy: &Foxy, round: &str) {
        let (transfers, stats) = (self.transfers(), foxy.stats());
        let dropped = stats["engine"]["drop_pending"].as_u64().expect("a count");
        assert!(
            transfers.iter().all(|times| *times > 0),
            "{round}: {transfers:?}"
        );
        let again = transfers.iter().sum::<usize>() - transfers.len();
        assert!(again as u64 <= dropped, "{round}: {transfers:?}: {stats}");
    }

    /// Returns the number of times that the storage has sent each blob.
    fn transfers(&self) -> Vec<usize> {
        let asked = self.asked.lock().unwrap();
        let blobs = self.image.blobs.iter().skip(1);
        let times = |(name, _): &(String, Vec<u8>)| {
            let line = format!("GET /storage/{name}");
            asked.iter().filter(|asked| **asked == line).count()
        };
        blobs.map(times).collect()
    }
}

/// Answers as the storage behind the signed URLs.
fn stored(image: &Image, request: &Request) -> Response {
    // The signature is enough for the storage. If a request contained a credential of the registry too, that
    // would be a leak.
    assert!(!request.fields.contains_key("authorization"));
    let name = request.path.strip_prefix("/storage/").unwrap_or_default();
    match image.blob(name) {
        Some(bytes) if request.query == "sig=1" => {
            Response::new(200, "application/octet-stream", bytes)
        }
        _ => Response::new(403, "text/plain", "not signed"),
    }
}

fn answer(image: &Image, request: &Request, storage: &str) -> Response {
    let host = &request.fields["host"];
    if request.path == "/token" {
        return Response::new(
            200,
            "application/json",
            "{\"token\":\"t\",\"expires_in\":300}",
        );
    }
    if request.fields.get("authorization").map(String::as_str) != Some("Bearer t") {
        let realm = format!(
            "Bearer realm=\"http://{host}/token\",service=\"r\",scope=\"repository:team/app:pull\""
        );
        return Response::new(401, "application/json", "{}").with("WWW-Authenticate", &realm);
    }
    let (name, manifest) = &image.blobs[0];
    let of = |path: &str| request.path == format!("/v2/team/app/{path}");
    if of("manifests/latest") || of(&format!("manifests/{name}")) {
        return Response::new(200, MANIFEST, &manifest[..]).with("Docker-Content-Digest", name);
    }
    let blob = request.path.strip_prefix("/v2/team/app/blobs/");
    match blob.filter(|name| image.blob(name).is_some()) {
        Some(name) => Response::new(307, "text/plain", "moved")
            .with("Location", &format!("{storage}/storage/{name}?sig=1")),
        None => Response::new(404, "application/json", "{\"errors\":[]}"),
    }
}

/// Checks that the files written by skopeo are the blobs of the image.
fn is_whole(image: &Image, folder: &Path) {
    for (name, bytes) in &image.blobs {
        let file = match *name == image.blobs[0].0 {
            true => "manifest.json",
            false => name.strip_prefix("sha256:").unwrap(),
        };
        assert!(
            std::fs::read(folder.join(file)).unwrap() == *bytes,
            "{name}"
        );
    }
}

#[test]
fn skopeo() {
    let Some(_) = tool("skopeo", "skopeo") else {
        return;
    };
    let registry = Registry::start();
    let foxy = registry.foxy("registry.test");
    let copy = |to: &str| {
        let folder = foxy.dir().join(to);
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--insecure-policy", "copy", "--src-tls-verify=false"]);
        skopeo.arg(format!(
            "docker://{}/registry.test/team/app:latest",
            foxy.proxy
        ));
        skopeo.arg(format!("dir:{}", folder.display()));
        skopeo
            .env("HOME", foxy.dir())
            .env_remove("http_proxy")
            .env_remove("https_proxy");
        (skopeo, folder)
    };
    // Four pulls at the same time cause one transfer of each blob.
    let cold: Vec<_> = (0..4).map(|n| copy(&format!("cold{n}"))).collect();
    std::thread::scope(|scope| {
        for (mut skopeo, folder) in cold {
            let image = &registry.image;
            scope.spawn(move || {
                run(&mut skopeo);
                is_whole(image, &folder);
            });
        }
    });
    registry.each_fetched_once(&foxy, "four at once");
    // Pulls again, first normally, then with the registry's rate limit reached.
    for (name, fails) in [("warm", false), ("limited", true)] {
        registry.fails.store(fails, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1100));
        let (mut skopeo, folder) = copy(name);
        run(&mut skopeo);
        is_whole(&registry.image, &folder);
        registry.each_fetched_once(&foxy, name);
    }
}

/// True for root. For other users, prints a message that this part was skipped.
fn is_root(program: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("{program} is tested as root alone: not tried");
    }
    root
}

/// Returns a command that runs `program`. For this program, the files of `folder` are at the path `place`,
/// where the system's settings usually are.
fn in_place(folder: &Path, place: &str, program: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-ec",
        "mount --bind \"$0\" \"$1\"; shift; exec \"$@\"",
    ]);
    command.arg(folder).args([place, program]);
    command
}

/// Writes settings for docker.io by `foxy mirror setup`.
fn set_up(foxy: &Foxy, tool: &str, folder: &Path, place: &str) {
    let mut setup = in_place(folder, place, env!("CARGO_BIN_EXE_foxy"));
    run(setup.args(["mirror", "setup", tool, "--url", &foxy.url(), "--write"]));
}

#[test]
fn podman() {
    let Some(_) = tool("podman", "podman") else {
        return;
    };
    if !is_root("podman") {
        return;
    }
    let registry = Registry::start();
    let foxy = registry.foxy("docker.io");
    let folder = foxy.dir();
    let settings = folder.join("settings");
    std::fs::create_dir(&settings).unwrap();
    let policy = "{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}";
    std::fs::write(settings.join("policy.json"), policy).unwrap();
    set_up(&foxy, "podman", &settings, "/etc/containers");
    let (config, _) = &registry.image.blobs[1];
    let id = config.strip_prefix("sha256:").unwrap();
    registry.rounds(&foxy, |round| {
        // Each round has its own storage, so that podman does not know the last pull.
        let storage = folder.join(round);
        let podman = |args: &[&str]| {
            let mut podman = in_place(&settings, "/etc/containers", "podman");
            podman.args(["--storage-driver", "vfs", "--root"]);
            podman.arg(storage.join("root")).arg("--runroot");
            podman.arg(storage.join("run")).args(args);
            podman
                .env("HOME", folder)
                .env_remove("http_proxy")
                .env_remove("https_proxy");
            run(&mut podman)
        };
        // podman itself compares all digests, including the digests of unpacked layers.
        let pulled = podman(&["pull", "--quiet", "docker.io/team/app:latest"]);
        assert_eq!(String::from_utf8_lossy(&pulled.stdout).trim(), id);
    });
}

/// A containerd with its own folder. It is killed when this value is dropped.
struct Containerd(Child);

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn containerd() {
    let (Some(_), Some(_)) = (tool("containerd", "containerd"), tool("ctr", "containerd")) else {
        return;
    };
    if !is_root("containerd") {
        return;
    }
    let registry = Registry::start();
    let foxy = registry.foxy("docker.io");
    let folder = foxy.dir();
    let socket = folder.join("c.sock");
    let settings = format!(
        "version = 2\nroot = \"{0}/root\"\nstate = \"{0}/state\"\n\
         disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = \"{1}\"\n\
         [plugins.\"io.containerd.metadata.v1.bolt\"]\ncontent_sharing_policy = \"isolated\"\n",
        folder.display(),
        socket.display()
    );
    std::fs::write(folder.join("containerd.toml"), settings).unwrap();
    let mut daemon = Command::new("containerd");
    daemon.arg("--config").arg(folder.join("containerd.toml"));
    daemon.stdout(Stdio::null()).stderr(Stdio::null());
    let _daemon = Containerd(daemon.spawn().unwrap());
    // containerd is a real client that sends the registry's name (`?ns=`) to the mirror.
    let own = folder.join("settings");
    std::fs::create_dir(&own).unwrap();
    set_up(&foxy, "containerd", &own, "/etc/containerd");
    let ctr = |args: &[&str]| {
        let mut ctr = Command::new("ctr");
        ctr.arg("--address").arg(&socket).args(args);
        ctr
    };
    let answers = || ctr(&["version"]).output().is_ok_and(|o| o.status.success());
    assert!(
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            answers()
        }),
        "containerd does not answer"
    );
    let hosts = own.join("certs.d");
    registry.rounds(&foxy, |round| {
        // Each round has its own namespace, so that containerd does not know the last pull.
        run(
            ctr(&["--namespace", round, "content", "fetch", "--hosts-dir"])
                .arg(&hosts)
                .arg("docker.io/team/app:latest"),
        );
        for (name, bytes) in &registry.image.blobs {
            let got = run(&mut ctr(&["--namespace", round, "content", "get", name]));
            assert!(got.stdout == *bytes, "{round} {name}");
        }
    });
}
