//! Invariants that hold for any purge expression and any key, for fuzzers and tests.

use super::KeyParts;
use super::patterns::compile;

/// Splits `data` at the first line end into an expression and a key, and matches the expression against
/// the key. Returns true if the expression was accepted.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn purge_expression(data: &[u8]) -> bool {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (text, key) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let parts = KeyParts::of(key);
    assert!(parts.url.ends_with(parts.bare) && parts.bare.starts_with(parts.authority));
    assert!(parts.authority.starts_with(parts.host));
    assert!(key.starts_with(parts.partition) && key.ends_with(parts.variant));
    assert!(parts.variant.is_empty() || parts.variant[0] == b'\n');
    let Ok(expression) = compile(text) else {
        return false;
    };
    let found = expression.find(parts.url);
    assert!(found.is_none_or(|found| found.end() <= parts.url.len()));
    assert_eq!(expression.is_match(parts.url), found.is_some());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    const WORDS: [&str; 24] = [
        "^",
        "$",
        "(",
        ")",
        "[a-z",
        "]",
        "\\",
        "{9",
        ",}",
        "*",
        "+",
        "?",
        "|",
        ".",
        "(?i)",
        "\\p{L}",
        "http://",
        "a.test",
        "/p",
        "forward GET ",
        "\n",
        ":80",
        "\u{e9}",
        "{1000}",
    ];

    #[test]
    fn any_expression_is_compiled_within_bounds_or_refused() {
        let mut accepted = 0;
        for seed in 0..4000 {
            let mut rng = Rng::new(seed);
            let mut data = String::new();
            for _ in 0..rng.below(12) {
                data += WORDS[rng.below(WORDS.len() as u64) as usize];
            }
            data += "\nforward GET http://a.test:81/p?q";
            let case = std::panic::catch_unwind(|| purge_expression(data.as_bytes()));
            accepted += u32::from(case.unwrap_or_else(|_| panic!("seed {seed}: {data:?}")));
        }
        assert!((400..3600).contains(&accepted), "{accepted} accepted");
    }
}
