//! Mirrors whose clients send their own credentials for the registry. A client never gets an answer for the
//! credential of another client.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use foxy_base::WallTime;
use foxy_proxy::{Access, Config, Event, Login, MirrorSite, Role, Token};
use sha2::{Digest as _, Sha256};

use crate::common::{Answer, Asked, Foxy, NOON, Origin, until};
use crate::mirrors::{config, get, mirror};

const INDEX: &str = "/pypi/simple/a/";
const FILE: &str = "/pypi/packages/a-1.0.tar.gz";
const PURGES: &str = "0123456789abcdef";
const USERS: [&str; 2] = ["Bearer of-ann", "Basic Ym9iOnB3"];

/// A registry in which every user has a different package of the same name. Clients without a credential have
/// no package.
struct Registry {
    origin: Origin,
    /// Lines of the head of each request, without the first line.
    asked: Arc<Mutex<Vec<String>>>,
    /// Status with which the registry answers every request. 0 means that the registry does not fail.
    status: Arc<AtomicU16>,
}

fn package(user: &str) -> Vec<u8> {
    format!("the package of {user}").repeat(100).into_bytes()
}

fn answer(asked: &mut Asked, user: Option<String>) {
    let fields = "Content-Type: text/html\r\nCache-Control: public, max-age=9999\r\n";
    let Some(user) = user else {
        let fields = "WWW-Authenticate: Basic realm=\"registry\"\r\n";
        return asked.reply("401 Unauthorized", fields, "who are you?");
    };
    let digest: String = Sha256::digest(package(&user))
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    match asked.path() {
        "/simple/a/" => {
            let page = format!("<a href=\"/packages/a-1.0.tar.gz#sha256={digest}\">{user}</a>");
            asked.reply("200 OK", fields, page);
        }
        "/packages/a-1.0.tar.gz" => asked.reply("200 OK", "", package(&user)),
        "/other" => asked.reply("200 OK", fields, user),
        _ => asked.reply("404 Not Found", "", ""),
    }
}

impl Registry {
    /// Starts a registry that waits with its answers until `together` requests have arrived.
    fn start(together: usize) -> Self {
        let (seen, status) = (
            Arc::<Mutex<Vec<String>>>::default(),
            Arc::<AtomicU16>::default(),
        );
        let (noted, fails) = (Arc::clone(&seen), Arc::clone(&status));
        let barrier = Barrier::new(together);
        let origin = Origin::start(move |asked| {
            let (_, lines) = asked.head.split_once("\r\n").unwrap();
            noted.lock().unwrap().push(lines.to_owned());
            barrier.wait();
            match fails.load(Ordering::SeqCst) {
                0 => {
                    let own = asked
                        .field("Authorization")
                        .or(asked.field("X-Registry-Key"));
                    let user = own.map(str::to_owned);
                    answer(asked, user);
                }
                status => asked.reply(&format!("{status} No"), "", "no"),
            }
            true
        });
        Self {
            origin,
            asked: seen,
            status,
        }
    }

    fn mirror(&self) -> MirrorSite {
        MirrorSite {
            client_logins: true,
            ..mirror("pypi", &self.origin)
        }
    }

    fn foxy(&self) -> Foxy {
        let config = Config {
            access: Access {
                token: Token::new(PURGES),
                ..Access::default()
            },
            ..config(vec![self.mirror()])
        };
        Foxy::start(Role::Forward, config, 2)
    }

    /// Returns the number of requests that had a field of this name.
    fn with(&self, name: &str) -> usize {
        let name = format!("\n{}:", name.to_ascii_lowercase());
        let asked = self.asked.lock().unwrap();
        let has = |lines: &&String| format!("\n{lines}").to_ascii_lowercase().contains(&name);
        asked.iter().filter(has).count()
    }
}

fn of(foxy: &Foxy, path: &str, user: &str) -> Answer {
    get(foxy, path, &format!("Authorization: {user}\r\n"))
}

/// Checks that each user gets the package of this user, and that a client without a credential gets no
/// package.
fn all_have_their_own(foxy: &Foxy, word: &str) {
    for user in USERS {
        let page = of(foxy, INDEX, user);
        assert!(page.text().contains(user), "{user}: {}", page.text());
        assert!(page.cache().contains(word), "{user}: {}", page.cache());
        let file = of(foxy, FILE, user);
        assert!(file.body == package(user), "{user}: {}", file.text());
        assert!(file.cache().contains(word), "{user}: {}", file.cache());
        for answer in [page, file] {
            let control = answer.field("Cache-Control");
            assert_eq!(control, Some("private"), "no cache on the way shares it");
        }
    }
    for path in [INDEX, FILE, "/pypi/other"] {
        let stranger = get(foxy, path, "");
        assert_eq!(stranger.status, 401, "{path}: {}", stranger.text());
        assert!(stranger.field("WWW-Authenticate").is_some());
        let other = of(foxy, path, "Bearer of-eve").text();
        assert!(!USERS.iter().any(|user| other.contains(user)), "{other}");
    }
}

#[test]
fn what_one_credential_was_given_reaches_no_other() {
    let registry = Registry::start(1);
    let foxy = registry.foxy();
    all_have_their_own(&foxy, "fwd=uri-miss");
    until(|| of(&foxy, FILE, USERS[1]).cache().contains("hit"));
    all_have_their_own(&foxy, "hit");
    // No file has a wrong digest: Foxy compares each file with the index of the same user.
    foxy.counts(Event::MirrorMismatch, 0);
    let key = of(&foxy, "/pypi/other", USERS[0]);
    assert_eq!(key.text(), USERS[0]);
    // A purge by the mirror's URL covers the copies of all users.
    let purge = foxy.ask(&format!(
        "PURGE {FILE} HTTP/1.1\r\nHost: {}\r\nX-Foxy-Token: {PURGES}\r\n\r\n",
        foxy.addr
    ));
    assert_eq!(purge.status, 200, "{}", purge.text());
    for user in USERS {
        let file = of(&foxy, FILE, user);
        assert!(file.cache().contains("fwd=uri-miss"), "{}", file.cache());
    }
}

#[test]
fn users_at_the_same_time_wait_for_no_answer_of_each_other() {
    for path in [INDEX, FILE] {
        let registry = Registry::start(3);
        let foxy = registry.foxy();
        std::thread::scope(|scope| {
            let stranger = scope.spawn(|| get(&foxy, path, ""));
            let all = USERS.map(|user| (user, scope.spawn(|| of(&foxy, path, user))));
            for (user, answer) in all {
                let answer = answer.join().unwrap();
                assert_eq!(answer.status, 200);
                assert!(answer.text().contains(user), "{user}: {}", answer.text());
            }
            assert_eq!(stranger.join().unwrap().status, 401);
        });
        assert_eq!(registry.origin.asked(), 3);
    }
}

#[test]
fn a_credential_goes_to_the_upstream_alone_and_only_where_the_operator_says_so() {
    let registry = Registry::start(1);
    let foxy = registry.foxy();
    let port = registry.origin.addr.port();
    let elsewhere = format!("/pypi/~origin.test~{port}/packages/a-1.0.tar.gz");
    assert_eq!(of(&foxy, &elsewhere, USERS[0]).status, 401);
    assert_eq!(registry.with("Authorization"), 0);
    assert_eq!(of(&foxy, FILE, USERS[0]).status, 200);
    assert_eq!(registry.with("Authorization"), 1);
    drop(foxy);
    // The mirror's own credential is used for clients that send no credential.
    let site = MirrorSite {
        login: Some(Login::new("foxy:pw")),
        ..registry.mirror()
    };
    let foxy = Foxy::start(Role::Forward, config(vec![site]), 1);
    for (user, expected) in [(Some(USERS[0]), USERS[0]), (None, "Basic Zm94eTpwdw==")] {
        let answer = match user {
            Some(user) => of(&foxy, INDEX, user),
            None => get(&foxy, INDEX, ""),
        };
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
    drop(foxy);
    let foxy = Foxy::start(
        Role::Forward,
        config(vec![mirror("pypi", &registry.origin)]),
        1,
    );
    let before = registry.with("Authorization");
    assert_eq!(of(&foxy, FILE, USERS[0]).status, 401);
    assert_eq!(registry.with("Authorization"), before);
}

#[test]
fn several_credentials_in_one_request_are_nobodys() {
    let registry = Registry::start(1);
    let foxy = registry.foxy();
    assert_eq!(of(&foxy, FILE, USERS[0]).status, 200);
    until(|| of(&foxy, FILE, USERS[0]).cache().contains("hit"));
    let both = |one: &str, other: &str| {
        let fields = format!("Authorization: {one}\r\nAuthorization: {other}\r\n");
        get(&foxy, FILE, &fields)
    };
    for (one, other) in [(USERS[0], USERS[1]), (USERS[1], USERS[0]), ("", USERS[0])] {
        let answer = both(one, other);
        assert!(!answer.cache().contains("hit"), "{}", answer.cache());
    }
    let own = of(&foxy, FILE, USERS[1]);
    assert!(own.body == package(USERS[1]), "{}", own.text());
}

/// After the registry has refused a credential, clients with this credential get no stored answer, even if
/// the registry fails later.
#[test]
fn a_credential_is_asked_about_again_after_a_day() {
    let registry = Registry::start(1);
    let foxy = registry.foxy();
    assert_eq!(of(&foxy, FILE, USERS[0]).status, 200);
    let at = |hours: i64| {
        foxy.clock
            .set_wall(WallTime::from_secs(NOON + hours * 3600));
    };
    registry.status.store(503, Ordering::SeqCst);
    for hours in [23, 25] {
        at(hours);
        let file = of(&foxy, FILE, USERS[0]);
        assert!(file.body == package(USERS[0]), "{hours}: {}", file.text());
    }
    registry.status.store(401, Ordering::SeqCst);
    assert_eq!(of(&foxy, FILE, USERS[0]).status, 401);
    registry.status.store(503, Ordering::SeqCst);
    let file = of(&foxy, FILE, USERS[0]);
    assert!(file.status >= 500, "{} {}", file.status, file.text());
}

/// Apart from the credential, the registry receives no fields by which registries identify users or choose
/// answers.
#[test]
fn a_registry_gets_no_other_credential_of_a_client() {
    for client_logins in [false, true] {
        let registry = Registry::start(1);
        let site = MirrorSite {
            client_logins,
            ..registry.mirror()
        };
        let foxy = Foxy::start(Role::Forward, config(vec![site]), 1);
        let fields = "X-Registry-Key: of-ann\r\nPrivate-Token: t\r\nCookie: a=b\r\n\
                      X-Base-Url: http://evil.test/\r\nUser-Agent: pip/1\r\n";
        for path in [FILE, INDEX, "/pypi/other"] {
            for fields in [fields, ""] {
                let answer = get(&foxy, path, fields);
                assert_eq!(answer.status, 401, "{path}: {}", answer.text());
            }
        }
        for name in ["X-Registry-Key", "Private-Token", "Cookie", "X-Base-Url"] {
            assert_eq!(registry.with(name), 0, "{name}");
        }
        assert_eq!(registry.with("User-Agent"), 3);
    }
}
