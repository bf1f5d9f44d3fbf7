//! The program that is packed: a stripped release build, and the libraries that it needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DistArgs, at, read};
use crate::workspace::{cargo, root, succeed, target_folder};

/// Greatest size of the stripped program, in bytes.
const MAX: usize = 16 << 20;

/// A stripped program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) bytes: Vec<u8>,
    /// Path of the program with symbols.
    pub(super) path: PathBuf,
}

impl Program {
    /// Builds the program, or takes the program that was given, and strips it.
    ///
    /// # Errors
    /// Returned if the program cannot be built or stripped.
    pub(super) fn of(args: &DistArgs) -> Result<Self, String> {
        let path = match &args.program {
            Some(path) => path.canonicalize().map_err(|error| at(path, &error))?,
            None => build()?,
        };
        let bytes = stripped(&path, &args.folder()?)?;
        Ok(Self { bytes, path })
    }

    /// As [`Program::of`], but a program that is too large for a package is an error.
    ///
    /// # Errors
    /// Returned if the program cannot be built or stripped, or if it is too large.
    pub(super) fn to_pack(args: &DistArgs) -> Result<Self, String> {
        let program = Self::of(args)?;
        match program.bytes.len() {
            bytes if bytes > MAX => Err(format!(
                "the program has {bytes} bytes, {MAX} are allowed; `cargo xtask dist sizes` shows what takes the room"
            )),
            _ => Ok(program),
        }
    }

    /// The oldest version of the C library with all functions that the program uses.
    pub(super) fn glibc(&self) -> String {
        glibc(&self.bytes)
    }

    /// Shared libraries of this machine that the program needs, by the path that the program's loader uses.
    ///
    /// # Errors
    /// Returned if `ldd` or a library is missing.
    pub(super) fn libraries(&self) -> Result<Vec<PathBuf>, String> {
        let output = Command::new("ldd").arg(&self.path).output();
        let output = output.map_err(|error| format!("ldd: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Vec<_> = text.lines().filter_map(library).collect();
        match found.is_empty() {
            false => Ok(found),
            true => Err(format!("ldd {}: {text}", self.path.display())),
        }
    }
}

/// Parses the path in `libm.so.6 => /lib/libm.so.6 (0x7f00)` or `/lib64/ld-linux.so.2 (0x7f00)`.
fn library(line: &str) -> Option<PathBuf> {
    let place = line.split(" => ").last()?.trim();
    let path = place.split(' ').next()?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// Builds the program in a separate folder. The program contains no path of this machine, so it does not
/// depend on the folder of the build.
fn build() -> Result<PathBuf, String> {
    let folder = target_folder()?.join("packaged");
    let home = std::env::var("CARGO_HOME").ok().map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let mut flags = vec![format!("--remap-path-prefix={}=.", root().display())];
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    let mut build = cargo(&[
        "build",
        "--profile",
        "packaged",
        "--locked",
        "--package",
        "foxy",
    ]);
    build
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    succeed(&mut build, "the messages above name file and line")?;
    Ok(folder.join("packaged").join("foxy"))
}

fn stripped(program: &Path, folder: &Path) -> Result<Vec<u8>, String> {
    let out = folder.join("foxy.stripped");
    let mut strip = Command::new("strip");
    strip.args(["--strip-all", "-o"]).arg(&out).arg(program);
    let status = strip
        .status()
        .map_err(|error| format!("strip: {error}; it is in the Debian package binutils"))?;
    if !status.success() {
        return Err(format!("strip {}: {status}", program.display()));
    }
    let bytes = read(&out)?;
    std::fs::remove_file(&out).map_err(|error| at(&out, &error))?;
    Ok(bytes)
}

/// The greatest version `GLIBC_2.N` that the program requires.
fn glibc(program: &[u8]) -> String {
    let tag = b"GLIBC_2.";
    let minor = |from: usize| {
        let digits = program[from..].iter().take_while(|b| b.is_ascii_digit());
        let text: String = digits.take(3).map(|b| char::from(*b)).collect();
        text.parse::<u32>().ok()
    };
    let places = program.windows(tag.len()).enumerate();
    let tagged = places.filter(|(_, window)| window == tag);
    let newest = tagged.filter_map(|(at, _)| minor(at + tag.len())).max();
    format!("2.{}", newest.unwrap_or(17))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_counts() {
        assert_eq!(
            glibc(b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_2."),
            "2.34"
        );
    }

    #[test]
    fn libraries_have_paths() {
        let path = |line| library(line).map(|path| path.display().to_string());
        assert_eq!(
            path("\tlibm.so.6 => /lib/libm.so.6 (0x7f)").unwrap(),
            "/lib/libm.so.6"
        );
        assert_eq!(path("\t/lib64/ld.so.2 (0x7f)").unwrap(), "/lib64/ld.so.2");
        assert_eq!(path("\tlinux-vdso.so.1 (0x7f)"), None);
    }
}
