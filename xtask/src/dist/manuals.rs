//! Manual pages and shell completions, generated from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use foxy::cli::Cli;

use super::archive::{Tree, gzip};
use super::{VERSION, at};

/// Writes the pages and completions into a folder, in the same form as in the package.
pub(super) fn write(folder: &Path) -> Result<(), String> {
    let mut tree = Tree::default();
    add(&mut tree)?;
    for (path, bytes) in tree.files() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let file = folder.join(match path.contains("bash-completion") {
            true => "foxy.bash",
            false => name,
        });
        std::fs::write(&file, bytes).map_err(|error| at(&file, &error))?;
        println!("   {}", file.display());
    }
    Ok(())
}

/// Adds all pages and completions at the paths where a Debian system looks for them.
pub(super) fn add(tree: &mut Tree) -> Result<(), String> {
    let mut command = command();
    command.build();
    pages(&command, tree)?;
    let shells = [
        (Shell::Bash, "usr/share/bash-completion/completions/foxy"),
        (Shell::Zsh, "usr/share/zsh/vendor-completions/_foxy"),
        (Shell::Fish, "usr/share/fish/vendor_completions.d/foxy.fish"),
    ];
    for (shell, path) in shells {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut self::command(), "foxy", &mut text);
        tree.file(path, 0o644, text);
    }
    Ok(())
}

fn command() -> Command {
    Cli::command().version(VERSION)
}

/// Adds the page of a command and the pages of its subcommands, such as `foxy-store-add(1)`.
fn pages(command: &Command, tree: &mut Tree) -> Result<(), String> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("foxy {VERSION}"))
        .manual("Foxy");
    let mut text = Vec::new();
    man.render(&mut text)
        .and_then(|()| gzip(&text))
        .map(|packed| tree.file(&format!("usr/share/man/man1/{name}.1.gz"), 0o644, packed))
        .map_err(|error| format!("page {name}: {error}"))?;
    let below = command.get_subcommands();
    below
        .filter(|command| command.get_name() != "help")
        .try_for_each(|command| pages(command, tree))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_command_has_a_page_and_a_completion() {
        let mut tree = Tree::default();
        add(&mut tree).unwrap();
        let text = |wanted: &str| {
            let (_, bytes) = tree
                .files()
                .find(|(path, _)| path.ends_with(wanted))
                .unwrap();
            let mut text = String::new();
            match wanted.ends_with(".gz") {
                true => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text),
                false => (&bytes[..]).read_to_string(&mut text),
            }
            .unwrap();
            text
        };
        assert!(text("man1/foxy.1.gz").contains("Exit codes"));
        assert!(text("man1/foxy-purge.1.gz").contains("\\-\\-regex"));
        assert!(text("man1/foxy-store-grow.1.gz").contains("foxy store grow"));
        for place in ["completions/foxy", "_foxy", "foxy.fish"] {
            assert!(text(place).contains("purge"), "{place}");
        }
    }
}
