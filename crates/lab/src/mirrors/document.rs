//! Documents of an npm registry, with realistic structure and any length. Each document exists in two forms:
//! as the registry sends it, and as a mirror must send it.
//!
//! A document is made once, with placeholders where the two forms differ. So the form that a mirror must send
//! follows from the placeholders alone, without code of the product.

use foxy_base::Rng;

/// Kind of text that replaces a placeholder in the document.
#[derive(Clone, Copy, Debug)]
enum Placeholder {
    /// The name of the package.
    Name,
    /// Base URL of artefacts: the registry, or the mirror of the registry.
    Artefacts,
    /// URL of the registry at a place where a mirror must not change it.
    Registry,
}

/// Texts that replace the placeholders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Substitutions<'a> {
    /// The name of the package.
    pub(super) name: &'a str,
    /// Base URL of artefacts: the URL of the registry, or of the mirror.
    pub(super) artefacts: &'a str,
    /// URL of the registry.
    pub(super) registry: &'a str,
}

impl<'a> Substitutions<'a> {
    const fn of(&self, placeholder: Placeholder) -> &'a str {
        match placeholder {
            Placeholder::Name => self.name,
            Placeholder::Artefacts => self.artefacts,
            Placeholder::Registry => self.registry,
        }
    }
}

/// A document with placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    text: String,
    placeholders: Vec<(usize, Placeholder)>,
}

impl Document {
    /// Makes a packument (npm's index document of one package). In each version, `about` bytes belong to
    /// fields that an installation does not need. The artefact of the last version has the digest `digest`
    /// (base64). The other artefacts have arbitrary digests.
    pub(super) fn packument(rng: &mut Rng, versions: usize, about: usize, digest: &str) -> Self {
        let mut document = Self::default();
        let last = versions.saturating_sub(1);
        document.push("{\"_id\":\"$N\",\"name\":\"$N\",\"dist-tags\":{\"latest\":\"");
        document.push(&version(last));
        document.push("\"},\"versions\":{");
        for number in 0..versions {
            document.push(if number > 0 { "," } else { "" });
            let digest = match number == last {
                true => digest.to_owned(),
                false => noise(rng, 86) + "==",
            };
            document.version(rng, &version(number), about, &digest);
        }
        document.push("},\"time\":{\"modified\":\"2026-01-01T00:00:00.000Z\"");
        for number in 0..versions {
            let (day, hour) = (number % 28 + 1, number / 28 % 24);
            let of = version(number);
            document.push(&format!(
                ",\"{of}\":\"2025-06-{day:02}T{hour:02}:00:00.000Z\""
            ));
        }
        // The readme contains a text that resembles the field with an artefact's URL. A mirror must not
        // change it.
        document.push("},\"tarball\":\"$R/$N/-/$N-1.0.0.tgz\",\"readme\":\"\\\"tarball\\\":");
        document.push("\\\"$R/$N/-/$N-1.0.0.tgz\\\"\"}");
        document
    }

    fn version(&mut self, rng: &mut Rng, version: &str, about: usize, digest: &str) {
        self.push(&format!(
            "\"{version}\":{{\"name\":\"$N\",\"version\":\"{version}\",\"description\":\"{}\",",
            noise(rng, 40)
        ));
        self.push("\"homepage\":\"$R/$N\",\"license\":\"MIT\",\"engines\":{\"node\":\">=18\"},");
        for field in ["dependencies", "devDependencies"] {
            self.push(&format!("\"{field}\":{{"));
            let count = 1 + rng.below(6);
            for number in 0..count {
                let comma = if number > 0 { "," } else { "" };
                let (name, minor) = (noise(rng, 9), rng.below(30));
                self.push(&format!("{comma}\"{name}\":\"^{number}.{minor}.0\""));
            }
            self.push("},");
        }
        let mut left = about;
        while left > 0 {
            let now = left.min(90);
            self.push(&format!("\"x{left}\":[\"{}\",true],", noise(rng, now)));
            left -= now;
        }
        self.push(&format!(
            "\"dist\":{{\"integrity\":\"sha512-{digest}\",\"shasum\":\"{:040x}\",",
            rng.next_u64()
        ));
        self.push(&format!(
            "\"tarball\":\"$A/$N/-/$N-{version}.tgz\",\"fileCount\":{},\"signatures\":[{{",
            rng.below(100)
        ));
        self.push(&format!(
            "\"keyid\":\"SHA256:k\",\"sig\":\"{}\"}}]}}}}",
            noise(rng, 96)
        ));
    }

    /// Appends text; `$N`, `$A` and `$R` are placeholders.
    fn push(&mut self, text: &str) {
        let mut parts = text.split('$');
        self.text += parts.next().unwrap_or_default();
        for part in parts {
            let placeholder = match part.as_bytes().first() {
                Some(b'N') => Placeholder::Name,
                Some(b'A') => Placeholder::Artefacts,
                _ => Placeholder::Registry,
            };
            self.placeholders.push((self.text.len(), placeholder));
            self.text += part.get(1..).unwrap_or_default();
        }
    }

    /// Length of the document.
    pub(super) fn length(&self, substitutions: &Substitutions<'_>) -> usize {
        let placeholders = self
            .placeholders
            .iter()
            .map(|(_, placeholder)| substitutions.of(*placeholder).len());
        self.text.len() + placeholders.sum::<usize>()
    }

    /// Text of the document, part by part.
    pub(super) fn parts<'a>(
        &'a self,
        substitutions: Substitutions<'a>,
    ) -> impl Iterator<Item = &'a [u8]> {
        let begins = std::iter::once(0).chain(self.placeholders.iter().map(|(at, _)| *at));
        let placeholders = self
            .placeholders
            .iter()
            .map(|(at, placeholder)| (*at, Some(*placeholder)));
        let ends = placeholders.chain(std::iter::once((self.text.len(), None)));
        begins
            .zip(ends)
            .flat_map(move |(begin, (end, placeholder))| {
                let placeholder =
                    placeholder.map_or("", |placeholder| substitutions.of(placeholder));
                [&self.text.as_bytes()[begin..end], placeholder.as_bytes()]
            })
    }
}

/// The version with this number, as text.
pub(super) fn version(number: usize) -> String {
    format!("1.{}.{}", number / 100, number % 100)
}

fn noise(rng: &mut Rng, length: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
    let mut text = String::with_capacity(length + 9);
    while text.len() < length {
        let letters = rng.next_u64().to_le_bytes();
        text.extend(letters.map(|byte| LETTERS[usize::from(byte) % LETTERS.len()] as char));
    }
    text.truncate(length);
    text
}

/// Compares a body with a document while the body arrives.
#[derive(Debug)]
pub(super) struct Compared<'a, I: Iterator<Item = &'a [u8]>> {
    parts: I,
    now: &'a [u8],
    wrong: bool,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Compared<'a, I> {
    pub(super) const fn with(parts: I) -> Self {
        Self {
            parts,
            now: &[],
            wrong: false,
        }
    }

    /// Compares the next bytes of the body.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.wrong {
            if self.now.is_empty() {
                match self.parts.next() {
                    Some(next) => self.now = next,
                    None => self.wrong = true,
                }
                continue;
            }
            let length = bytes.len().min(self.now.len());
            self.wrong = bytes[..length] != self.now[..length];
            (bytes, self.now) = (&bytes[length..], &self.now[length..]);
        }
    }

    /// True if the body was the complete document and nothing else.
    pub(super) fn ends_right(mut self) -> bool {
        !self.wrong && self.now.is_empty() && self.parts.all(<[u8]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn substitutions(artefacts: &str) -> Substitutions<'_> {
        Substitutions {
            name: "left",
            artefacts,
            registry: "http://r",
        }
    }

    #[test]
    fn a_packument_is_of_the_real_shape() {
        let document = Document::packument(&mut Rng::new(3), 3, 200, "d");
        let text = document
            .parts(substitutions("http://m/npm"))
            .collect::<Vec<_>>();
        let text = text.concat();
        assert_eq!(text.len(), document.length(&substitutions("http://m/npm")));
        let value: Value = serde_json::from_slice(&text).unwrap();
        let latest = value["dist-tags"]["latest"].as_str().unwrap();
        let dist = &value["versions"][latest]["dist"];
        assert_eq!(dist["tarball"], "http://m/npm/left/-/left-1.0.2.tgz");
        assert_eq!(dist["integrity"], "sha512-d");
        assert_eq!(value["tarball"], "http://r/left/-/left-1.0.0.tgz");
    }

    #[test]
    fn other_bodies_are_wrong() {
        let document = Document::packument(&mut Rng::new(3), 3, 200, "d");
        let text = document
            .parts(substitutions("http://m"))
            .collect::<Vec<_>>();
        let text = text.concat();
        let is_right = |text: &[u8]| {
            let mut compared = Compared::with(document.parts(substitutions("http://m")));
            text.chunks(7).for_each(|piece| compared.push(piece));
            compared.ends_right()
        };
        assert!(is_right(&text));
        assert!(!is_right(&text[..text.len() - 1]));
        assert!(!is_right(&[&text[..], b" "].concat()));
        let mut other = text.clone();
        other[text.len() / 2] ^= 1;
        assert!(!is_right(&other));
    }
}
