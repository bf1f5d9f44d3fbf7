//! A fake registry of container images that behaves like a real registry.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use foxy_proxy::mirror::{Mirror, preset};
use foxy_proxy::{Login, MirrorSite, Role};
use sha2::Digest as _;

use crate::common::{Asked, Foxy, Origin, until};
use crate::mirrors::config;

pub(super) fn digest(bytes: &[u8]) -> String {
    let hex: String = sha2::Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// The contents of the fake servers, and the requests that they have received.
#[derive(Default)]
pub(super) struct State {
    pub(super) asked: Mutex<Vec<String>>,
    /// Status with which the registry answers every request. 0 means that it does not fail.
    pub(super) fails: AtomicU16,
    pub(super) layer: Mutex<Vec<u8>>,
    /// Bytes that the storage sends instead of the layer.
    pub(super) wrong: Mutex<Option<Vec<u8>>>,
    /// The storage waits for this flag before it sends the second half of a layer.
    pub(super) go: AtomicBool,
    /// The manifest to which the tag `latest` points.
    pub(super) manifest: Mutex<Vec<u8>>,
    /// URL of the storage that has the layers.
    pub(super) storage: Mutex<String>,
    /// URL of the token service.
    pub(super) realm: Mutex<String>,
    /// True if the storage has received credentials.
    pub(super) leaked: AtomicBool,
}

impl State {
    pub(super) fn note(&self, asked: &Asked, server: &str) {
        let method = asked.head.split(' ').next().unwrap_or_default();
        let line = format!("{server} {method} {}", asked.path());
        self.asked.lock().unwrap().push(line);
    }

    /// Returns the number of requests whose text "server method path" begins with `start`.
    pub(super) fn count(&self, start: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(start)).count()
    }
}

pub(super) struct Fake {
    pub(super) state: Arc<State>,
    pub(super) registry: Origin,
    pub(super) auth: Origin,
    pub(super) storage: Origin,
}

/// Credential of the user `ann`. Only `ann` may have `team/secret` and its layer.
pub(super) const ANN: &str = "Basic YW5uOnB3";

impl Fake {
    pub(super) fn start() -> Self {
        let state = Arc::new(State::default());
        state.go.store(true, Ordering::SeqCst);
        *state.layer.lock().unwrap() = vec![7; 100_000];
        *state.manifest.lock().unwrap() = b"{\"schemaVersion\":2}".to_vec();
        let own = Arc::clone(&state);
        let storage = Origin::start(move |asked| storage(&own, asked));
        let own = Arc::clone(&state);
        let auth = Origin::start(move |asked| token(&own, asked));
        let own = Arc::clone(&state);
        let registry = Origin::start(move |asked| registry(&own, asked));
        let at = |origin: &Origin| format!("http://127.0.0.1:{}", origin.addr.port());
        *state.storage.lock().unwrap() = at(&storage);
        *state.realm.lock().unwrap() = format!("{}/token", at(&auth));
        Self {
            state,
            registry,
            auth,
            storage,
        }
    }

    pub(super) fn layer(&self) -> String {
        digest(&self.state.layer.lock().unwrap())
    }

    /// Returns a mirror of this registry. Its settings list the servers `others`.
    pub(super) fn mirror(&self, name: &str, others: &[&Origin], login: Option<&str>) -> MirrorSite {
        let at = |origin: &&Origin| {
            format!("http://127.0.0.1:{}", origin.addr.port())
                .parse()
                .unwrap()
        };
        let mirror = Mirror::of_images(
            name.into(),
            at(&&self.registry),
            others.iter().map(at).collect(),
            preset("oci").unwrap().classes.clone(),
        );
        MirrorSite {
            named: vec![true; mirror.servers().len()],
            mirror,
            tls: foxy_tls::OriginTls::system(),
            login: login.map(Login::new),
            client_logins: false,
        }
    }

    pub(super) fn foxy(&self) -> Foxy {
        let site = self.mirror("docker.io", &[&self.auth, &self.storage], None);
        Foxy::start(Role::Forward, config(vec![site]), 1)
    }
}

pub(super) fn scope(asked: &Asked) -> String {
    let path = asked.path();
    let at = path.find("scope=repository:").map(|at| at + 17);
    let rest = at.map_or("", |at| &path[at..]);
    rest.trim_end_matches(":pull").to_owned()
}

pub(super) fn token(state: &State, asked: &mut Asked) -> bool {
    state.note(asked, "auth");
    let who = match asked.field("Authorization") {
        Some(ANN) => "ann",
        Some(_) => {
            asked.reply("401 Unauthorized", "", "");
            return true;
        }
        None => "anonymous",
    };
    let text = format!(
        "{{\"token\":\"{who}/{}\",\"expires_in\":300}}",
        scope(asked)
    );
    asked.reply("200 OK", "Content-Type: application/json\r\n", text);
    true
}

pub(super) fn storage(state: &State, asked: &mut Asked) -> bool {
    state.note(asked, "storage");
    if asked.field("Authorization").is_some() {
        state.leaked.store(true, Ordering::SeqCst);
    }
    let wrong = state.wrong.lock().unwrap().clone();
    let layer = wrong.unwrap_or_else(|| state.layer.lock().unwrap().clone());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", layer.len());
    asked.raw(head);
    if asked.head.starts_with("HEAD") {
        return true;
    }
    let half = layer.len() / 2;
    asked.raw(&layer[..half]);
    until(|| state.go.load(Ordering::SeqCst));
    asked.raw(&layer[half..]);
    true
}

pub(super) fn registry(state: &State, asked: &mut Asked) -> bool {
    state.note(asked, "registry");
    match state.fails.load(Ordering::SeqCst) {
        0 => {}
        status => {
            asked.reply(&format!("{status} Error"), "Retry-After: 60\r\n", "{}");
            return true;
        }
    }
    let path = asked.path().to_owned();
    let repository = path.trim_start_matches("/v2/");
    let cut = ["/manifests/", "/blobs/"];
    let cut = cut.iter().find_map(|part| repository.rfind(part));
    let repository = &repository[..cut.unwrap_or(0)];
    let given = asked.field("Authorization").unwrap_or_default();
    let given = given.trim_start_matches("Bearer ").to_owned();
    let (who, of) = given.split_once('/').unwrap_or_default();
    if of != repository || repository == "team/secret" && who != "ann" {
        let realm = state.realm.lock().unwrap();
        let fields = format!(
            "WWW-Authenticate: Bearer realm=\"{realm}\",service=\"r\",scope=\"repository:{repository}:pull\"\r\n"
        );
        asked.reply("401 Unauthorized", &fields, "{\"errors\":[]}");
        return true;
    }
    let head = asked.head.starts_with("HEAD");
    let layer = digest(&state.layer.lock().unwrap());
    let manifest = state.manifest.lock().unwrap().clone();
    if path.contains("/manifests/") && !repository.ends_with("empty") {
        let name = digest(&manifest);
        let body = if head { &[][..] } else { &manifest };
        let text = format!(
            "HTTP/1.1 200 OK\r\nDocker-Content-Digest: {name}\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\nContent-Length: {}\r\n\r\n",
            manifest.len()
        );
        asked.raw([text.as_bytes(), body].concat());
    } else if path.ends_with(&layer) && matches!(repository, "library/a" | "team/b" | "team/secret")
    {
        let storage = state.storage.lock().unwrap();
        let fields = format!("Location: {storage}/signed?sig=abc&who={who}\r\n");
        asked.reply(
            "307 Temporary Redirect",
            &fields,
            if head { "" } else { "moved" },
        );
    } else {
        asked.reply(
            "404 Not Found",
            "",
            if head { "" } else { "{\"errors\":[]}" },
        );
    }
    true
}
