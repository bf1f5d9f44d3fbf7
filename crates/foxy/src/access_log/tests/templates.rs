//! Tests of the common format and of templates: the written lines, and attempts of clients to forge lines.

use super::*;
use crate::config::LogField;

#[test]
fn apache_common_is_combined_without_its_end() {
    let common = line(&LogFormat::Common, &record());
    let combined = line(&LogFormat::Combined, &record());
    assert_eq!(
        combined,
        format!("{} \"-\" \"curl/8\"\n", common.trim_end())
    );
}

/// Checks every field, with and without the details. Also checks that a template can write the same line as
/// the format `squid`, and the same line as `common`.
#[test]
fn templates_have_every_field() {
    let all = LogField::ALL.map(|field| format!("{}={{{}}}", field.name(), field.name()));
    let format = template(&all.join(" "));
    let details = Details {
        id: RequestId::Given("a/1"),
        first_byte: Some(Duration::from_millis(12)),
        ttl: Some(-5),
        rule: "pictures",
        traceparent: b"00-a",
    };
    let of_all = LogRecord {
        user: "anna",
        access_rule: "staff",
        referer: b"http://a.test/",
        details: Some(details),
        ..record()
    };
    assert_eq!(
        line(&format, &of_all),
        "time=2023-11-14T22:13:20.123Z time_common=14/Nov/2023:22:13:20 +0000 \
         time_unix=1700000000.123 client=127.0.0.1 client_port=127.0.0.1:5000 user=anna \
         access_rule=staff partition=forward method=GET url=http://example.com/a?b=1 \
         target=http://example.com/a?b=1 host=example.com http=1.1 status=200 outcome=miss \
         code=TCP_MISS reason=absent duration_us=45678 duration_ms=45 bytes_in=80 bytes_out=1234 \
         body_out=1000 origin=192.0.2.1:80 origin_status=200 \
         content_type=text/html;\\x20charset=utf-8 referer=http://a.test/ user_agent=curl/8 id=a/1 \
         traceparent=00-a first_byte_us=12000 ttl=-5 rule=pictures\n"
    );
    let bare = LogRecord {
        origin: None,
        reason: "",
        ..record()
    };
    let dashes = "{user}{access_rule}{reason}{origin}{origin_status}{referer}{id}{traceparent}{first_byte_us}{ttl}{rule}";
    assert_eq!(line(&template(dashes), &bare), "-----------\n");
    let squid = "{time_unix}     {duration_ms} {client} {code}/{status} {bytes_out} {method} {url} {user} HIER_DIRECT/192.0.2.1 text/html";
    assert_eq!(
        line(&template(squid), &record()),
        line(&LogFormat::Squid, &record())
    );
    let common =
        "{client} - {user} [{time_common}] \"{method} {target} HTTP/{http}\" {status} {body_out}";
    let written = line(&template(common), &record());
    assert_eq!(written, line(&LogFormat::Common, &record()));
}

/// For any input of a client, a line stays one line, a word stays one word, and a quoted text ends only at
/// its closing quote.
#[test]
fn clients_cannot_write_fields_or_lines_of_their_own() {
    let format = template(
        "{user} {method} {host} {rule} {content_type} \"{url}\" \"{referer}\" \"{user_agent}\" {status}",
    );
    let plain = line(&format, &record());
    let mut rng = foxy_base::Rng::new(26);
    const PIECES: [&[u8]; 12] = [
        b"\"",
        b"\\",
        b" ",
        b"\t",
        b"\r",
        b"\n",
        b"\0",
        b"\x1b[2J",
        b"\" 200 \"",
        b"a",
        "\u{2028}\u{85}".as_bytes(),
        b"\xff{status}",
    ];
    for round in 0..2000 {
        let mut text = Vec::new();
        for _ in 0..1 + rng.below(6) {
            text.extend_from_slice(PIECES[rng.below(PIECES.len() as u64) as usize]);
        }
        let user = String::from_utf8_lossy(&text).into_owned();
        let nasty = LogRecord {
            user: &user,
            method: &text,
            host: &text,
            target: &text,
            referer: &text,
            user_agent: &text,
            content_type: &text,
            ..record()
        };
        let written = line(&format, &nasty);
        let body = written.strip_suffix('\n').unwrap();
        assert!(
            body.bytes().all(|b| (b' '..=b'~').contains(&b)),
            "{round}: {body}"
        );
        assert_eq!(
            words(body).len(),
            words(plain.trim_end()).len(),
            "{round}: {body}"
        );
        assert_eq!(words(body).last().map(String::as_str), Some("200"));
    }
}

/// Returns the words and quoted texts of a line, as programs that read such logs split it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted, mut chars) = (vec![String::new()], false, line.chars());
    while let Some(c) = chars.next() {
        let last = words.last_mut().unwrap();
        match c {
            '\\' => last.extend(chars.next()),
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => last.push(c),
        }
    }
    words
}
