//! Logins of users: passwords, tokens, and logins that were checked before.
//!
//! Passwords are checked on separate threads, because a check takes milliseconds by design. A right login is
//! remembered for a limited time, and at most until a reload. A wrong login is remembered for a few seconds.
//! Foxy does not keep the value that the client sent, but a keyed hash of this value.

mod challenge;
mod helper;
mod memory;
mod verifier;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_access::{Principal, RuleSet};
use foxy_base::{MonoTime, WallTime, rule};
use foxy_http_rules::rules::FORWARD;
use hashbrown::HashMap;
use sha2::{Digest as _, Sha256};

pub(crate) use challenge::challenge;
use memory::Memory;
use verifier::{Job, Verifier};

/// Time for which a wrong login is remembered.
const WRONG: Duration = Duration::from_secs(5);
/// Longest user name and longest password, in bytes.
const LONGEST: usize = 256;

/// Users, and the credentials with which they log in.
#[derive(Clone, Default)]
pub struct LoginsConfig {
    /// The name of the realm (RFC 9110 section 11.5). Clients can show it to the user.
    pub realm: String,
    /// The partitions where users log in: `forward` and names of sites.
    pub at: Vec<String>,
    /// True if all requests to these partitions need a login, even if no rule demands a login.
    pub required: bool,
    /// Hashes of passwords by user, as bcrypt or as argon2 in PHC form.
    pub passwords: HashMap<String, String>,
    /// Tokens by their SHA-256.
    pub tokens: HashMap<[u8; 32], LoginToken>,
    /// Groups by user.
    pub groups: HashMap<String, Vec<String>>,
    /// A program that checks users who are not in `passwords`.
    pub helper: Option<Helper>,
    /// Time for which a right login is remembered.
    pub lifetime: Duration,
    /// Number of threads that check passwords.
    pub threads: usize,
    /// Largest number of checks that wait.
    pub queue: usize,
    /// Seed of the keyed hash.
    pub seed: u64,
}

/// A bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginToken {
    /// The user of the token.
    pub user: String,
    /// Groups of the token, in addition to the groups of the user.
    pub groups: Vec<String>,
    /// Time at which the token expires.
    pub expires: Option<WallTime>,
}

/// A program that reads lines with user and password, and answers `OK` or `ERR` (a Squid helper for Basic).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Helper {
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// The output contains neither passwords nor tokens. It changes if the settings change.
impl fmt::Debug for LoginsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut users: Vec<_> = self.passwords.iter().collect();
        let mut tokens: Vec<_> = self.tokens.iter().collect();
        let mut groups: Vec<_> = self.groups.iter().collect();
        users.sort();
        tokens.sort_by_key(|(hash, _)| **hash);
        groups.sort();
        let print = |text: String| foxy_base::hash64(self.seed, text.as_bytes());
        f.debug_struct("LoginsConfig")
            .field("realm", &self.realm)
            .field("at", &self.at)
            .field("required", &self.required)
            .field("users", &print(format!("{users:?}{tokens:?}")))
            .field("groups", &groups)
            .field("helper", &self.helper)
            .field("lifetime", &self.lifetime)
            .field("threads", &self.threads)
            .field("queue", &self.queue)
            .finish()
    }
}

/// The users that can log in, and the results of recent logins. Each start or reload makes a new value.
#[derive(Debug)]
pub struct Logins {
    config: Arc<LoginsConfig>,
    memory: Memory,
    verifier: Verifier,
    /// The users who have proved their names by a password or a certificate. The key is the name. Each entry
    /// contains the user's groups, and the access rules whose conditions on users and groups fit the user.
    principals: Principals,
}

type Principals = parking_lot::Mutex<HashMap<Box<str>, Arc<Principal>>>;

/// The result of the quick check of a request's credentials. The quick check compares no password with its
/// hash.
#[derive(Debug)]
pub(crate) enum Checked {
    /// The login is right, and belongs to this user.
    Known(Arc<Principal>),
    /// The login is wrong.
    Wrong,
    /// The password must be checked, because it is not known whether the login is right.
    Unchecked(Box<Login>),
}

/// A user and a password that must be checked.
#[derive(Debug)]
pub(crate) struct Login {
    key: u128,
    user: String,
    password: Vec<u8>,
}

/// Error: the queue of checks is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Logins {
    pub(crate) fn new(config: LoginsConfig) -> Self {
        let config = Arc::new(config);
        Self {
            memory: Memory::new(config.seed),
            verifier: Verifier::new(&config),
            principals: parking_lot::Mutex::default(),
            config,
        }
    }

    pub(crate) fn realm(&self) -> &str {
        &self.config.realm
    }

    pub(crate) fn config(&self) -> &LoginsConfig {
        &self.config
    }

    /// Returns true if there are tokens.
    pub(crate) fn have_tokens(&self) -> bool {
        !self.config.tokens.is_empty()
    }

    /// Returns true if users log in at this listener, site or mirror. Mirrors are on the listeners of the
    /// forward proxy, so `forward` includes them.
    pub(crate) fn are_at(&self, name: &str, is_mirror: bool) -> bool {
        let is = |at: &String| at == name || at == FORWARD && is_mirror;
        self.config.at.iter().any(is)
    }

    pub(crate) fn are_required(&self) -> bool {
        self.config.required
    }

    /// Checks the value of `Proxy-Authorization` or `Authorization` quickly: by the tokens and by the results
    /// of recent logins, without comparing a password with its hash.
    pub(crate) fn check(
        &self,
        rules: &RuleSet,
        value: &[u8],
        (now, wall): (MonoTime, WallTime),
    ) -> Checked {
        let key = self.memory.key(value);
        match self.memory.get(key, now) {
            Some(Some(user)) => return Checked::Known(user),
            Some(None) => return Checked::Wrong,
            None => {}
        }
        if let Some(token) = scheme(value, b"bearer") {
            return match self.live_token(token, wall) {
                Some(found) => self.token(rules, found, (key, now, wall)),
                None => Checked::Wrong,
            };
        }
        match scheme(value, b"basic").and_then(basic) {
            // Some programs support only Basic. So a token also counts as a password of its user.
            Some((user, password))
                if let Some(found) = self.live_token(&password, wall)
                    && rule!(
                        "login: a token is the password of its own user",
                        found.0.user == user,
                        true
                    ) =>
            {
                self.token(rules, found, (key, now, wall))
            }
            Some((user, password)) => Checked::Unchecked(Box::new(Login {
                key,
                user,
                password,
            })),
            None => Checked::Wrong,
        }
    }

    fn live_token(&self, text: &[u8], wall: WallTime) -> Option<(&LoginToken, u64)> {
        if self.config.tokens.is_empty() {
            return None;
        }
        let hash: [u8; 32] = Sha256::digest(text).into();
        let live = |token: &&LoginToken| {
            rule!(
                "login: a token that has ended is nobody's",
                token.expires.is_none_or(|expires| wall < expires),
                true
            )
        };
        let token = self.config.tokens.get(&hash).filter(live)?;
        let (first, _) = hash.split_first_chunk()?;
        Some((token, u64::from_le_bytes(*first) | 1))
    }

    fn token(
        &self,
        rules: &RuleSet,
        (token, number): (&LoginToken, u64),
        (key, now, wall): (u128, MonoTime, WallTime),
    ) -> Checked {
        let mut groups = self.groups(&token.user);
        groups.extend(token.groups.iter().map(|group| &group[..]));
        let user = Arc::new(rules.principal(&token.user, &groups).with_token(number));
        // The login is remembered only until its token expires.
        let left = token
            .expires
            .map(|expires| expires.0.saturating_sub(wall.0));
        let left = left.map_or(self.config.lifetime, |left| {
            let left = Duration::from_millis(left.max(0) as u64);
            rule!(
                "login: a token is not remembered beyond its end",
                left.min(self.config.lifetime),
                self.config.lifetime
            )
        });
        self.memory
            .put(key, Some(Arc::clone(&user)), later(now, left));
        Checked::Known(user)
    }

    fn groups(&self, user: &str) -> Vec<&str> {
        let groups = self.config.groups.get(user);
        let groups = groups.into_iter().flatten();
        groups.map(|group| &group[..]).collect()
    }

    /// Returns the user with this name. The caller has verified the name by a password or a certificate.
    pub(crate) fn principal(&self, rules: &RuleSet, name: &str) -> Arc<Principal> {
        let mut all = self.principals.lock();
        if let Some(user) = all.get(name) {
            return Arc::clone(user);
        }
        // The names come only from verified logins and certificates. So the limit is seldom reached. If it is
        // reached, all entries are dropped.
        if all.len() >= memory::MOST {
            all.clear();
        }
        let user = Arc::new(rules.principal(name, &self.groups(name)));
        all.insert(name.into(), Arc::clone(&user));
        user
    }

    /// Waits for the check of user and password. Returns `None` if user or password is wrong. Cancel safe.
    ///
    /// # Errors
    /// An error if too many checks are waiting.
    pub(crate) async fn verify(
        &self,
        rules: &RuleSet,
        login: Login,
        client: Option<IpAddr>,
        clock: &dyn foxy_base::Clock,
    ) -> Result<Option<Arc<Principal>>, Busy> {
        let user = login.user.clone();
        let key = login.key;
        let job = Job {
            key,
            user: login.user,
            password: login.password,
            client: client.map(crate::access::client_connections::client),
        };
        let right = self.verifier.verify(job).await?;
        let now = clock.mono();
        if right {
            let user = self.principal(rules, &user);
            let until = later(now, self.config.lifetime);
            self.memory.put(key, Some(Arc::clone(&user)), until);
            return Ok(Some(user));
        }
        self.memory.put(key, None, later(now, WRONG));
        Ok(None)
    }
}

fn later(now: MonoTime, by: Duration) -> MonoTime {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    MonoTime(now.nanos().saturating_add(by))
}

/// Returns the rest of an authorization field after its scheme, if the scheme is `name`.
fn scheme<'v>(value: &'v [u8], name: &[u8]) -> Option<&'v [u8]> {
    let (scheme, rest) = value.split_at_checked(name.len())?;
    let [b' ', rest @ ..] = rest else { return None };
    scheme.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

/// Returns user and password (RFC 7617). A user name with control characters is never valid.
fn basic(text: &[u8]) -> Option<(String, Vec<u8>)> {
    let text = STANDARD.decode(text).ok()?;
    let colon = text.iter().position(|b| *b == b':')?;
    let (user, password) = (&text[..colon], &text[colon + 1..]);
    let user = std::str::from_utf8(user).ok()?;
    let right = !user.is_empty() && !user.chars().any(char::is_control);
    let short = user.len() <= LONGEST && password.len() <= LONGEST;
    (right && short && !password.contains(&0)).then(|| (user.to_owned(), password.to_vec()))
}

#[cfg(test)]
mod tests;
