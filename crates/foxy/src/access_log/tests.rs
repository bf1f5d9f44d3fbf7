//! Tests of the formats, byte by byte, and of the way that a record takes to the log file.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::WallTime;
use foxy_proxy::{Details, LogRecord, LogSink, Outcome, RequestId};

use super::redaction::{Redaction, Scratch, Secret};
use super::*;
use crate::config::{LogClients, LogConfig, LogLevel, LogQueries, LogTarget, LogTemplate};

mod templates;

fn record<'a>() -> LogRecord<'a> {
    LogRecord {
        at: WallTime(1_700_000_000_123),
        duration: Duration::from_micros(45_678),
        client: SocketAddr::from(([127, 0, 0, 1], 5000)),
        partition: "forward",
        method: b"GET",
        target: b"http://example.com/a?b=1",
        host: b"example.com",
        secure: false,
        minor: 1,
        status: 200,
        outcome: Outcome::Miss,
        reason: "absent",
        bytes_in: 80,
        bytes_out: 1234,
        body_out: 1000,
        origin_status: 200,
        origin: Some(SocketAddr::from(([192, 0, 2, 1], 80))),
        content_type: b"text/html; charset=utf-8",
        referer: b"",
        user_agent: b"curl/8",
        user: "",
        access_rule: "",
        details: None,
    }
}

fn line(format: &LogFormat, record: &LogRecord<'_>) -> String {
    let mut out = Vec::new();
    write_shown(format, (record, ShownClient::Full(record.client)), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn squid_native() {
    assert_eq!(
        line(&LogFormat::Squid, &record()),
        "1700000000.123     45 127.0.0.1 TCP_MISS/200 1234 GET http://example.com/a?b=1 - \
         HIER_DIRECT/192.0.2.1 text/html\n"
    );
    let hit = LogRecord {
        outcome: Outcome::MemoryHit,
        origin: None,
        target: b"/x y",
        content_type: b"",
        ..record()
    };
    assert_eq!(
        line(&LogFormat::Squid, &hit),
        "1700000000.123     45 127.0.0.1 TCP_MEM_HIT/200 1234 GET http://example.com/x%20y - HIER_NONE/- -\n"
    );
    let secure = LogRecord {
        secure: true,
        ..hit
    };
    assert_eq!(
        line(&LogFormat::Squid, &secure),
        "1700000000.123     45 127.0.0.1 TCP_MEM_HIT/200 1234 GET https://example.com/x%20y - HIER_NONE/- -\n"
    );
}

#[test]
fn apache_combined() {
    let nasty = LogRecord {
        user_agent: b"a\"b\\c\x07\xff",
        body_out: 0,
        ..record()
    };
    assert_eq!(
        line(&LogFormat::Combined, &nasty),
        "127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET http://example.com/a?b=1 HTTP/1.1\" 200 - \
         \"-\" \"a\\\"b\\\\c\\x07\\xff\"\n"
    );
}

fn template(text: &str) -> LogFormat {
    LogFormat::Template(Arc::new(LogTemplate::parse(text).unwrap()))
}

#[test]
fn json_is_json_whatever_clients_send() {
    let nasty = LogRecord {
        user_agent: b"a\"b\\c\x07\xff",
        method: b"",
        outcome: Outcome::BadRequest,
        ..record()
    };
    let text = line(&LogFormat::Json, &nasty);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["time"], "2023-11-14T22:13:20.123Z");
    assert_eq!(value["outcome"], "bad-request");
    assert_eq!(value["duration_us"], 45_678);
    assert_eq!(value["user_agent"], "a\"b\\c\u{7}\u{fffd}");
    assert!(value.get("method").is_none() && text.lines().count() == 1);
}

#[test]
fn json_has_the_details_that_are_known() {
    let details = |details| {
        let text = line(
            &LogFormat::Json,
            &LogRecord {
                details: Some(details),
                ..record()
            },
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let all = Details {
        id: RequestId::Given("a/1"),
        first_byte: Some(Duration::from_millis(12)),
        ttl: Some(-5),
        rule: "pictures",
        traceparent: b"00-\"",
    };
    let value = details(all);
    assert_eq!(
        (&value["id"], &value["rule"]),
        (&"a/1".into(), &"pictures".into())
    );
    assert_eq!(
        (value["first_byte_us"].as_u64(), value["ttl"].as_i64()),
        (Some(12_000), Some(-5))
    );
    assert_eq!(value["traceparent"], "00-\"");
    let value = details(Details {
        id: RequestId::Made(0xab),
        first_byte: None,
        ttl: None,
        rule: "",
        traceparent: b"",
    });
    assert_eq!(value["id"], "000000000000000000000000000000ab");
    for absent in ["first_byte_us", "ttl", "rule", "traceparent"] {
        assert!(value.get(absent).is_none(), "{absent}");
    }
}

fn log(target: LogTarget, format: LogFormat) -> LogConfig {
    LogConfig {
        access: target,
        format,
        queries: LogQueries::Off,
        clients: LogClients::Full,
        level: LogLevel("info".to_owned()),
    }
}

#[test]
fn lines_reach_the_file_and_a_moved_file_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (
        folder.path().join("access.log"),
        folder.path().join("access.log.1"),
    );
    let log = Log::start(&log(LogTarget::File(path.clone()), LogFormat::Squid)).unwrap();
    let mut sink = BufferedSink::new(&log);
    sink.record(&record());
    sink.flush();
    // The line is in the queue before the request to reopen the file. So this line is still written to the
    // moved file.
    std::fs::rename(&path, &moved).unwrap();
    log.handle().unwrap().reopen();
    sink.record(&record());
    drop(sink);
    log.finish();
    assert_eq!(std::fs::read_to_string(moved).unwrap().lines().count(), 1);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
}

#[test]
fn queries_are_logged_only_where_that_is_wanted_and_strangers_do_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let template = template("{url} \"{referer}\" {target}");
    for (n, format) in [
        LogFormat::Squid,
        LogFormat::Common,
        LogFormat::Combined,
        LogFormat::Json,
        template,
    ]
    .iter()
    .enumerate()
    {
        for queries in [LogQueries::Off, LogQueries::Kept, LogQueries::Hashed] {
            let path = folder.path().join(format!("{n} {queries:?}"));
            let config = LogConfig {
                queries,
                ..log(LogTarget::File(path.clone()), format.clone())
            };
            let log = Log::start(&config).unwrap();
            let mut sink = BufferedSink::new(&log);
            for target in [
                &b"/a?key=secret"[..],
                b"http://a.test/a?key=secret?secret",
                b"/a",
            ] {
                sink.record(&LogRecord {
                    target,
                    referer: b"http://a.test/login?token=secret",
                    ..record()
                });
            }
            drop(sink);
            log.finish();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(
                text.contains("secret"),
                queries == LogQueries::Kept,
                "{text}"
            );
            assert!(text.contains("/a?") && text.lines().count() == 3, "{text}");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o007, 0, "{mode:o}");
        }
    }
}

#[test]
fn a_thread_that_is_gone_costs_lines_not_requests() {
    let folder = tempfile::tempdir().unwrap();
    let target = LogTarget::File(folder.path().join("log"));
    let log = Log::start(&log(target, LogFormat::Squid)).unwrap();
    let handle = log.handle().unwrap();
    let mut sink = BufferedSink::new(&log);
    log.finish();
    sink.record(&record());
    sink.flush();
    assert_eq!((handle.written(), handle.dropped()), (0, 1));
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_and_off_is_none() {
    let target = LogTarget::File("/no/such/folder/log".into());
    assert!(Log::start(&log(target, LogFormat::Squid)).is_err());
    let off = Log::start(&log(LogTarget::Off, LogFormat::Squid)).unwrap();
    assert!(off.handle().is_none() && !BufferedSink::new(&off).wanted());
}

#[test]
fn a_log_changes_its_file_and_form_while_it_runs_and_loses_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let first = log(LogTarget::File(at("a")), LogFormat::Squid);
    let log_ = Log::start(&first).unwrap();
    let mut sink = BufferedSink::new(&log_);
    let change = |config: &LogConfig, sink: &mut BufferedSink| {
        sink.record(&record());
        let prepared = log_.prepare(config).unwrap();
        let old = log_.apply(config, prepared);
        // A line that is recorded after the settings changed, but before `renew`, still goes to the old
        // target.
        sink.record(&record());
        sink.renew();
        if let Some(old) = old {
            old.finish();
        }
    };
    // The first change replaces the format, and the second change replaces format and file. The later changes
    // turn the log off and on again.
    change(&log(LogTarget::File(at("a")), LogFormat::Json), &mut sink);
    assert!(sink.wants_details());
    change(&log(LogTarget::File(at("b")), LogFormat::Squid), &mut sink);
    change(&log(LogTarget::Off, LogFormat::Squid), &mut sink);
    assert!(!sink.wanted());
    change(&log(LogTarget::File(at("c")), LogFormat::Squid), &mut sink);
    assert!(sink.wanted() && !sink.wants_details());
    sink.record(&record());
    drop(sink);
    assert!(
        log_.prepare(&log(LogTarget::File(at("x/y")), LogFormat::Json))
            .is_err()
    );
    let handle = log_.handle().unwrap();
    log_.finish();
    let lines = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    let json = lines("a")
        .lines()
        .filter(|line| line.starts_with('{'))
        .count();
    assert_eq!((lines("a").lines().count(), json), (4, 2));
    assert_eq!(
        (lines("b").lines().count(), lines("c").lines().count()),
        (2, 1)
    );
    assert_eq!((handle.written(), handle.dropped()), (7, 0));
}

/// Returns the line that is written for this client, this user and this day.
fn told(clients: LogClients, (client, user, day): (&str, &str, i64)) -> String {
    let redaction = Redaction {
        clients,
        queries: LogQueries::Hashed,
        secret: Secret::of([7; 16]),
    };
    let record = LogRecord {
        client: SocketAddr::new(client.parse().unwrap(), 5000),
        user,
        at: WallTime::from_secs(day * 86_400 + 60),
        ..record()
    };
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    let shown = redaction.apply(&record, &mut scratch);
    write_shown(
        &LogFormat::Json,
        (&shown, redaction.client(&record)),
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn clients_are_told_as_far_as_that_is_wanted() {
    let part = |clients, of, name: &str| {
        let value: serde_json::Value = serde_json::from_str(&told(clients, of)).unwrap();
        value[name].as_str().unwrap_or_default().to_owned()
    };
    for (clients, address, shown) in [
        (LogClients::Full, "192.0.2.77", "192.0.2.77:5000"),
        (
            LogClients::Full,
            "2001:db8:1:2::3",
            "[2001:db8:1:2::3]:5000",
        ),
        (LogClients::Network, "192.0.2.77", "192.0.2.0"),
        (LogClients::Network, "::ffff:192.0.2.77", "192.0.2.0"),
        (LogClients::Network, "2001:db8:1:2::3", "2001:db8:1::"),
        (LogClients::Off, "192.0.2.77", "-"),
    ] {
        assert_eq!(
            part(clients, (address, "ann", 1), "client"),
            shown,
            "{clients:?}"
        );
    }
    assert_eq!(
        part(LogClients::Network, ("192.0.2.7", "ann", 1), "user"),
        "ann"
    );
    assert_eq!(part(LogClients::Off, ("192.0.2.7", "ann", 1), "user"), "");
    let hashed = |of, name| part(LogClients::Hashed, of, name);
    for (name, same, other) in [
        (
            "client",
            ("::ffff:192.0.2.7", "bob", 1),
            ("192.0.2.8", "ann", 1),
        ),
        ("user", ("192.0.2.8", "ann", 1), ("192.0.2.7", "bob", 1)),
    ] {
        let one = hashed(("192.0.2.7", "ann", 1), name);
        assert!(
            one.len() == 16 && one.bytes().all(|b| b.is_ascii_hexdigit()),
            "{one}"
        );
        assert_eq!(hashed(same, name), one);
        assert_ne!(hashed(other, name), one);
        assert_ne!(hashed(("192.0.2.7", "ann", 2), name), one, "another day");
    }
    assert!(!told(LogClients::Hashed, ("192.0.2.7", "ann", 1)).contains("ann"));
    assert!(!told(LogClients::Hashed, ("192.0.2.7", "", 1)).contains("user\""));
}
