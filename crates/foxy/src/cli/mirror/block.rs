//! Adds a text of Foxy to a settings file of a client, or removes the text from the file. This module does no
//! I/O.

use foxy_base::hash64;

use super::tools::FileSharing;

/// A text that Foxy writes into a settings file of a client.
pub(super) struct Block<'a> {
    pub(super) tool: &'a str,
    pub(super) sharing: &'a FileSharing,
    /// The text, which ends with a line feed.
    pub(super) text: String,
}

/// The wanted state of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum File {
    /// The file is unchanged.
    Stays,
    /// The file gets these contents.
    Becomes(String),
    /// The file is removed.
    Goes,
}

impl Block<'_> {
    /// Returns the file with this text. The text replaces the text that an earlier call wrote.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be changed.
    pub(super) fn put_into(&self, old: Option<&str>) -> Result<File, String> {
        let whole = self.whole();
        let others = match (old, self.sharing) {
            (None, _) => String::new(),
            (Some(old), FileSharing::Whole { .. }) if self.is_own(old) => String::new(),
            (Some(_), FileSharing::Whole { .. }) => {
                return Err("it has settings already".to_owned());
            }
            (Some(old), FileSharing::Block { key }) => {
                let others = self.without(old)?;
                let table: toml::Table = others.parse().map_err(|error: toml::de::Error| {
                    format!("it is not TOML: {}", error.message())
                })?;
                if table.contains_key(*key) {
                    return Err(format!("it has `{key}` already"));
                }
                others
            }
        };
        let gap = match others.as_str() {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let new = format!("{others}{gap}{whole}");
        Ok(match old == Some(&new) {
            true => File::Stays,
            false => File::Becomes(new),
        })
    }

    /// Returns the file without the text that an earlier call wrote.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be changed.
    pub(super) fn take_out_of(&self, old: Option<&str>) -> Result<File, String> {
        let Some(old) = old else {
            return Ok(File::Stays);
        };
        match self.sharing {
            FileSharing::Whole { .. } if self.is_own(old) => Ok(File::Goes),
            FileSharing::Whole { .. } => {
                Err("it was not written by `foxy mirror setup`, or changed since".to_owned())
            }
            FileSharing::Block { .. } => Ok(match self.without(old)? {
                rest if rest == old => File::Stays,
                rest if rest.trim().is_empty() => File::Goes,
                rest => File::Becomes(rest),
            }),
        }
    }

    /// True if an earlier call wrote the complete file and the user has not changed it since. A file with
    /// another URL is recognised as such a file only if the format has comments.
    fn is_own(&self, old: &str) -> bool {
        let first = old.split_inclusive('\n').next().unwrap_or_default();
        let text = &old[first.len()..];
        old == self.whole() || !text.is_empty() && first == self.title(text)
    }

    /// Returns the contents of a file without the block.
    fn without(&self, old: &str) -> Result<String, String> {
        let [begin, end] = self.marks();
        let Some(from) = old.find(&begin) else {
            return Ok(old.to_owned());
        };
        let to = old[from..].find(&end).map(|at| from + at + end.len());
        let Some(to) = to else {
            return Err(format!(
                "it has the line `{}` and not `{}`",
                begin.trim_end(),
                end.trim_end()
            ));
        };
        let (before, after) = (&old[..from], &old[to..]);
        // The empty line before the block belongs to the block.
        let before = match before.strip_suffix("\n\n") {
            Some(rest) => format!("{rest}\n"),
            None => before.to_owned(),
        };
        Ok(before + after)
    }

    /// Returns the text as it is written to the file: a block between its marks, or a complete file after its
    /// title.
    fn whole(&self) -> String {
        let [begin, end] = self.marks();
        match self.sharing {
            FileSharing::Block { .. } => format!("{begin}{}{end}", self.text),
            FileSharing::Whole { .. } => format!("{}{}", self.title(&self.text), self.text),
        }
    }

    /// Returns the first line of a complete file. It contains a checksum of the other lines. If the checksum
    /// does not match, the user has changed the file, and the file belongs to the user.
    fn title(&self, text: &str) -> String {
        let [open, close] = self.comment();
        let (tool, sum) = (self.tool, hash64(0, text.as_bytes()));
        match open {
            "" => String::new(),
            _ => format!("{open} Written by `foxy mirror setup {tool}`, sum {sum:016x}{close}\n"),
        }
    }

    const fn comment(&self) -> [&'static str; 2] {
        match self.sharing {
            FileSharing::Block { .. } => ["#", ""],
            FileSharing::Whole { comment } => *comment,
        }
    }

    /// Returns the lines before and after a block.
    fn marks(&self) -> [String; 2] {
        let ([open, close], tool) = (self.comment(), self.tool);
        ["Written by", "End of"]
            .map(|word| format!("{open} {word} `foxy mirror setup {tool}`{close}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: FileSharing = FileSharing::Block { key: "source" };

    fn block<'a>(sharing: &'a FileSharing, text: &str) -> Block<'a> {
        Block {
            tool: "cargo",
            sharing,
            text: text.to_owned(),
        }
    }

    fn becomes(file: Result<File, String>) -> String {
        match file {
            Ok(File::Becomes(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_block_goes_in_and_out_of_any_file() {
        let [one, two] = ["[source.a]\n", "[source.b]\nx = 1\n"].map(|text| block(&BLOCK, text));
        for old in [
            "",
            "\n",
            "[net]\nretry = 3\n",
            "[net]\nretry = 3",
            "# a comment\n\n",
        ] {
            let first = becomes(one.put_into(Some(old)));
            assert!(first.parse::<toml::Table>().unwrap().contains_key("source"));
            assert_eq!(one.put_into(Some(&first)), Ok(File::Stays));
            // A second URL replaces the first.
            let second = becomes(two.put_into(Some(&first)));
            assert!(!second.contains("source.a") && second.contains("source.b"));
            match two.take_out_of(Some(&second)) {
                Ok(File::Becomes(rest)) => assert_eq!(rest.trim_end(), old.trim_end()),
                Ok(File::Goes) => assert!(old.trim().is_empty()),
                other => panic!("{other:?}"),
            }
            assert_eq!(one.take_out_of(Some(old)), Ok(File::Stays));
        }
        let new = becomes(one.put_into(None));
        assert_eq!(one.take_out_of(Some(&new)), Ok(File::Goes));
        assert_eq!(one.take_out_of(None), Ok(File::Stays));
    }

    #[test]
    fn settings_of_the_user_stay() {
        let own = block(&BLOCK, "[source.a]\n");
        let refused = |old: &str| own.put_into(Some(old)).unwrap_err();
        assert_eq!(refused("[source.x]\n"), "it has `source` already");
        assert!(refused("source = [").starts_with("it is not TOML: "));
        let cut = becomes(own.put_into(None)).replace("# End", "# end");
        assert!(refused(&cut).contains("and not"), "{cut}");
        assert!(own.take_out_of(Some(&cut)).is_err());
    }

    #[test]
    fn a_whole_file_is_foxys_alone() {
        let commented = FileSharing::Whole {
            comment: ["//", ""],
        };
        let bare = FileSharing::Whole { comment: ["", ""] };
        for sharing in [&commented, &bare] {
            let own = block(sharing, "{}\n");
            let new = becomes(own.put_into(None));
            assert_eq!(own.put_into(Some(&new)), Ok(File::Stays));
            assert_eq!(own.take_out_of(Some(&new)), Ok(File::Goes));
            assert!(own.put_into(Some("{ \"debug\": true }")).is_err());
            assert!(own.take_out_of(Some("{ \"debug\": true }")).is_err());
        }
        // The comment in the first line shows that Foxy wrote the file. So Foxy may replace the file even if
        // it contains another URL.
        let old = becomes(block(&commented, "old\n").put_into(None));
        assert!(becomes(block(&commented, "new\n").put_into(Some(&old))).ends_with("\nnew\n"));
        let old = becomes(block(&bare, "old\n").put_into(None));
        assert!(block(&bare, "new\n").put_into(Some(&old)).is_err());
        // Text that the user added stays.
        for sharing in [&commented, &bare] {
            let own = block(sharing, "{}\n");
            let changed = becomes(own.put_into(None)) + "mine\n";
            assert!(own.put_into(Some(&changed)).is_err());
            assert!(own.take_out_of(Some(&changed)).is_err());
        }
    }
}
