//! Prints docs/metrics.md; `cargo xtask generate` writes it. The example starts a Foxy and reads its metrics
//! page, so that the document contains the same metrics that a monitoring program gets.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use foxy::config::{Config, ThisMachine, parse};
use foxy::{Parts, start};

const HEAD: &str = "# Metrics\n\nThis page is generated from the metrics that a running Foxy exports (`cargo xtask generate`).\n\n\
    `/metrics` of the admin address has the text format of Prometheus. Counters end in `_total` and count since the\n\
    start; units are in the names: seconds, bytes. Labels have a bounded number of values. [operating.md](operating.md#metrics) has queries and\n\
    alerts.\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("foxy-metrics-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let page = page(&folder.display().to_string());
    std::fs::remove_dir_all(&folder)?;
    print!("{HEAD}{}", table(&page?));
    Ok(())
}

/// Returns the metrics page of a Foxy with all features: a store, a log, a certificate, and a site with two
/// origins.
fn page(folder: &str) -> Result<String, Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()])?;
    std::fs::write(format!("{folder}/crt"), made.cert.pem())?;
    std::fs::write(format!("{folder}/key"), made.signing_key.serialize_pem())?;
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nmemory = \"64MiB\"\nworkers = 1\n\
         [[store]]\npath = \"{folder}/store\"\nsize = \"16MiB\"\n[log]\naccess = \"{folder}/log\"\n\
         [[site]]\nname = \"s\"\nlisten_tls = \"127.0.0.1:0\"\norigin = [\"http://127.0.0.1:1\", \"http://127.0.0.1:2\"]\n\
         certificate = \"{folder}/crt\"\nkey = \"{folder}/key\"\n"
    );
    let wrong = |problems: Vec<foxy::config::Problem>| format!("{problems:?}");
    let config =
        Config::build(&parse(&text, "example").map_err(wrong)?, &ThisMachine).map_err(wrong)?;
    let running = start(&config, Parts::system())?;
    let admin = running.admin().ok_or("there is no admin address")?;
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    drop(running);
    Ok(page)
}

/// Returns a table of Markdown with one row for each metric in `page`, in the order of `page`.
fn table(page: &str) -> String {
    let mut table = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' '))
        else {
            continue;
        };
        let kind = lines
            .next()
            .and_then(|line| line.rsplit(' ').next())
            .unwrap_or("");
        let mut labels: Vec<&str> = Vec::new();
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            let list = sample.split_once('{').map_or("", |(_, rest)| rest);
            let names = list
                .split("=\"")
                .filter_map(|part| part.rsplit(['"', ',']).next());
            for name in names.filter(|name| is_name(name) && *name != "le") {
                if list.contains(&format!("{name}=\"")) && !labels.contains(&name) {
                    labels.push(name);
                }
            }
        }
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        table += &format!(
            "| `{name}` | {kind} | {} | {} |\n",
            labels.join(", "),
            help.replace('|', "\\|")
        );
    }
    table
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}
