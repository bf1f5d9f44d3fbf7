//! Foxy behind Squid: shared copies, ages, tunnels and logins, with curl as the client.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::process::{Foxy, run, tool};
use super::web::{Response, Web, serve};

/// The only login that Squid accepts.
const LOGIN: &str = "child:secret";
/// A helper of Squid that checks this login.
const HELPER: &str = "#!/bin/sh\n\
    while read -r user password; do\n\
    if [ \"$user:$password\" = child:secret ]; then echo OK; else echo ERR; fi\n\
    done\n";

/// A Squid that requires a login. It is killed when this value is dropped.
struct Squid {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Squid {
    fn start() -> Self {
        // Another program may take the port before Squid has it.
        let started = (0..5).find_map(|_| Self::try_start());
        started.expect("squid listens, with one of five ports")
    }

    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // This listener only finds a free port. It is closed immediately, because Squid needs the port.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let address = address.unwrap();
        let (helper, config) = (folder.path().join("helper"), folder.path().join("conf"));
        fs::write(&helper, HELPER).unwrap();
        let text = format!(
            "http_port {address}\nvisible_hostname squid.test\npid_filename none\n\
             cache_log /dev/null\naccess_log none\nnetdb_filename none\ncache_mem 8 MB\n\
             auth_param basic program {}\nauth_param basic children 1 startup=1\n\
             acl known proxy_auth REQUIRED\nhttp_access allow known\nhttp_access deny all\n",
            helper.display()
        );
        fs::write(&config, text).unwrap();
        // Squid gives up root's rights before it starts its helper, so other users must be able to run the
        // helper.
        for place in [folder.path(), &helper] {
            fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
        }
        let mut squid = Command::new("squid");
        squid.args(["-N", "-n", &format!("t{}", address.port()), "-f"]);
        squid.arg(&config).stdout(Stdio::null());
        let mut squid = Self {
            child: squid.stderr(Stdio::null()).spawn().expect("squid starts"),
            address,
            _folder: folder,
        };
        for _ in 0..1000 {
            if is_squid(address) {
                return Some(squid);
            }
            if squid.child.try_wait().expect("a child").is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("squid does not listen on {address} after 20 s");
    }
}

/// True if Squid answers at this address. Another program may have taken the port.
fn is_squid(address: SocketAddr) -> bool {
    let answer = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET http://squid.test/ HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&answer).contains("squid.test"))
    };
    answer().unwrap_or(false)
}

impl Drop for Squid {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an origin. It answers a POST with the POST's own body, and other requests with a page that has a
/// long lifetime. The page has a `Date`, because Squid stores no answer without a `Date`.
fn origin() -> Web {
    let origin = serve(|request| match &request.method[..] {
        "POST" => Response::new(200, "text/plain", request.body.clone()),
        _ => Response::cacheable("text/plain", request.path.clone()).with("Date", &now()),
    });
    origin.unwrap()
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Starts a Foxy with this Squid as its parent.
fn behind(squid: &Squid, login: &str, port: u16) -> Foxy {
    Foxy::mirroring(&format!(
        "[access]\nconnect_ports = [{port}]\n\
         [[parent]]\nname = \"squid\"\nurl = \"http://{}\"\nlogin = \"{login}\"\n",
        squid.address
    ))
}

/// Returns the answer with its head, as curl prints it.
fn ask(proxy: &str, url: &str, options: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-i", "--noproxy", "", "-x", proxy])
        .args(options)
        .arg(url);
    let output = run(&mut curl);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn field<'t>(answer: &'t str, name: &str) -> Option<&'t str> {
    let mut fields = answer.lines().filter_map(|line| line.split_once(": "));
    let found = fields.find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

#[test]
fn a_squid_as_parent_has_one_copy_and_foxy_another() {
    let (Some(_), Some(_)) = (tool("squid", "squid"), tool("curl", "curl")) else {
        return;
    };
    let (squid, origin) = (Squid::start(), origin());
    let foxy = behind(&squid, LOGIN, origin.port());
    let own = format!("http://{LOGIN}@{}", squid.address);

    let first = ask(&foxy.url(), &origin.url("/x"), &[]);
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(
        field(&first, "Via").is_some_and(|via| via.contains("squid")),
        "{first}"
    );
    assert!(!first.to_lowercase().contains("proxy-auth"), "{first}");
    for proxy in [&foxy.url(), &own] {
        let again = ask(proxy, &origin.url("/x"), &[]);
        assert!(
            again.ends_with("\r\n\r\n/x") && again.contains("200"),
            "{again}"
        );
    }
    assert_eq!(origin.requests(), 1);

    // The Age of a stored answer is the Age in Squid's answer, plus the time for which Foxy has stored the
    // answer.
    ask(&own, &origin.url("/y"), &[]);
    std::thread::sleep(Duration::from_millis(2100));
    for _ in 0..2 {
        let late = ask(&foxy.url(), &origin.url("/y"), &[]);
        let age = field(&late, "Age").and_then(|age| age.parse::<u32>().ok());
        assert!(age.is_some_and(|age| age >= 2), "{late}");
    }
    assert_eq!(origin.requests(), 2);

    let posted = ask(&foxy.url(), &origin.url("/p"), &["-d", "some text"]);
    assert!(posted.ends_with("\r\n\r\nsome text"), "{posted}");
    let tunnel = ask(&foxy.url(), &origin.url("/t"), &["-p"]);
    assert!(tunnel.ends_with("\r\n\r\n/t"), "{tunnel}");
    assert_eq!(origin.requests(), 4);

    // Squid has ended. Foxy answers 502 without its parent, but it still serves stored answers.
    drop(squid);
    let gone = ask(&foxy.url(), &origin.url("/z"), &[]);
    assert!(gone.starts_with("HTTP/1.1 502"), "{gone}");
    let kept = ask(&foxy.url(), &origin.url("/x"), &[]);
    assert!(kept.starts_with("HTTP/1.1 200"), "{kept}");
    assert_eq!(origin.requests(), 4);
}

#[test]
fn a_squid_that_wants_another_login_is_a_502() {
    let (Some(_), Some(_)) = (tool("squid", "squid"), tool("curl", "curl")) else {
        return;
    };
    let (squid, origin) = (Squid::start(), origin());
    let foxy = behind(&squid, "child:wrong", origin.port());
    let long = "x".repeat(100_000);
    for options in [&[][..], &["-I"], &["-d", "text"], &["-d", &long]] {
        let answer = ask(&foxy.url(), &origin.url("/x"), options);
        let last = answer.rfind("HTTP/1.1 ").map_or("", |at| &answer[at..]);
        assert!(last.starts_with("HTTP/1.1 502"), "{answer}");
        let cache = field(last, "Cache-Status").unwrap_or_default();
        assert!(cache.contains("parent-wants-login"), "{answer}");
        assert!(field(last, "Proxy-Authenticate").is_none(), "{answer}");
    }
    assert_eq!(origin.requests(), 0);
}
