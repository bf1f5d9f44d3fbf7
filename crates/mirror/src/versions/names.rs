//! The forms in which names of packages and versions are compared.

use super::Listing;

/// Returns the normal form of a package's name. If a registry accepts several spellings of one name, all of
/// them have the same normal form. So another spelling cannot bypass a rule.
pub(super) fn package(listing: Listing, name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match listing {
        Listing::Npm => name,
        // Crates whose names differ only in `_` and `-` cannot both exist.
        Listing::Cargo => name.replace('_', "-"),
        Listing::Pypi => collapsed(&name),
    }
}

/// Returns the normal form of PEP 503, in which each run of `-`, `_` and `.` becomes one `-`.
fn collapsed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            other => out.push(other),
        }
    }
    out
}

/// Returns the normal form of a version. A version that cannot be read stays unchanged.
pub(super) fn version(listing: Listing, text: &str) -> String {
    let text = text.trim();
    match listing {
        Listing::Pypi => pep440(text).unwrap_or_else(|| text.to_ascii_lowercase()),
        Listing::Npm | Listing::Cargo => {
            let text = text.trim_start_matches(['v', 'V', '=']);
            // Versions that differ only in their build are the same (Semantic Versioning 2.0.0, section 10).
            text.split('+').next().unwrap_or(text).to_ascii_lowercase()
        }
    }
}

/// Returns the normal form of an exact version. Returns `None` if the text is not an exact version.
pub(super) fn exact(listing: Listing, text: &str) -> Option<String> {
    match listing {
        Listing::Pypi => pep440(text),
        Listing::Npm | Listing::Cargo => {
            let read = semver::Version::parse(text).ok()?;
            Some(version(listing, &read.to_string()))
        }
    }
}

/// Returns the normal form of a version of PEP 440. Zeros at the end of the release are left out, so `1.0`
/// and `1` are the same.
pub(super) fn pep440(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_prefix('v').unwrap_or(&text);
    let (public, local) = match text.split_once('+') {
        Some((public, local)) => (public, Some(local)),
        None => (text, None),
    };
    let (epoch, rest) = match public.split_once('!') {
        Some((epoch, rest)) => (number(epoch)?, rest),
        None => ("0", public),
    };
    let (release, rest) = release(rest)?;
    let mut out = format!("{epoch}!{release}");
    suffixes(rest, &mut out)?;
    if let Some(local) = local {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if local.is_empty() || !local.chars().all(plain) {
            return None;
        }
        out.push('+');
        out.push_str(&local.replace(['-', '_'], "."));
    }
    Some(out)
}

/// Returns the digits without leading zeros. Returns `None` for any other text.
fn number(text: &str) -> Option<&str> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let plain = text.trim_start_matches('0');
    Some(if plain.is_empty() { "0" } else { plain })
}

/// Reads numbers with dots between them. Returns the numbers and the remaining text.
fn release(text: &str) -> Option<(String, &str)> {
    let (mut numbers, mut rest) = (Vec::new(), text);
    loop {
        let (digits, after) = digits(rest);
        numbers.push(number(digits)?);
        rest = after;
        match rest.strip_prefix('.') {
            Some(next) if next.starts_with(|c: char| c.is_ascii_digit()) => rest = next,
            _ => break,
        }
    }
    while numbers.len() > 1 && numbers.last() == Some(&"0") {
        numbers.pop();
    }
    Some((numbers.join("."), rest))
}

/// Returns the digits at the start of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let is_other = |c: char| !c.is_ascii_digit();
    text.split_at(text.find(is_other).unwrap_or(text.len()))
}

/// Appends suffixes for pre-releases, post-releases and development releases.
fn suffixes(mut rest: &str, out: &mut String) -> Option<()> {
    while !rest.is_empty() {
        let dashed = rest.starts_with('-');
        rest = rest.strip_prefix(['-', '_', '.']).unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_lowercase());
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        let word = match word {
            "a" | "alpha" => "a",
            "b" | "beta" => "b",
            "c" | "rc" | "pre" | "preview" => "rc",
            "post" | "rev" | "r" => ".post",
            "dev" => ".dev",
            // `1.0-1` is `1.0.post1`.
            "" if dashed && after.starts_with(|c: char| c.is_ascii_digit()) => ".post",
            _ => return None,
        };
        let separated = after.strip_prefix(['-', '_', '.']).filter(|next| {
            let (digits, _) = digits(next);
            !digits.is_empty()
        });
        let (count, next) = digits(separated.unwrap_or(after));
        out.push_str(word);
        out.push_str(if count.is_empty() {
            "0"
        } else {
            number(count)?
        });
        rest = next;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_write_a_name() {
        for (listing, written, normal) in [
            (Listing::Pypi, "Zope.Interface", "zope-interface"),
            (Listing::Pypi, "a__b-._c", "a-b-c"),
            (Listing::Cargo, "Serde_JSON", "serde-json"),
            (Listing::Npm, "@Scope/Left.Pad_x", "@scope/left.pad_x"),
        ] {
            assert_eq!(package(listing, written), normal);
        }
    }

    #[test]
    fn ways_to_write_a_version() {
        for (one, other) in [
            ("1.0", "v1.0.0"),
            ("1", "1.0"),
            ("1.0-1", "1.0.post1"),
            ("1.0RC1", "1.0-rc.1"),
            ("1.0alpha", "1.0a0"),
            ("1.0.dev1", "1.0dev01"),
            ("0!1.2", "1.2"),
            ("1.0+Ubuntu-1", "1.0+ubuntu.1"),
            ("2020.01.05", "2020.1.5"),
            ("1.0_1", "1.0_1"),
        ] {
            assert_eq!(version(Listing::Pypi, one), version(Listing::Pypi, other));
        }
        for different in [
            "1.1",
            "1.0.post1",
            "1.0rc1",
            "1!1.0",
            "1.0+x",
            "10",
            "1.0.dev0",
        ] {
            assert_ne!(
                version(Listing::Pypi, different),
                version(Listing::Pypi, "1.0")
            );
        }
        for wrong in [
            "", "x", "1.0x", "1..0", "1.0+", "bar-1.0", "2-1.0", "*", "1.*", ">=1",
        ] {
            assert_eq!(exact(Listing::Pypi, wrong), None, "{wrong}");
        }
        assert_eq!(version(Listing::Npm, "v1.2.3+build"), "1.2.3");
        assert_eq!(exact(Listing::Npm, "1.2.3-Beta.1").unwrap(), "1.2.3-beta.1");
        for wrong in ["1", "1.2", "^1.2.3", "latest", "1.2.x", "v1.2.3"] {
            assert_eq!(exact(Listing::Npm, wrong), None, "{wrong}");
        }
    }
}
