//! The rules about versions in a `[[mirror]]`: the minimum age of a version (cooldown), and blocked versions.

use foxy_proxy::mirror::{Listing, OwnNames, Preset, Selector, VersionRules};

use super::kind::Value;
use super::problem::Problem;
use super::values::Values;

/// Largest number of entries in `block` and `block_file` together.
const ENTRIES_MAX: usize = 10_000;

/// Reads the rules about versions; returns `None` if there are none.
pub(super) fn read(preset: &Preset, values: &mut Values<'_>, place: &str) -> Option<VersionRules> {
    let given = ["min_age", "min_age_except", "block", "block_file"];
    let given = given.iter().find(|name| values.given(name).is_some())?;
    let Some(listing) = preset.listing() else {
        let text = format!(
            "mirror.{given} is for the presets npm, pypi and cargo; leave it out with `{}`",
            preset.name
        );
        values.problem(Problem::conflict(place, text));
        return None;
    };
    let min_age = match values.given("min_age") {
        Some(Value::Duration(Some(time))) => u32::try_from(time.as_secs()).ok(),
        _ => None,
    };
    let except = values.texts_or_none("min_age_except");
    if min_age.is_none() && !except.is_empty() {
        let text = "mirror.min_age_except says nothing without `min_age`".to_owned();
        values.problem(Problem::conflict(place, text));
    }
    let hides_undated = values.text("unknown_age") == "hide";
    let mut block = selectors(listing, "block", values, place);
    if let Some(Value::Text(path)) = values.given("block_file").cloned() {
        match from_file(listing, &path) {
            Ok(entries) => block.extend(entries),
            Err(error) => {
                let text = format!("mirror.block_file = \"{path}\": {error}");
                values.problem(Problem::conflict(place, text));
            }
        }
    }
    if block.len() > ENTRIES_MAX {
        let text = format!("mirror.block has more than {ENTRIES_MAX} entries");
        values.problem(Problem::conflict(place, text));
    }
    let rules = VersionRules {
        listing,
        min_age,
        except: selectors(listing, "min_age_except", values, place),
        hides_undated,
        block,
    };
    // A `block_file` without entries is allowed, because an operator may add entries later. If nothing is
    // blocked and there is no minimum age, there are no rules.
    (rules.min_age.is_some() || !rules.block.is_empty()).then_some(rules)
}

/// Returns the packages that only this mirror has, if `names` is given. `private` is true if the section
/// names an upstream.
pub(super) fn own_names(
    preset: &Preset,
    private: bool,
    values: &mut Values<'_>,
    place: &str,
) -> Option<OwnNames> {
    values.given("names")?;
    // A cargo project names the registry of each crate in its own manifest, so the setting would be of no use
    // for cargo.
    let listing = preset.listing();
    let Some(listing) = listing.filter(|listing| *listing != Listing::Cargo) else {
        let text = format!(
            "mirror.names is for the presets npm and pypi; leave it out with `{}`",
            preset.name
        );
        values.problem(Problem::conflict(place, text));
        return None;
    };
    if !private {
        let text = "mirror.names is for a private registry; give its `upstream`".to_owned();
        values.problem(Problem::conflict(place, text));
    }
    match OwnNames::new(listing, selectors(listing, "names", values, place)) {
        Ok(names) => Some(names),
        Err(entry) => {
            let text = format!("mirror.names = \"{entry}\": write the name without a version");
            values.problem(Problem::conflict(place, text));
            None
        }
    }
}

fn selectors(listing: Listing, name: &str, values: &mut Values<'_>, place: &str) -> Vec<Selector> {
    let mut read = Vec::new();
    for text in values.texts_or_none(name) {
        match Selector::read(listing, &text) {
            Ok(entry) => read.push(entry),
            Err(error) => {
                let text = format!("mirror.{name} = \"{text}\": {error}");
                values.problem(Problem::conflict(place, text));
            }
        }
    }
    read
}

/// Reads the entries of a file, one entry per line.
fn from_file(listing: Listing, path: &str) -> Result<Vec<Selector>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut read = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if !entry.is_empty() {
            let entry = Selector::read(listing, entry);
            read.push(entry.map_err(|error| format!("line {}: {error}", number + 1))?);
        }
    }
    Ok(read)
}

/// Describes the rules in a few words.
pub(super) fn shown(rules: &VersionRules) -> String {
    let mut words = Vec::new();
    if let Some(seconds) = rules.min_age {
        let unknown = match rules.hides_undated {
            true => "hidden",
            false => "shown",
        };
        words.push(format!(
            "versions younger than {seconds} s are hidden ({} exceptions; unknown age: {unknown})",
            rules.except.len()
        ));
    }
    if !rules.block.is_empty() {
        words.push(format!("{} entries are blocked", rules.block.len()));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::tests::build;

    fn rules(text: &str) -> Result<foxy_proxy::mirror::VersionRules, Vec<String>> {
        let config = build(&format!("[[mirror]]\npreset = \"npm\"\n{text}"))?;
        let mirrors = config.proxy.mirrors.as_ref().unwrap();
        Ok(mirrors.sites[0].mirror.rules().unwrap().clone())
    }

    #[test]
    fn rules_are_those_of_the_section_and_of_its_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(
            file,
            "# found in May\nevent-stream@3.3.6   # stealer\n\n@evil/*"
        )
        .unwrap();
        let path = file.path().display().to_string();
        let read = rules(&format!(
            "min_age = \"3d\"\nmin_age_except = [\"@own/*\"]\nblock = [\"left-pad@1.3.0\"]\nblock_file = \"{path}\"\n"
        ));
        let read = read.unwrap();
        assert_eq!((read.min_age, read.hides_undated), (Some(259_200), true));
        assert_eq!((read.except.len(), read.block.len()), (1, 3));
        assert_eq!(
            super::shown(&read),
            "versions younger than 259200 s are hidden (1 exceptions; unknown age: hidden); 3 entries are blocked"
        );
        let open = rules("min_age = \"1h\"\nunknown_age = \"show\"\n").unwrap();
        assert!(!open.hides_undated);
        writeln!(file, "a b").unwrap();
        let wrong = rules(&format!("block_file = \"{path}\"\n")).unwrap_err();
        assert!(wrong[0].contains("line 5"), "{wrong:?}");
    }

    #[test]
    fn no_entry_is_no_rule() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        let text = format!("[[mirror]]\npreset = \"npm\"\nblock_file = \"{path}\"\n");
        let config = build(&text).unwrap();
        let mirrors = config.proxy.mirrors.as_ref().unwrap();
        assert!(mirrors.sites[0].mirror.rules().is_none());
    }

    #[test]
    fn what_cannot_work_is_named() {
        for (text, part) in [
            ("block = [\"left-pad@^1\"]\n", "`^1` is no exact version"),
            ("block = [\"@scope\"]\n", "no name of a package"),
            ("block_file = \"/nowhere/list\"\n", "mirror.block_file"),
            ("min_age_except = [\"a\"]\n", "without `min_age`"),
            ("min_age = \"2s\"\n", "mirror.min_age"),
        ] {
            let said = rules(text).unwrap_err();
            assert!(
                said.iter().any(|said| said.contains(part)),
                "{text}: {said:?}"
            );
        }
        let said = build("[[mirror]]\npreset = \"apt\"\nmin_age = \"3d\"\n").unwrap_err();
        assert!(said[0].contains("npm, pypi and cargo"), "{said:?}");
    }
}
