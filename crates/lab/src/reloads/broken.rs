//! Configuration files with a mistake. Foxy must refuse each file with a message and change nothing.

use foxy_base::Rng;

use super::Findings;
use super::fixture::Fixture;
use super::settings::Settings;

/// A mistake in a file. It is appended to a correct file, or it is the complete file.
struct Mistake {
    /// Text of the mistake. `{n}` is replaced by a number.
    text: &'static str,
    /// True if the text is the complete file.
    alone: bool,
}

const fn after(text: &'static str) -> Mistake {
    Mistake { text, alone: false }
}

const fn alone(text: &'static str) -> Mistake {
    Mistake { text, alone: true }
}

const MISTAKES: [Mistake; 25] = [
    alone("admin ="),
    alone("not toml at all [{n}"),
    alone("listen = \"127.0.0.1:{n}"),
    alone("[[site]]\nname = \"alone-{n}\"\n"),
    alone("\u{0}{n}"),
    after("[timeouts]\nhead = \"{n}s\"\n"),
    after("[unknown-{n}]\na = 1\n"),
    after("[fill]\nunknown_{n} = 1\n"),
    after("[fill]\nwindow = \"{n} parsecs\"\n"),
    after("[fill]\nwindow = -{n}\n"),
    after("[fill]\nfinish_percent = 1{n}00\n"),
    after("[headers]\nname = [\"a\", \"{n}\"]\n"),
    after("[cache]\nheuristic_percent = \"often-{n}\"\n"),
    after("[cache]\ntargeted_fields = [\"two words {n}\"]\n"),
    after("[[rule]]\npath = \"no-slash-{n}\"\n"),
    after("[[rule]]\nquery_keep = [\"a\"]\nquery_ignore = [\"b{n}\"]\n"),
    after("[[rule]]\nttl_max = \"never {n}\"\n"),
    after("[[site]]\nname = \"main\"\nlisten = \"127.0.0.1:1{n}\"\norigin = \"http://a.test\"\n"),
    after(
        "[[site]]\nname = \"x{n}\"\nlisten = \"127.0.0.1:99999{n}\"\norigin = \"http://a.test\"\n",
    ),
    after("[[site]]\nname = \"x{n}\"\nlisten = \"192.0.2.1:8{n}\"\norigin = \"http://a.test\"\n"),
    after("[[site]]\nname = \"x{n}\"\nlisten = \"127.0.0.1:2{n}\"\norigin = \"gopher://a.test\"\n"),
    after(
        "[[site]]\nname = \"x{n}\"\nlisten_tls = \"127.0.0.1:2{n}\"\norigin = \"http://a.test\"\n",
    ),
    after("[tls]\ncertificate = \"/nowhere/{n}.pem\"\nkey = \"/nowhere/{n}.key\"\n"),
    after("[access]\nallow_clients = [\"192.0.2.{n}/33\"]\n"),
    after("[[access_rule]]\naction = \"parent\"\nparent = \"nobody-{n}\"\n"),
];

/// Makes Foxy read `count` files with a mistake. After each of them, makes Foxy read the correct file again.
pub(super) async fn run(
    (fixture, settings): (&Fixture, &Settings),
    (count, rng): (u32, &mut Rng),
    findings: &mut Findings,
) -> Result<(), String> {
    let right = settings.text();
    let (mut refused, mut explained) = (0, 0);
    for number in 0..count as usize {
        let Mistake { text, alone } = &MISTAKES[number % MISTAKES.len()];
        let mistake = text.replace("{n}", &(10 + rng.below(80)).to_string());
        let wrong = match alone {
            true => mistake.clone(),
            false => format!("{right}{mistake}"),
        };
        match fixture.reload(&wrong).await? {
            Ok(words) => {
                findings.fault(format!("a broken file was accepted: {mistake:?}: {words}"));
            }
            Err(words) => {
                refused += 1;
                explained += usize::from(words.len() > 20);
            }
        }
        let words = fixture.apply(&right).await?;
        findings.expect(words == "reloaded: nothing changed", || {
            format!("a broken file changed something: {mistake:?}: {words}")
        });
    }
    findings.expect(explained == refused, || {
        format!("{} refusals say nothing", refused - explained)
    });
    findings.result(format!(
        "broken files    {refused} of {count} refused, nothing changed by them"
    ));
    Ok(())
}
