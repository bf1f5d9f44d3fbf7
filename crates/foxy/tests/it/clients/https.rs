//! A site with TLS on both sides of Foxy, for Chromium, openssl, Python and Java.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData as _;
use sha2::{Digest as _, Sha256};

use crate::clients::browser::{SUB_RESOURCES, chromium, page};
use crate::clients::process::{Foxy, run, tool};
use crate::clients::tls;
use crate::clients::web::{Request, Response, Web};

const WORDS: &str = "the same words for everyone";

/// A site, its origin, and a folder for files of the clients.
struct Shop {
    origin: Web,
    foxy: Foxy,
    address: SocketAddr,
    /// The certificate, which clients must trust.
    certificate: PathBuf,
    /// Hash of the certificate's key, in the form that Chromium expects.
    pin: String,
    folder: tempfile::TempDir,
}

impl Shop {
    fn open(pages: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a scratch directory");
        let (origin, authority) = tls::serve(pages);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let ca = write("origin.pem", &authority);
        let key = write("key.pem", &made.signing_key.serialize_pem());
        let certificate = write("certificate.pem", &made.cert.pem());
        let site = format!(
            "certificate = \"{}\"\nkey = \"{}\"\norigin = \"https://localhost:{}\"\norigin_ca = \"{}\"\n",
            certificate.display(),
            key.display(),
            origin.port(),
            ca.display()
        );
        let (foxy, address) = Foxy::secured(&site);
        let spki = made.signing_key.subject_public_key_info();
        Self {
            origin,
            foxy,
            address,
            certificate,
            pin: STANDARD.encode(Sha256::digest(spki)),
            folder,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

fn words(_: &Request) -> Response {
    Response::cacheable("text/plain", WORDS)
}

#[test]
fn a_page_of_forty_parts_over_tls_looks_the_same_from_the_cache() {
    let Some(_) = tool("chromium", "chromium") else {
        return;
    };
    let shop = Shop::open(page);
    let shot = |name: &str| {
        let file = shop.folder.path().join(name);
        let mut browser = chromium(&shop.folder.path().join(format!("profile-{name}")));
        browser.args([
            &format!("--ignore-certificate-errors-spki-list={}", shop.pin),
            &format!("--screenshot={}", file.display()),
            "--window-size=800,600",
            &shop.url("/"),
        ]);
        run(&mut browser);
        std::fs::read(file).expect("a screenshot")
    };
    let parts = || {
        let paths = shop.origin.paths();
        paths
            .iter()
            .filter(|path| path.starts_with("/part/"))
            .count()
    };
    let first = shot("first.png");
    assert_eq!(parts(), SUB_RESOURCES, "{:?}", shop.origin.paths());
    let second = shot("second.png");
    assert_eq!(parts(), SUB_RESOURCES, "the origin was asked again");
    assert!(first == second, "the cached page looks different");
    assert!(first.len() > 2000, "the screenshot is empty");
}

#[test]
fn openssl_speaks_tls_1_2_and_1_3_and_is_refused_below() {
    let Some(_) = tool("openssl", "openssl") else {
        return;
    };
    let shop = Shop::open(words);
    let get = |version: &str| {
        let mut child = Command::new("openssl")
            .args(["s_client", "-quiet", "-verify_return_error", version])
            .args(["-connect", &shop.address.to_string(), "-servername", "localhost"])
            .arg("-CAfile")
            .arg(&shop.certificate)
            // openssl does not offer old versions of TLS unless its security level is lowered.
            .args(["-cipher", "DEFAULT:@SECLEVEL=0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl starts");
        let request = b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut input = child.stdin.take().expect("its input");
        // A refused client may close the connection before it reads the request.
        let _ = input.write_all(request);
        let output = child.wait_with_output().expect("its end");
        drop(input);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for version in ["-tls1_3", "-tls1_2"] {
        let answer = get(version);
        assert!(answer.starts_with("HTTP/1.1 200"), "{version}: {answer}");
        assert!(answer.ends_with(WORDS), "{version}: {answer}");
    }
    assert_eq!(get("-tls1_1"), "");
    assert_eq!(shop.origin.requests(), 1);
}

#[test]
fn python_gets_a_page_over_tls() {
    let Some(mut python) = tool("python3", "python3") else {
        return;
    };
    let shop = Shop::open(words);
    let program = "import ssl, sys, urllib.request as web\n\
                   context = ssl.create_default_context(cafile=sys.argv[2])\n\
                   for _ in range(3):\n    print(web.urlopen(sys.argv[1], context=context).read().decode())\n";
    let file = shop.file("get.py", program);
    let output = run(python
        .arg(file)
        .arg(shop.url("/page"))
        .arg(&shop.certificate));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, format!("{WORDS}\n").repeat(3));
    assert_eq!(shop.origin.requests(), 1);
}

#[test]
fn java_gets_a_page_over_tls() {
    let (Some(mut java), Some(_)) = (
        tool("java", "default-jdk-headless"),
        tool("javac", "default-jdk-headless"),
    ) else {
        return;
    };
    let shop = Shop::open(words);
    let trust = trust(shop.folder.path(), &shop.certificate);
    let file = shop.file("Get.java", JAVA);
    let output = run(java
        .arg(format!("-Djavax.net.ssl.trustStore={}", trust.display()))
        .arg("-Djavax.net.ssl.trustStorePassword=changeit")
        .arg(file)
        .arg(shop.url("/page")));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, format!("200 {WORDS}\n").repeat(3));
    assert_eq!(shop.origin.requests(), 1);
    // A client that does not trust the certificate gets no answer.
    let mut java = Command::new("java");
    let refused = java
        .arg(shop.folder.path().join("Get.java"))
        .arg(shop.url("/page"));
    assert!(!refused.output().expect("java starts").status.success());
    assert!(shop.foxy.dir().exists());
}

/// Creates a file of trusted authorities for Java.
fn trust(folder: &Path, certificate: &Path) -> PathBuf {
    let file = folder.join("trust.p12");
    run(Command::new("keytool")
        .args(["-importcert", "-noprompt", "-alias", "shop"])
        .args([
            "-storetype",
            "PKCS12",
            "-storepass",
            "changeit",
            "-keystore",
        ])
        .arg(&file)
        .arg("-file")
        .arg(certificate));
    file
}

const JAVA: &str = r#"
import java.net.URI;
import java.net.http.*;

class Get {
    public static void main(String[] args) throws Exception {
        var client = HttpClient.newHttpClient();
        var request = HttpRequest.newBuilder(URI.create(args[0])).build();
        for (int i = 0; i < 3; i++) {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
}
"#;
