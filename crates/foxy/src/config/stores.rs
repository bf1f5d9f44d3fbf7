//! The stores: their paths and sizes. This includes a store that is added while Foxy runs.

use std::path::PathBuf;

use super::build::{StoreConfig, share};
use super::kind::Value;
use super::machine::Machine;
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;

/// Largest size of the default store, in bytes.
const DEFAULT_STORE_MAX: u64 = 10 << 30;

/// Returns the configured stores, or the default store.
pub(super) fn all(
    sections: &[Section],
    machine: &dyn Machine,
    problems: &mut Vec<Problem>,
) -> Vec<StoreConfig> {
    if sections.is_empty() {
        return store(&Section::new(), machine, problems)
            .into_iter()
            .collect();
    }
    sections
        .iter()
        .filter_map(|section| store(section, machine, problems))
        .collect()
}

/// Reads one store; returns `None` for the path `off`.
fn store(
    section: &Section,
    machine: &dyn Machine,
    problems: &mut Vec<Problem>,
) -> Option<StoreConfig> {
    use foxy_store::ReadMode;
    let mut values = Values::read("store", Some(section), problems);
    let reads = match values.text("reads").as_str() {
        "sorted" => ReadMode::Sorted,
        "direct" => ReadMode::Direct,
        _ => ReadMode::Auto,
    };
    let path = match values.given("path") {
        Some(Value::Text(path)) if path == "off" => return None,
        Some(Value::Text(path)) => PathBuf::from(path),
        _ => machine.state_folder().join("store"),
    };
    let existing = machine.existing(&path).unwrap_or(0);
    let free = machine.free_space(&path).unwrap_or(0);
    let size = match values.given("size") {
        Some(Value::Size(bytes)) => *bytes,
        Some(Value::Share(percent)) if is_device(&path) => share(*percent, existing),
        Some(Value::Share(percent)) => share(*percent, free.saturating_add(existing)),
        _ if existing > 0 => existing,
        _ => (free / 10).min(DEFAULT_STORE_MAX),
    };
    let size_given = values.given("size").is_some();
    Some(StoreConfig {
        path,
        named: values.given("path").is_some(),
        size,
        size_given,
        reads,
    })
}

/// Reads a store that is added while Foxy runs, in the same way as in a configuration.
///
/// # Errors
/// Returns the mistake in the path or the size.
pub(crate) fn one_store(path: &str, size: Option<&str>) -> Result<StoreConfig, String> {
    let setting = |text: &str, place: &str| super::RawSetting {
        texts: vec![text.to_owned()],
        list: false,
        place: place.to_owned(),
        hidden: false,
    };
    let mut section = Section::from([("path".to_owned(), setting(path, "path"))]);
    if let Some(size) = size {
        section.insert("size".to_owned(), setting(size, "size"));
    }
    let mut problems = Vec::new();
    let config = store(&section, &super::ThisMachine, &mut problems);
    match (config, problems.first()) {
        (Some(config), None) => Ok(config),
        (_, Some(problem)) => Err(problem.to_string()),
        (None, None) => Err("`off` is no store".to_owned()),
    }
}

fn is_device(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}
