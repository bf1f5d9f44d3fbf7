//! The hint "did you mean": finds the nearest of some names, if it is near enough.

/// Returns the candidate that differs from `given` by the fewest edits. A candidate is left out if its number
/// of edits exceeds a third of its length. One edit is always permitted.
#[must_use]
pub fn nearest(given: &str, candidates: &[String]) -> Option<String> {
    candidates
        .iter()
        .map(|candidate| (distance(given, candidate), candidate))
        .filter(|(edits, candidate)| edits * 3 <= candidate.len().max(3))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate.clone())
}

/// Returns the number of insertions, removals and replacements of letters that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_of_the_pen_only() {
        let names = ["memory", "listen", "workers"].map(str::to_owned);
        for (given, wanted) in [
            ("memmory", Some("memory")),
            ("lisen", Some("listen")),
            ("colour", None),
        ] {
            assert_eq!(nearest(given, &names).as_deref(), wanted, "{given}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
