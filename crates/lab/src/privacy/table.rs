//! The table of header sets: the fields of an answer, and the users who may share the answer. The table is
//! parsed from a text that was written by hand.

use std::collections::BTreeSet;
use std::fmt;

/// Text of the table.
const TEXT: &str = include_str!("table.txt");

/// The permission to send an answer that was fetched for one user to another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Sharing is permitted and expected.
    Yes,
    /// Sharing is permitted, but not expected.
    May,
    /// Sharing is permitted if the answer is sent without the field that the directive (`no-cache` or
    /// `private`) names.
    NotTheField,
    /// Sharing is permitted after a 304 to the receiving user's own conditional request.
    Validated,
    /// Sharing is forbidden.
    No,
}

/// Relation between the second user's request and the first user's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// The second request arrives before the origin has answered.
    Concurrent,
    /// The second request arrives after the answer is complete.
    Sequential,
    /// The second request arrives while the body is being sent.
    Late,
    /// Requests with HEAD arrive before the origin has answered, and after the answer.
    Head,
    /// Requests with Range arrive before the origin has answered, and after the answer.
    Range,
    /// Several requests arrive at the same time when the stored answer has expired.
    Revalidation,
}

/// All timings, in the order of the letters in the table.
pub const TIMINGS: [Timing; 6] = [
    Timing::Concurrent,
    Timing::Sequential,
    Timing::Late,
    Timing::Head,
    Timing::Range,
    Timing::Revalidation,
];

impl Timing {
    /// Name in reports and URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Concurrent => "concurrent",
            Self::Sequential => "sequential",
            Self::Late => "late",
            Self::Head => "head",
            Self::Range => "range",
            Self::Revalidation => "revalidation",
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The credentials of two requests: the request that fetched an answer, and the request that may get the same
/// answer. They select a row of letters in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Neither request has a Cookie or Authorization.
    Plain,
    /// One of the two requests has a Cookie.
    Cookie,
    /// The request that fetched the answer has Authorization.
    Authorization,
}

/// Fields of an answer, and the users who may get it.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// Name of the set.
    pub name: String,
    /// Status code of the answer.
    pub status: u16,
    /// Content-Type of the answer.
    pub content_type: Option<String>,
    /// Lifetime of the answer in seconds.
    pub life: u32,
    /// True if an interim answer comes first.
    pub interim: bool,
    /// Method of the first request.
    pub method: &'static str,
    /// Method of the later requests.
    pub then: &'static str,
    /// Field lines; they may contain placeholders.
    pub fields: Vec<(String, String)>,
    sharing: [Vec<Sharing>; 3],
}

impl Set {
    /// The permission in the table for this timing and pair.
    #[must_use]
    pub fn sharing(&self, timing: Timing, pair: Pair) -> Sharing {
        self.sharing[pair as usize][timing as usize]
    }
}

/// Parses the table.
///
/// # Errors
/// An error if the text is not well-formed. The message contains the line number.
pub fn table() -> Result<Vec<Set>, String> {
    parse(TEXT)
}

fn parse(text: &str) -> Result<Vec<Set>, String> {
    let mut sets: Vec<Set> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        let complaint = |what: &str| format!("table.txt, line {}: {what}", number + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), sets.last_mut()) {
            ([], _) => {}
            (["set", name, options @ ..], _) => {
                sets.push(begin(name, options).map_err(|what| complaint(&what))?);
            }
            (["none", letters], Some(set)) => set.sharing[0] = row(letters)?,
            (["cookie", letters], Some(set)) => set.sharing[1] = row(letters)?,
            (["auth", letters], Some(set)) => set.sharing[2] = row(letters)?,
            (_, Some(set)) => {
                let field = line.split_once(':').ok_or_else(|| complaint("no field"))?;
                let (name, value) = (field.0.trim().to_owned(), field.1.trim().to_owned());
                set.fields.push((name, value));
            }
            _ => return Err(complaint("belongs to no set")),
        }
    }
    whole(&sets)?;
    Ok(sets)
}

fn begin(name: &str, options: &[&str]) -> Result<Set, String> {
    let mut set = Set {
        name: name.to_owned(),
        status: 200,
        content_type: Some("text/html".to_owned()),
        method: "GET",
        then: "GET",
        ..Set::default()
    };
    for option in options {
        let number = |text: &str| text.parse().map_err(|_| format!("{option}: no number"));
        match option.split_once('=') {
            None if *option == "interim" => set.interim = true,
            Some(("status", code)) => set.status = number(code)? as u16,
            Some(("life", seconds)) => set.life = number(seconds)?,
            Some(("type", "none")) => set.content_type = None,
            Some(("type", name)) => set.content_type = Some(name.to_owned()),
            Some(("method", "POST")) => (set.method, set.then) = ("POST", "POST"),
            Some(("then", "GET")) => set.then = "GET",
            _ => return Err(format!("{option}: no such option")),
        }
    }
    Ok(set)
}

fn row(letters: &str) -> Result<Vec<Sharing>, String> {
    let one = |letter| match letter {
        'y' => Ok(Sharing::Yes),
        'm' => Ok(Sharing::May),
        'f' => Ok(Sharing::NotTheField),
        'v' => Ok(Sharing::Validated),
        'n' => Ok(Sharing::No),
        other => Err(format!("table.txt: no letter {other} in {letters}")),
    };
    letters.chars().map(one).collect()
}

/// Checks that every set has a unique name, and a letter for each timing in each row.
fn whole(sets: &[Set]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for set in sets {
        if set.sharing.iter().any(|row| row.len() != TIMINGS.len()) {
            return Err(format!("table.txt: {}: a row is not whole", set.name));
        }
        if !names.insert(&set.name) {
            return Err(format!("table.txt: {}: twice", set.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_table_is_whole() {
        let sets = table().unwrap();
        assert!(sets.len() >= 60, "{}", sets.len());
        let set = sets.iter().find(|set| set.name == "vary-cookie").unwrap();
        assert_eq!(set.sharing(Timing::Late, Pair::Plain), Sharing::Yes);
        assert_eq!(set.sharing(Timing::Late, Pair::Cookie), Sharing::Validated);
        assert_eq!(set.sharing(Timing::Head, Pair::Authorization), Sharing::No);
        assert_eq!(set.fields[1], ("Vary".to_owned(), "Cookie".to_owned()));
    }

    #[test]
    fn errors_name_the_missing_part() {
        for text in [
            "set a\n none yyyyyy\n cookie yyyyyy\n",
            "set a\n none yyyyy\n cookie yyyyyy\n auth nnnnnn\n",
            "none yyyyyy\n",
            "set a status=x\n",
            "set a later\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
