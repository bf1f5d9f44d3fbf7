//! Tests of logins without a network: right and wrong logins, waiting checks, and remembered logins.

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use foxy_base::{Clock, ManualClock};

use super::*;

/// Returns a bcrypt hash of the password, made with the lowest possible cost.
fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).unwrap()
}

fn config() -> LoginsConfig {
    LoginsConfig {
        realm: "r".to_owned(),
        at: vec!["forward".to_owned()],
        passwords: [("alice".to_owned(), hash("secret"))].into_iter().collect(),
        groups: [("alice".to_owned(), vec!["staff".to_owned()])]
            .into_iter()
            .collect(),
        lifetime: Duration::from_secs(60),
        threads: 1,
        queue: 8,
        ..LoginsConfig::default()
    }
}

fn value(user: &str, password: &str) -> Vec<u8> {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).into_bytes()
}

async fn log_in(logins: &Logins, clock: &ManualClock, value: &[u8]) -> Option<String> {
    let rules = RuleSet::new(Vec::new());
    let user = match logins.check(&rules, value, (clock.mono(), clock.wall())) {
        Checked::Known(user) => Some(user),
        Checked::Wrong => None,
        Checked::Unchecked(login) => logins.verify(&rules, *login, None, clock).await.unwrap(),
    };
    user.map(|user| format!("{} {:?}", user.name(), user.groups()))
}

#[tokio::test]
async fn passwords_are_checked_once_and_remembered_for_a_while() {
    let clock = ManualClock::new(WallTime::from_secs(1));
    let logins = Logins::new(config());
    let (right, wrong) = (value("alice", "secret"), value("alice", "Secret"));
    let known = Some("alice [\"staff\"]".to_owned());
    assert_eq!(log_in(&logins, &clock, &right).await, known);
    let rules = RuleSet::new(Vec::new());
    let look = |value: &[u8]| logins.check(&rules, value, (clock.mono(), clock.wall()));
    assert!(matches!(look(&right), Checked::Known(_)));
    assert_eq!(log_in(&logins, &clock, &wrong).await, None);
    assert!(matches!(look(&wrong), Checked::Wrong));
    clock.advance(Duration::from_secs(61));
    assert!(matches!(look(&right), Checked::Unchecked(_)));
    assert!(matches!(look(&wrong), Checked::Unchecked(_)));
    assert_eq!(log_in(&logins, &clock, &value("bob", "secret")).await, None);
}

#[tokio::test]
async fn hashes_of_both_kinds_are_compared() {
    let cheap = Params::new(8, 1, 1, None).unwrap();
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap);
    let salt = SaltString::from_b64("c29tZXNhbHQ").unwrap();
    let carols = argon2.hash_password(b"secret", &salt).unwrap().to_string();
    let mut config = config();
    config.passwords.insert("carol".to_owned(), carols);
    let logins = Logins::new(config);
    let clock = ManualClock::new(WallTime::from_secs(1));
    for user in ["alice", "carol"] {
        let right = log_in(&logins, &clock, &value(user, "secret")).await;
        assert!(right.is_some_and(|found| found.starts_with(user)), "{user}");
        let wrong = log_in(&logins, &clock, &value(user, "Secret")).await;
        assert_eq!(wrong, None, "{user}");
    }
}

#[tokio::test]
async fn tokens_end() {
    let clock = ManualClock::new(WallTime::from_secs(1));
    let mut config = config();
    let token = LoginToken {
        user: "ci".to_owned(),
        groups: vec!["robots".to_owned()],
        expires: Some(WallTime::from_secs(11)),
    };
    config.tokens.insert(Sha256::digest(b"abc").into(), token);
    let logins = Logins::new(config);
    let known = Some("ci [\"robots\"]".to_owned());
    // The token is also a password of its user. It is not a password of another user.
    assert_eq!(log_in(&logins, &clock, &value("ci", "abc")).await, known);
    assert_eq!(log_in(&logins, &clock, &value("alice", "abc")).await, None);
    assert_eq!(log_in(&logins, &clock, b"bearer abc").await, known);
    assert_eq!(log_in(&logins, &clock, b"Bearer abd").await, None);
    clock.advance(Duration::from_secs(9));
    assert_eq!(log_in(&logins, &clock, b"Bearer abc").await, known);
    clock.advance(Duration::from_secs(1));
    assert_eq!(log_in(&logins, &clock, b"Bearer abc").await, None);
}

#[test]
fn what_is_no_login() {
    let logins = Logins::new(config());
    let rules = RuleSet::new(Vec::new());
    for value in [
        &b""[..],
        b"Basic",
        b"Basic ",
        b"Basic !!!",
        b"Digest username=\"alice\"",
        b"BasicYWxpY2U6c2VjcmV0",
        // Values whose decoded text has no colon, no user, or a control character.
        b"Basic YWxpY2U=",
        b"Basic OnNlY3JldA==",
        b"Basic YWxp\nY2U6c2VjcmV0",
    ] {
        let found = logins.check(&rules, value, (MonoTime(1), WallTime(1)));
        assert!(matches!(found, Checked::Wrong), "{value:?}");
    }
    let long = value(&"a".repeat(LONGEST + 1), "x");
    let found = logins.check(&rules, &long, (MonoTime(1), WallTime(1)));
    assert!(matches!(found, Checked::Wrong));
}

#[tokio::test]
async fn a_helper_answers_by_the_protocol_of_squid() {
    let clock = ManualClock::new(WallTime::from_secs(1));
    // The script accepts a user whose password equals the user name. It compares both in their escaped form.
    let script = "while read u p; do if [ \"$u\" = \"$p\" ]; then echo OK; else echo ERR; fi; done";
    let helper = Helper {
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
    };
    let logins = Logins::new(LoginsConfig {
        helper: Some(helper),
        ..config()
    });
    for (user, password, right) in [
        ("bob", "bob", true),
        ("bob", "bo", false),
        ("a b%", "a b%", true),
        // The helper gets each login as one line. A line feed in a password is escaped, so it does not begin
        // a second login.
        ("bob", "x\neve eve", false),
        // The helper is not asked about users who have a password in the configuration.
        ("alice", "alice", false),
    ] {
        let found = log_in(&logins, &clock, &value(user, password)).await;
        assert_eq!(found.is_some(), right, "{user} {password}");
    }
}

#[tokio::test]
async fn the_queue_is_shared_by_name_and_client() {
    // No check ends, because the threads wait for a helper that does not answer.
    let helper = Helper {
        command: ["/bin/sh", "-c", "sleep 12"].map(str::to_owned).to_vec(),
    };
    let config = Arc::new(LoginsConfig {
        helper: Some(helper),
        queue: 10,
        ..config()
    });
    let verifier = Verifier::new(&config);
    let mut waits = Vec::new();
    let mut ask = |key: u128, user: &str, client: u8| {
        let job = Job {
            key,
            user: user.to_owned(),
            password: Vec::new(),
            client: Some(IpAddr::from([10, 0, 0, client])),
        };
        let mut wait = Box::pin(verifier.verify(job));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let refused = wait.as_mut().poll(&mut context).is_ready();
        waits.push(wait);
        !refused
    };
    // The queue takes two entries for one client and one name. Requests with the same name and password share
    // an entry.
    assert!(ask(1, "bob", 1) && ask(2, "bob", 1) && ask(2, "bob", 1));
    assert!(!ask(3, "bob", 1));
    // Another client has its own entries, and another name has its own entries.
    assert!(ask(4, "bob", 2) && ask(5, "eve", 1));
    for client in 3..7 {
        assert!(ask(10 + u128::from(client), "bob", client), "{client}");
    }
    assert!(ask(20, "bob", 8), "the eighth entry of the name");
    assert!(!ask(21, "bob", 9));
}
