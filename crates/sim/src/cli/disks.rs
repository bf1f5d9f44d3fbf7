//! `disks`: the same operations through every layout on real file systems of this machine.
//!
//! For each file system an image file is made, given a file system, mounted on a loop device, used
//! and taken away again, also when a run fails. That takes root and the tools of the system.

mod memory_limit;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use foxy_base::ByteSize;

use super::Form;
use crate::{
    layout::LayoutSpec,
    levels::LevelsConfig,
    report::{Align, Table},
    run::{Backend, OpStream, RunConfig, RunError, RunResult, run_ops},
};
use memory_limit::MemoryLimit;

/// Arguments of `disks`.
#[derive(Clone, Debug, clap::Args)]
pub struct DisksArgs {
    /// File systems to make: ext4, xfs
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs")]
    fs: Vec<FsName>,
    /// Folder for the images, on the disk that is to be measured; needs three times --disk
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Objects on disk, in bytes
    #[arg(long, default_value = "1GiB")]
    disk: ByteSize,
    /// Memory before the disk
    #[arg(long, default_value = "64MiB")]
    ram: ByteSize,
    /// Memory of this process, its part of the page cache included, so that disks are measured
    /// and not the page cache (a control group, which takes root); 0: no limit
    #[arg(long, default_value = "256MiB")]
    memory: ByteSize,
    /// Disk operations of the generated DEC stream
    #[arg(long, default_value_t = 200_000)]
    ops: u64,
    /// Layouts
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "squid,multiple-dirs,buddy,stream,stream-packetizer,lazy-reads,loc:128,lazy-reads-loc:128"
    )]
    layout: Vec<LayoutSpec>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FsName {
    Ext4,
    Xfs,
}

impl FsName {
    const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

#[derive(serde::Serialize)]
struct Row {
    fs: &'static str,
    result: RunResult,
}

impl DisksArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        let config = |layout, dir: Option<PathBuf>| RunConfig {
            levels: LevelsConfig::lru(self.ram.bytes(), self.disk.bytes()),
            ops: self.ops,
            backend: Backend {
                dir,
                ..Backend::default()
            },
            ..RunConfig::published(layout)
        };
        let ops = OpStream::make(&config(LayoutSpec::Stream, None))?;
        let _limit = match self.memory.bytes() {
            0 => None,
            bytes => Some(MemoryLimit::new(bytes)?),
        };
        let mut rows = Vec::new();
        for fs in &self.fs {
            let mounted = Mounted::new(*fs, &self.dir, 3 * self.disk.bytes())?;
            for layout in &self.layout {
                let config = config(*layout, Some(mounted.point.clone()));
                let result = run_ops(&config, &ops)?;
                eprintln!("{} {layout}: {:.0}/s", fs.name(), result.ops_per_s);
                rows.push(Row {
                    fs: fs.name(),
                    result,
                });
            }
        }
        self.form.print(&table(&rows), &rows)
    }
}

/// A table with the multiple over the first layout, which has a file for each object.
fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("file system", Align::Left),
        ("layout", Align::Left),
        ("ops/s", Align::Right),
        ("times the first", Align::Right),
        ("MB/s", Align::Right),
        ("device I/Os per op", Align::Right),
        ("device bytes per byte", Align::Right),
        ("CPU us per op", Align::Right),
    ]);
    for row in rows {
        let r = &row.result;
        let first = rows.iter().find(|other| other.fs == row.fs);
        let first = first.map_or(r.ops_per_s, |f| f.result.ops_per_s);
        table.row([
            row.fs.to_owned(),
            r.layout.clone(),
            format!("{:.0}", r.ops_per_s),
            format!("{:.1}", r.ops_per_s / first),
            format!("{:.1}", r.mb_per_s),
            format!("{:.2}", r.device_ios_per_op),
            format!("{:.2}", r.device_bytes_per_byte),
            format!("{:.0}", r.cpu_us_per_op),
        ]);
    }
    table
}

/// A file system in an image file; unmounted and removed when dropped.
struct Mounted {
    image: PathBuf,
    /// Its loop device; empty: none yet.
    device: String,
    point: PathBuf,
}

impl Mounted {
    fn new(fs: FsName, dir: &Path, bytes: u64) -> Result<Self, RunError> {
        let name = format!("foxy-disks-{}-{}", fs.name(), std::process::id());
        let mut mounted = Self {
            device: String::new(),
            image: dir.join(format!("{name}.img")),
            point: dir.join(&name),
        };
        let output = |path: &Path, source| RunError::Output {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir(&mounted.point).map_err(|e| output(&mounted.point, e))?;
        let file = std::fs::File::create(&mounted.image).map_err(|e| output(&mounted.image, e))?;
        // Below 300 MB XFS refuses.
        let bytes = bytes.max(512 << 20);
        file.set_len(bytes).map_err(|e| output(&mounted.image, e))?;
        let make = format!("mkfs.{}", fs.name());
        call(Command::new(make).arg("-q").arg(&mounted.image))?;
        // Around the page cache of the system that holds the image, or that would be measured.
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show", "--direct-io=on"]);
        mounted.device = call(attach.arg(&mounted.image))?.trim().to_owned();
        let mut mount = Command::new("mount");
        call(mount.arg(&mounted.device).arg(&mounted.point))?;
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Nothing is mounted if making it failed: then there is nothing to say either.
        let _ = Command::new("umount").arg(&self.point).output();
        if !self.device.is_empty() {
            let _ = Command::new("losetup").args(["-d", &self.device]).output();
        }
        let _ = std::fs::remove_dir(&self.point);
        let _ = std::fs::remove_file(&self.image);
    }
}

/// What a command of the system prints.
fn call(command: &mut Command) -> Result<String, RunError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| {
        RunError::Config(format!(
            "`{program}` failed: {why}; making and mounting file systems takes root and the tools \
             of that file system (e2fsprogs, xfsprogs). Without them make and mount one yourself \
             and give its folder to `foxy sim sweep --dir`"
        ))
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(
        text.lines().next().unwrap_or("no message").to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_made_is_said_with_the_way_round_it() {
        let error = call(&mut Command::new("mkfs.none-such"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mkfs.none-such") && error.contains("--dir"),
            "{error}"
        );
        let error = call(&mut Command::new("false")).unwrap_err().to_string();
        assert!(error.contains("root"), "{error}");
    }

    #[test]
    fn the_first_layout_is_the_measure() {
        let row = |fs, ops_per_s| {
            let result = RunResult {
                ops_per_s,
                ..RunResult::default()
            };
            Row { fs, result }
        };
        let text = table(&[row("ext4", 100.0), row("ext4", 250.0), row("xfs", 50.0)]).csv();
        let times: Vec<_> = text.lines().skip(1).map(|l| l.split(',').nth(3)).collect();
        assert_eq!(times, [Some("1.0"), Some("2.5"), Some("1.0")]);
    }
}
