//! The `[login]` section: users, and the files that contain them.

use std::path::Path;

use foxy_base::WallTime;
use foxy_proxy::{Helper, LoginToken, LoginsConfig};

use super::kind::Value;
use super::pattern;
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;

/// Longest file of users or tokens, in bytes.
const FILE_MAX: u64 = 64 << 20;

/// Returns the users and the methods by which they log in; `None` without the section.
pub(super) fn read(
    section: Option<&Section>,
    names: &[String],
    problems: &mut Vec<Problem>,
) -> Option<LoginsConfig> {
    let section = section?;
    let mut values = Values::read("login", Some(section), problems);
    let mut logins = LoginsConfig {
        realm: values.text("realm"),
        at: values.texts("at"),
        required: values.flag("required"),
        helper: match values.given("helper") {
            Some(Value::Texts(command)) => Some(Helper {
                command: command.clone(),
            }),
            _ => None,
        },
        lifetime: values.duration("remember"),
        threads: values.usize_of("threads"),
        queue: values.usize_of("queue"),
        ..LoginsConfig::default()
    };
    if logins.realm.contains(['"', '\\']) || !logins.realm.chars().all(|c| matches!(c, ' '..='~')) {
        let text = "login.realm has a quote, a backslash or a letter that is not ASCII";
        values.problem(Problem::conflict("login.realm", text.to_owned()));
    }
    // The default of `login.at` is `forward`. It is accepted even if there is no forward proxy.
    let known = |at: &&String| *at == "forward" || names.contains(at);
    if let Some(unknown) = logins.at.iter().find(|at| !known(at)) {
        let text = format!("login.at = \"{unknown}\": there is no such site");
        values.problem(Problem::conflict("login.at", text));
    }
    if let Some(Value::Texts(groups)) = values.given("groups") {
        for (group, users) in groups.iter().filter_map(|text| pattern::group(text).ok()) {
            for user in users {
                let own = logins.groups.entry(user.to_owned()).or_default();
                own.push(group.to_owned());
            }
        }
    }
    let file = |name: &str| match values.given(name) {
        Some(Value::Text(path)) => Some(path.clone()),
        _ => None,
    };
    let (passwords, tokens) = (file("password_file"), file("token_file"));
    if passwords.is_none() && tokens.is_none() && logins.helper.is_none() {
        let text = "[login] has neither password_file nor token_file nor helper; give one";
        values.problem(Problem::conflict("login", text.to_owned()));
    }
    for (key, path) in [("password_file", passwords), ("token_file", tokens)] {
        let Some(path) = path else { continue };
        let mut line = |text: &str| match key {
            "password_file" => password(text).map(|(user, hash)| {
                logins.passwords.insert(user, hash);
            }),
            _ => token(text).map(|(hash, token)| {
                logins.tokens.insert(hash, token);
            }),
        };
        if let Err(text) = lines(Path::new(&path), &mut line) {
            values.problem(Problem::conflict(&format!("login.{key}"), text));
        }
    }
    logins.seed = seed();
    Some(logins)
}

/// Returns a random seed for the keyed hash of logins.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// Reads a file line by line. Empty lines and lines that begin with `#` are skipped. Messages do not repeat
/// the contents of the file.
fn lines(path: &Path, take: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let length = std::fs::metadata(path).map_err(wrong)?.len();
    if length > FILE_MAX {
        return Err(format!("{} is longer than 64MiB", path.display()));
    }
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        take(line).map_err(|text| format!("{}:{}: {text}", path.display(), i + 1))?;
    }
    Ok(())
}

fn password(line: &str) -> Result<(String, String), String> {
    let (user, hash) = line.split_once(':').ok_or("it is not USER:HASH")?;
    let bcrypt = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .any(|kind| hash.starts_with(kind));
    let argon = hash.starts_with("$argon2");
    if user.is_empty() || user.chars().any(char::is_control) {
        return Err("it has no user".to_owned());
    }
    if !(bcrypt && hash.len() == 60 || argon) {
        return Err("the hash is neither bcrypt (htpasswd -B) nor argon2".to_owned());
    }
    Ok((user.to_owned(), hash.to_owned()))
}

fn token(line: &str) -> Result<([u8; 32], LoginToken), String> {
    let mut words = line.split_ascii_whitespace();
    let hex = words.next().unwrap_or_default();
    let bytes: Option<Vec<u8>> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect();
    let hash: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let hash = hash.ok_or("it does not begin with a SHA-256 in hexadecimal")?;
    let mut token = LoginToken::default();
    for word in words {
        match word.split_once('=') {
            Some(("user", user)) => token.user = user.to_owned(),
            Some(("groups", groups)) => {
                token.groups = groups.split(',').map(str::to_owned).collect();
            }
            Some(("expires", time)) => {
                let time: jiff::Timestamp = time.parse().map_err(|_| "`expires` is no time")?;
                token.expires = Some(WallTime(time.as_millisecond()));
            }
            _ => return Err("it has something else than user=, groups= and expires=".to_owned()),
        }
    }
    if token.user.is_empty() {
        return Err("it has no user=NAME".to_owned());
    }
    Ok((hash, token))
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;
    use super::*;

    #[test]
    fn lines_of_files() {
        let hash = "$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234";
        assert_eq!(password(&format!("a:{hash}")).is_ok(), hash.len() == 60);
        assert!(password("a:$apr1$x$y").is_err() && password("a").is_err());
        let sha = "ab".repeat(32);
        let (found, own) = token(&format!(
            "{sha} user=ci groups=a,b expires=1970-01-01T00:00:01Z"
        ))
        .unwrap();
        assert_eq!(found, [0xab; 32]);
        assert_eq!((&own.user[..], own.groups.len()), ("ci", 2));
        assert_eq!(own.expires, Some(WallTime::from_secs(1)));
        for wrong in [
            "",
            "abc user=x",
            &sha,
            &format!("{sha} user=x expires=soon"),
        ] {
            assert!(token(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn users_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        let text = |lines: &str| {
            std::fs::write(&file, lines).unwrap();
            format!(
                "[login]\npassword_file = {file:?}\ngroups = [\"staff: a b\"]\n[[access_rule]]\ngroup = \"staff\"\n"
            )
        };
        let found = build(&text(
            "# users\na:$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA\n",
        ));
        assert!(found.unwrap().proxy.gatekeeper.is_some());
        let wrong = build(&text("a:secret\n")).expect_err("no hash");
        assert!(
            wrong[0].contains("users:1") && !wrong[0].contains("secret"),
            "{wrong:?}"
        );
        assert!(build("[login]\n").is_err());
    }
}
