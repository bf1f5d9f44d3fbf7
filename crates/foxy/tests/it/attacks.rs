//! Attacks on the admin listener. No attack may get data or change anything.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod table;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use table::{LOCKED, OPEN};

const OPERATE: &str = "Operate-0123456789abcdefABCDEF";
const PURGE: &str = "purge-0123456789abcdefABCDEF";
const READ: &str = "read-0123456789abcdefABCDEF";

/// A Foxy with one stored object, and with a changed configuration file that it has not read yet.
struct Foxy {
    child: Child,
    folder: tempfile::TempDir,
    admin: String,
    site: String,
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Foxy {
    /// Starts a Foxy. `rights` are the rights of requests from loopback without a token.
    fn start(rights: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users may enter the folder, so that only the socket's permissions refuse them.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, open).unwrap();
        let at = folder.path().display();
        for (name, token) in [("operate", OPERATE), ("purge", PURGE), ("read", READ)] {
            std::fs::write(folder.path().join(name), token).unwrap();
        }
        let (origin, _) = crate::common::origin("Cache-Control: max-age=600\r\n", "body");
        let text = format!(
            "admin = \"127.0.0.1:0\"\nworkers = 1\nmemory = \"48MiB\"\n\
             [[site]]\nname = \"s\"\nlisten = \"127.0.0.1:0\"\norigin = \"{origin}\"\n\
             [access]\nadmin_token_file = \"{at}/operate\"\nadmin_purge_token_file = \"{at}/purge\"\n\
             admin_read_token_file = \"{at}/read\"\nadmin_loopback_rights = \"{rights}\"\n\
             admin_socket = \"{at}/admin.sock\"\n"
        );
        let file = folder.path().join("foxy.toml");
        std::fs::write(&file, &text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
        command.env_clear().env("STATE_DIRECTORY", folder.path());
        command.arg("--config").arg(&file).args(["--store", "off"]);
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let headline = said.find_map(|l| Some(l.unwrap()).filter(|l| l.starts_with("foxy ")));
        let headline = headline.unwrap();
        let after = |word: &str| {
            let rest = headline.split(word).nth(1).unwrap();
            rest.split([' ', '/', ',']).next().unwrap().to_owned()
        };
        let foxy = Self {
            admin: after("status on http://"),
            site: after("site s on "),
            child,
            folder,
        };
        // If an attack purges the stored page or reloads the changed file, `is_untouched` fails later.
        assert!(foxy.page().contains("miss"), "it is fetched once");
        std::fs::write(&file, format!("{text}[timeouts]\nidle = \"9s\"\n")).unwrap();
        foxy
    }

    /// Returns the field `Cache-Status`, which shows whether the page was stored.
    fn page(&self) -> String {
        let answer = exchange(
            TcpStream::connect(&self.site).unwrap(),
            "GET /page HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n",
        );
        let field = answer.lines().find(|l| l.starts_with("Cache-Status"));
        field.unwrap().to_owned()
    }

    fn ask(&self, text: &str) -> String {
        let text = text
            .replace("{admin}", &self.admin)
            .replace("{operate}", OPERATE)
            .replace("{purge}", PURGE)
            .replace("{read}", READ)
            .replace("\\n", "\r\n");
        exchange(TcpStream::connect(&self.admin).unwrap(), &text)
    }

    /// Runs one attack. Returns `None` if it was refused. Returns the name of the attack and the answer if
    /// the attack succeeded, if the answer contains a token, or if it has CORS fields that give access to
    /// pages of other origins.
    fn withstands(&self, (name, request): (&str, &str)) -> Option<String> {
        let answer = self.ask(request);
        let status = answer.get(9..12).unwrap_or("none");
        // A connection that is cut off is a refusal too.
        let refused = status.starts_with('4') || status == "501" || answer.is_empty();
        let silent = [OPERATE, PURGE, READ].iter().all(|t| !answer.contains(t));
        let open = answer.to_lowercase().contains("access-control-allow");
        (!refused || !silent || open).then(|| format!("{name}: {answer}"))
    }

    /// Fails if an attack has purged or reloaded anything.
    fn is_untouched(&self) {
        assert!(self.page().contains("; hit"), "{}", self.page());
        let ask = format!(
            "POST /reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OPERATE}\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = self.ask(&ask);
        assert!(answer.contains("reloaded: timeouts"), "{answer}");
    }
}

/// Sends a request, and returns the complete answer.
fn exchange<S: Read + Write>(mut stream: S, text: &str) -> String {
    // The listener may refuse the request before all of it is sent.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn no_foreign_page_and_no_wrong_token_gets_through() {
    let mut count = 0;
    for (rights, table) in [("operate", &OPEN[..]), ("none", &LOCKED[..])] {
        let foxy = Foxy::start(rights);
        let through: Vec<_> = table
            .iter()
            .filter_map(|attack| foxy.withstands(*attack))
            .collect();
        assert_eq!(through, [""; 0]);
        foxy.is_untouched();
        count += table.len();
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn one_answer_for_a_connection_whatever_follows() {
    let foxy = Foxy::start("operate");
    let answer = foxy.ask(
        "GET /healthz HTTP/1.1\\nHost: localhost\\n\\nPOST /purge?all=1 HTTP/1.1\\nHost: localhost\\n\
         X-Foxy-Admin: 1\\nContent-Length: 0\\n\\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    foxy.is_untouched();
}

#[test]
fn each_token_permits_what_it_is_for() {
    let foxy = Foxy::start("none");
    let purge = "POST /purge?url=http://s/none HTTP/1.1";
    for (token, request, status) in [
        (READ, "GET /stats HTTP/1.1", "200"),
        (READ, "GET /why?url=http://s/page HTTP/1.1", "200"),
        (READ, purge, "403"),
        (PURGE, "GET /stats HTTP/1.1", "200"),
        (PURGE, purge, "200"),
        (PURGE, "POST /reload HTTP/1.1", "403"),
        (OPERATE, purge, "200"),
        (OPERATE, "POST /reload HTTP/1.1", "200"),
    ] {
        let fields = format!("Host: any\r\nAuthorization: Bearer {token}\r\nContent-Length: 0");
        let answer = foxy.ask(&format!("{request}\r\n{fields}\r\n\r\n"));
        assert_eq!(&answer[9..12], status, "{token} {request}: {answer}");
    }
    let health = foxy.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
}

#[test]
fn tokens_and_rights_are_reloaded() {
    let foxy = Foxy::start("none");
    let stats = |token: &str| {
        let fields = format!("Host: localhost\r\nAuthorization: Bearer {token}");
        foxy.ask(&format!("GET /stats HTTP/1.1\r\n{fields}\r\n\r\n"))[9..12].to_owned()
    };
    assert_eq!(stats(READ), "200");
    let other = "another-0123456789abcdef";
    std::fs::write(foxy.folder.path().join("read"), other).unwrap();
    let reload = format!(
        "POST /reload HTTP/1.1\r\nHost: any\r\nX-Foxy-Token: {OPERATE}\r\nContent-Length: 0\r\n\r\n"
    );
    let answer = foxy.ask(&reload);
    assert!(answer.contains("timeouts, admin tokens"), "{answer}");
    assert_eq!((&stats(READ)[..], &stats(other)[..]), ("401", "200"));
    std::fs::write(foxy.folder.path().join("read"), "short").unwrap();
    let answer = foxy.ask(&reload);
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    assert_eq!(stats(other), "200", "the old one stays");
}

#[test]
fn the_socket_is_for_the_user_of_foxy_alone() {
    let foxy = Foxy::start("none");
    let path = foxy.folder.path().join("admin.sock");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let answer = exchange(
        UnixStream::connect(&path).unwrap(),
        "GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // `foxy stats` uses the socket, and needs no token.
    let program = Path::new(env!("CARGO_BIN_EXE_foxy"));
    let mut own = Command::new(program);
    let admin = format!("unix:{}", path.display());
    let said = own
        .args(["stats", "--json", "--admin", &admin])
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    // Only root can run a command as another user.
    if rustix::process::geteuid().is_root() {
        let mut other = Command::new("curl");
        other.args(["-s", "-m", "20", "--unix-socket"]).arg(&path);
        other.arg("http://localhost/stats").uid(65534).gid(65534);
        let said = other.output().unwrap();
        assert_eq!(said.status.code(), Some(7), "no connection: {said:?}");
        assert!(said.stdout.is_empty(), "{said:?}");
    }
    let id = rustix::process::Pid::from_child(&foxy.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    for _ in 0..1000 {
        if !path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the socket is left behind");
}
