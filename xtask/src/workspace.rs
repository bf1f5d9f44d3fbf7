//! The folder of the workspace, its files, and calls of cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cargo_metadata::{Metadata, MetadataCommand};

/// The folder that contains the workspace manifest.
pub(crate) fn root() -> &'static Path {
    // The folder of xtask is a direct child of the root, wherever the clone is.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// A cargo command in the workspace root. It uses the cargo that started this program.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(args);
    command
}

/// Builds the programs that checks run: `foxy`, and the examples that print documents. Returns the folder of
/// the programs. The examples are in its subfolder `examples`. The build uses the same profile and the same
/// features as the tests, so a complete check compiles nothing twice. For this, it builds the whole
/// workspace: a package that is built alone has other features.
///
/// # Errors
/// Returned if the programs cannot be built.
pub(crate) fn programs() -> Result<PathBuf, String> {
    let mut build = cargo(&["build", "--quiet", "--workspace", "--profile", "test"]);
    build.args(["--bin", "foxy", "--example", "config-reference"]);
    build.args(["--example", "metrics-reference"]);
    succeed(&mut build, "checks need these programs")?;
    Ok(target_folder()?.join("debug"))
}

/// The two programs that a measurement needs.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    /// Path of the product, `foxy`.
    pub(crate) foxy: PathBuf,
    /// Path of the laboratory, `foxy-lab`: origin, loads, simulator.
    pub(crate) lab: PathBuf,
}

/// Returns release builds of both programs. If `foxy` is given, that program is used, and also a `foxy-lab`
/// in the same folder if there is one. The two programs are built separately, because in a common build the
/// product would get the features that the laboratory enables.
///
/// # Errors
/// Returned if a program cannot be built.
pub(crate) fn released(foxy: Option<&Path>) -> Result<Released, String> {
    let build = |package: &str| {
        let mut build = cargo(&["build", "--release", "--package", package]);
        succeed(&mut build, "the messages above name file and line")?;
        Ok::<_, String>(target_folder()?.join("release").join(package))
    };
    let foxy = match foxy {
        Some(path) => path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))?,
        None => build("foxy")?,
    };
    let beside = foxy.with_file_name("foxy-lab");
    // The folder may contain a `foxy-lab` of an earlier build of this workspace, which may be older than
    // its sources.
    let lab = match beside.is_file() && !foxy.starts_with(target_folder()?) {
        true => beside,
        false => build("foxy-lab")?,
    };
    Ok(Released { foxy, lab })
}

/// Returns cargo's metadata of the workspace, without its dependencies.
///
/// # Errors
/// Returned if cargo cannot read a manifest.
pub(crate) fn metadata() -> Result<Metadata, String> {
    let mut command = MetadataCommand::new();
    let told = command.no_deps().current_dir(root()).exec();
    told.map_err(|error| format!("cargo metadata: {error}"))
}

/// Returns cargo's target folder.
///
/// # Errors
/// As for [`metadata`].
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    Ok(metadata()?.target_directory.into_std_path_buf())
}

/// Runs a command and shows its output. If the command fails, returns an error that contains `advice`.
pub(crate) fn succeed(command: &mut Command, advice: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ({status}); {advice}", line(command))),
        Err(error) => Err(format!("{} did not start: {error}", line(command))),
    }
}

/// Returns the standard output of a command that must succeed. `help` describes how to install the program if
/// it is missing.
///
/// # Errors
/// Returned if the command does not start or fails. In the second case the error contains its standard error.
pub(crate) fn output(command: &mut Command, help: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .map_err(|error| format!("{program} did not start ({error}); {help}"))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    Err(format!("{program} failed ({status}): {}", text.trim()))
}

/// The command as a user would type it.
pub(crate) fn line(command: &Command) -> String {
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once("cargo".into())
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A text file of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the root, with forward slashes.
    pub(crate) path: String,
    /// Content of the file.
    pub(crate) text: String,
}

impl Source {
    /// True if the file's name ends in `.ext`.
    pub(crate) fn is(&self, ext: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| e == ext)
    }
}

/// Returns all Rust, Markdown, TOML, shell, HTML, YAML and service files, sorted by path.
///
/// # Errors
/// Returned if a folder or file cannot be read, or if a file is not UTF-8.
pub(crate) fn sources() -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    walk(root(), &mut paths).map_err(|e| format!("cannot list the workspace: {e}"))?;
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let skip = matches!(name.as_ref(), "target" | ".git" | "node_modules" | "corpus");
            if !skip {
                walk(&entry.path(), found)?;
            }
        } else if kind.is_file() && is_text(&name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let known = ["rs", "md", "toml", "sh", "html", "yml", "yaml", "service"];
    name == "run" || known.iter().any(|ext| name.ends_with(&format!(".{ext}")))
}

fn read(path: &Path) -> Result<Source, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let relative = path.strip_prefix(root()).unwrap_or(path);
    Ok(Source {
        path: relative.to_string_lossy().replace('\\', "/"),
        text,
    })
}
