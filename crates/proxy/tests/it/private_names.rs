//! A private registry and a public registry. The tests check two rules. The public registry is not asked for
//! names that only the private registry may have. The public registry does not get the credential of the
//! private registry.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_proxy::access_rules::{Action, Rule, RuleSet};
use foxy_proxy::mirror::{Listing, Mirror, OwnNames, Selector, preset};
use foxy_proxy::{Config, Gatekeeper, Login, LoginsConfig, MirrorSite, Role};

use crate::common::{Foxy, Origin, until};
use crate::mirrors::{config, get, mirror};

/// Paths and credentials of the requests to a registry.
type Asked = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A fake registry that has every package. Its answers contain its own name, so that a test knows which
/// registry has answered.
fn registry(name: &'static str, status: &Arc<AtomicU16>) -> (Origin, Asked) {
    let (seen, status) = (Asked::default(), Arc::clone(status));
    let asked = Arc::clone(&seen);
    let origin = Origin::start(move |request| {
        let login = request.field("Authorization").map(str::to_owned);
        let path = request.path().to_owned();
        let port = request.client.stream.local_addr().unwrap().port();
        asked.lock().unwrap().push((path.clone(), login));
        match status.load(Ordering::SeqCst) {
            0 if path.ends_with(".tgz") => request.reply("200 OK", "", name),
            0 => {
                let body = format!(
                    "{{\"of\":\"{name}\",\"dist\":{{\"tarball\":\"http://127.0.0.1:{port}{path}/-/x-1.0.0.tgz\"}}}}"
                );
                request.reply("200 OK", "Content-Type: application/json\r\n", body);
            }
            404 => request.reply("404 Not Found", "", "{}"),
            // The registry behaves as if it were down.
            _ => return false,
        }
        true
    });
    (origin, seen)
}

/// Returns a mirror of the private registry. `entries` are the names of packages that only this registry may
/// have. The mirror also lists a second server.
fn private(origin: &Origin, entries: &[&str]) -> MirrorSite {
    let preset = preset("npm").unwrap();
    let at = |host: &str| {
        format!("http://{host}:{}", origin.addr.port())
            .parse()
            .unwrap()
    };
    let read = |text: &&str| Selector::read(Listing::Npm, text).unwrap();
    let names = OwnNames::new(Listing::Npm, entries.iter().map(read).collect()).unwrap();
    let mirror = Mirror::new(
        "own".into(),
        "/own",
        at("127.0.0.1"),
        vec![at("origin.test")],
        preset.classes.clone(),
    );
    MirrorSite {
        named: vec![true; mirror.servers().len()],
        mirror: mirror.with_own(names),
        tls: foxy_tls::OriginTls::system(),
        login: Some(Login::new("ann:pw")),
        client_logins: false,
    }
}

struct Both {
    foxy: Foxy,
    public: Asked,
    private: Asked,
    port: u16,
    status: Arc<AtomicU16>,
    _origins: [Origin; 2],
}

fn both() -> Both {
    both_with(|config| config)
}

fn both_with(change: impl Fn(Config) -> Config) -> Both {
    let status = Arc::new(AtomicU16::new(0));
    let (open, public) = registry("public", &Arc::default());
    let (own, private_asked) = registry("private", &status);
    let sites = vec![mirror("npm", &open), private(&own, &["@acme/*", "acme-*"])];
    Both {
        foxy: Foxy::start(Role::Forward, change(config(sites)), 1),
        public,
        private: private_asked,
        port: own.addr.port(),
        status,
        _origins: [open, own],
    }
}

/// Paths that request a private package from the public mirror. Each of them has the path to which Foxy
/// redirects the request.
const WAYS: [(&str, &str); 8] = [
    ("/npm/@acme/x", "/own/@acme/x"),
    ("/npm/@acme%2fx", "/own/@acme%2Fx"),
    ("/npm/%40acme%2Fx?write=true", "/own/%40acme%2Fx?write=true"),
    ("/npm/@ACME/x", "/own/@ACME/x"),
    ("/npm/acme-x/latest", "/own/acme-x/latest"),
    (
        "/npm/acme-x/-/acme-x-1.0.0.tgz",
        "/own/acme-x/-/acme-x-1.0.0.tgz",
    ),
    ("/npm//@acme/x", "/own//@acme/x"),
    (
        "/npm/-/package/@acme%2fx/dist-tags",
        "/own/-/package/@acme%2Fx/dist-tags",
    ),
];

#[test]
fn private_names_are_asked_of_the_private_registry_alone() {
    let both = both();
    for (way, to) in WAYS {
        for method in ["GET", "HEAD"] {
            let mut client = both.foxy.connect();
            client.send(format!(
                "{method} {way} HTTP/1.1\r\nHost: {}\r\n\r\n",
                both.foxy.addr
            ));
            let answer = client.answer_to(method);
            let location = answer
                .field("Location")
                .unwrap_or_default()
                .to_ascii_lowercase();
            assert_eq!(
                (answer.status, location),
                (307, to.to_ascii_lowercase()),
                "{way}"
            );
        }
    }
    assert_eq!(
        *both.public.lock().unwrap(),
        [],
        "the public registry knows no private name"
    );
    assert!(
        get(&both.foxy, "/own/@acme/x", "")
            .text()
            .contains("private")
    );
    assert!(
        get(&both.foxy, "/npm/left-pad", "")
            .text()
            .contains("public")
    );
    // The private mirror also answers requests for other names.
    assert!(
        get(&both.foxy, "/own/left-pad", "")
            .text()
            .contains("private")
    );
    let counts = || -> Vec<(String, u64)> {
        let counted = both.foxy.proxy.mirror_requests();
        counted
            .map(|(name, totals)| (name.to_owned(), totals.iter().flatten().sum()))
            .collect()
    };
    let wanted = [
        ("npm".to_owned(), 2 * WAYS.len() as u64 + 1),
        ("own".to_owned(), 2),
    ];
    until(|| counts() == wanted);
}

#[test]
fn a_private_registry_that_is_down_or_lacks_a_package_is_not_replaced() {
    let both = both();
    for (status, expected) in [(404, 404), (1, 502)] {
        both.status.store(status, Ordering::SeqCst);
        let away = get(&both.foxy, "/npm/@acme/new", "");
        assert_eq!(away.status, 307);
        let answer = get(&both.foxy, away.field("Location").unwrap(), "");
        assert_eq!(answer.status, expected, "{}", answer.text());
    }
    assert_eq!(*both.public.lock().unwrap(), []);
}

#[test]
fn the_credential_goes_to_the_upstream_alone() {
    let both = both();
    let user = "Authorization: Bearer of-the-client\r\n";
    assert_eq!(get(&both.foxy, "/own/@acme/x", user).status, 200);
    let file = "/own/@acme/x/-/x-1.0.0.tgz";
    assert_eq!(get(&both.foxy, file, user).status, 200);
    // Only requests to the private registry itself contain the credential. Requests to another server of the
    // private mirror and requests to the public registry do not.
    let elsewhere = format!("/own/~origin.test~{}/@acme/x/-/x-2.0.0.tgz", both.port);
    assert_eq!(get(&both.foxy, &elsewhere, user).status, 200);
    assert_eq!(get(&both.foxy, "/npm/left-pad", user).status, 200);
    let basic = Some("Basic YW5uOnB3".to_owned());
    let logins = |asked: &Asked| -> Vec<Option<String>> {
        asked
            .lock()
            .unwrap()
            .iter()
            .map(|(_, login)| login.clone())
            .collect()
    };
    assert_eq!(logins(&both.private), [basic.clone(), basic, None]);
    assert_eq!(logins(&both.public), [None]);
}

#[test]
fn tokens_have_the_characters_of_tokens() {
    assert!(Login::token("npm_Ab0-._~+/=").is_some());
    for wrong in ["", "a b", "a\r\nHost: evil", "a{b}", "\u{e9}"] {
        assert!(Login::token(wrong).is_none(), "{wrong}");
    }
}

/// Returns a function that changes the settings. Only Alice may use the private mirror. Users log in at `at`,
/// which is `forward` or the name of a mirror.
fn guarded(at: &str, required: bool) -> impl Fn(Config) -> Config {
    let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
    let passwords = ["alice", "bob"].map(|user| (user.to_owned(), hash(user)));
    let logins = LoginsConfig {
        realm: "Foxy".to_owned(),
        at: vec![at.to_owned()],
        passwords: passwords.into_iter().collect(),
        lifetime: Duration::from_secs(300),
        threads: 1,
        queue: 64,
        required,
        ..LoginsConfig::default()
    };
    let own = || Rule {
        sites: vec!["own".to_owned()],
        ..Rule::default()
    };
    let rules = vec![
        Rule {
            users: vec!["alice".to_owned()],
            ..own()
        },
        Rule {
            name: "own-only".to_owned(),
            action: Action::Deny,
            ..own()
        },
    ];
    let gate = Gatekeeper::new(RuleSet::new(rules), jiff::tz::TimeZone::UTC);
    let gate = Arc::new(gate.with_logins(Some(logins)));
    move |config| Config {
        gatekeeper: Some(Arc::clone(&gate)),
        ..config
    }
}

fn login(user: &str) -> String {
    let coded = STANDARD.encode(format!("{user}:{user}"));
    format!("Authorization: Basic {coded}\r\n")
}

#[test]
fn rules_and_logins_hold_at_mirrors_by_their_names() {
    for at in ["forward", "own"] {
        let both = both_with(guarded(at, false));
        // In the second round, the answers are already stored. The rules also apply to stored answers.
        for path in ["/own/@acme/x", "/own/@acme/x/-/x-1.0.0.tgz"] {
            for _ in 0..2 {
                let status = |login: &str| get(&both.foxy, path, login).status;
                assert_eq!(
                    (status(""), status(&login("bob"))),
                    (401, 403),
                    "{at} {path}"
                );
                assert_eq!(status(&login("alice")), 200, "{at} {path}");
            }
        }
        assert_eq!(get(&both.foxy, "/npm/left-pad", "").status, 200);
        let seen = both.private.lock().unwrap();
        let own =
            |(_, login): &(String, Option<String>)| login.as_deref() == Some("Basic YW5uOnB3");
        assert!(seen.len() == 2 && seen.iter().all(own), "{seen:?}");
    }
}

#[test]
fn where_logins_are_required_mirrors_require_them() {
    let both = both_with(guarded("forward", true));
    assert_eq!(get(&both.foxy, "/npm/left-pad", "").status, 401);
    assert_eq!(get(&both.foxy, "/npm/left-pad", &login("bob")).status, 200);
    assert_eq!(get(&both.foxy, "/npm/left-pad", "").status, 401);
}
