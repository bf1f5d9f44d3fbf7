//! `foxy store`. The commands for stores of a running Foxy are in the module `stores`. `foxy store inspect`
//! and `foxy store verify` read a store that is not in use, without changing it.
//!
//! Exit codes: 0 if everything is right, 1 if something is damaged, 2 if there is no store to read.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use foxy_base::SystemClock;
use foxy_disk::{FileDisk, OpenOptions};
use foxy_store::{Inspection, SegmentReport, SegmentWord, Verification, inspect, verify};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::USAGE;
use super::args::{StoreArgs, StoreCommand};
use super::say::say;
use crate::config::human;

/// Runs the command.
pub(super) fn run(command: &StoreCommand) -> ExitCode {
    let done = match command {
        StoreCommand::Inspect(args) => inspected(args),
        StoreCommand::Verify(args) => verified(args),
        running => return super::stores::run(running),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("foxy: {problem}");
            ExitCode::from(USAGE)
        }
    }
}

fn open(path: &Path) -> Result<FileDisk, String> {
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    FileDisk::open(path, &options).map_err(|error| error.to_string())
}

fn inspected(args: &StoreArgs) -> Result<bool, String> {
    let disk = open(&args.path)?;
    let found = inspect(&disk).map_err(|error| error.to_string())?;
    let damaged = found.segments.iter().filter(|s| s.state.is_none()).count();
    if args.json {
        say!("{}", inspection_json(&found));
    } else {
        print_inspection(&found);
    }
    Ok(damaged == 0 && found.superblocks.iter().all(Result::is_ok))
}

fn print_inspection(found: &Inspection) {
    let (block, geometry) = (&found.superblock, &found.superblock.geometry);
    say!("{}", found.disk);
    say!(
        "uuid         {:?}, generation {}",
        block.uuid,
        block.generation
    );
    for (name, one) in ["A", "B"].iter().zip(&found.superblocks) {
        match one {
            Ok(one) => say!("superblock {name} generation {}", one.generation),
            Err(problem) => say!("superblock {name} {problem}"),
        }
    }
    say!(
        "geometry     {} segments of {}, clusters of {}, {} in all",
        geometry.segments,
        human(u64::from(geometry.segment_bytes)),
        human(u64::from(geometry.cluster_bytes)),
        human(geometry.total_bytes())
    );
    say!("removal log  {} entries count", found.removals);
    for (number, half) in found.journal.iter().enumerate() {
        match half {
            Some(half) => say!(
                "purges       half {number}: {} notes in {} blocks, newest block {}{}",
                half.notes.len(),
                half.blocks,
                half.newest.sequence,
                if half.holes { ", DAMAGED" } else { "" }
            ),
            None => say!("purges       half {number}: none"),
        }
    }
    say!();
    say!("SEGMENT      LIFE  STATE        USED   OBJECTS   LARGE  FRAGMENTS  REMOVALS");
    let mut unused = 0;
    for segment in &found.segments {
        if segment.state == Some(SegmentWord::Unused) {
            unused += 1;
        } else {
            print_segment(segment);
        }
    }
    if unused > 0 {
        say!("and {unused} that were never used");
    }
}

fn print_segment(segment: &SegmentReport) {
    let [objects, heads, fragments, tombstones, record_tombstones] = segment.entries;
    let told = segment.state == Some(SegmentWord::Sealed);
    let count = |n: u64| if told { n.to_string() } else { "-".to_owned() };
    say!(
        "{:>7} {:>9}  {:<8} {:>9} {:>9} {:>7} {:>10} {:>9}",
        segment.index,
        segment.sequence,
        segment.state.map_or("DAMAGED", SegmentWord::word),
        if told {
            human(segment.used_bytes)
        } else {
            "-".to_owned()
        },
        count(objects),
        count(heads),
        count(fragments),
        count(tombstones + record_tombstones)
    );
}

fn inspection_json(found: &Inspection) -> serde_json::Value {
    let geometry = &found.superblock.geometry;
    let segments = found.segments.iter().map(|s| {
        json!({
            "segment": s.index,
            "life": s.sequence,
            "state": s.state.map_or("damaged", SegmentWord::word),
            "used_bytes": s.used_bytes,
            "objects": s.entries[0],
            "heads": s.entries[1],
            "fragments": s.entries[2],
            "removals": s.entries[3] + s.entries[4],
        })
    });
    json!({
        "disk": found.disk,
        "uuid": format!("{:?}", found.superblock.uuid),
        "generation": found.superblock.generation,
        "superblocks": found.superblocks.each_ref().map(|s| match s {
            Ok(_) => "right".to_owned(),
            Err(problem) => problem.to_string(),
        }),
        "segment_bytes": geometry.segment_bytes,
        "cluster_bytes": geometry.cluster_bytes,
        "total_bytes": geometry.total_bytes(),
        "removals": found.removals,
        "purges": found.journal.each_ref().map(|h| h.as_ref().map(|h| h.notes.len())),
        "segments": segments.collect::<Vec<_>>(),
    })
}

fn verified(args: &StoreArgs) -> Result<bool, String> {
    let disk = Arc::new(open(&args.path)?);
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} segments, {elapsed} ({eta} left)")
    {
        bar.set_style(style);
    }
    let found = verify(disk, Arc::new(SystemClock::default()), |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let found = found.map_err(|error| error.to_string())?;
    if args.json {
        say!("{}", verification_json(&found));
    } else {
        print_verification(&found);
    }
    Ok(found.is_whole())
}

fn print_verification(found: &Verification) {
    say!("a restart would bring back");
    say!(
        "  objects           {:>12}, {} of bodies",
        found.objects,
        human(found.object_bytes)
    );
    say!("  fragments         {:>12} of large ones", found.fragments);
    say!("and leave out");
    say!("  superseded        {:>12} records", found.superseded);
    say!(
        "  purged            {:>12} objects not yet swept",
        found.purged
    );
    say!("damages ({} read)", human(found.read_bytes));
    for (name, count) in [
        ("records", found.damaged),
        ("dead records", found.damaged_dead),
        ("tables", found.damaged_tables),
        ("bytes in gaps", found.gap_bytes),
        ("failed reads", found.read_errors),
    ] {
        say!("  {name:<17} {count:>12}");
    }
    say!(
        "{}",
        if found.is_whole() {
            "every checksum is right"
        } else {
            "what is damaged is a miss, never wrong bytes; check the device if this grows"
        }
    );
}

fn verification_json(found: &Verification) -> serde_json::Value {
    json!({
        "whole": found.is_whole(),
        "objects": found.objects,
        "object_bytes": found.object_bytes,
        "fragments": found.fragments,
        "purged": found.purged,
        "superseded": found.superseded,
        "damaged": found.damaged,
        "damaged_dead": found.damaged_dead,
        "damaged_tables": found.damaged_tables,
        "gap_bytes": found.gap_bytes,
        "read_errors": found.read_errors,
        "read_bytes": found.read_bytes,
    })
}
