//! Invariants of all configurations, for fuzzers and tests.

use std::path::{Path, PathBuf};

use super::{Config, Machine, parse};

/// A machine with fixed properties.
#[derive(Debug)]
struct Small;

impl Machine for Small {
    fn memory(&self) -> u64 {
        8 << 30
    }
    fn cores(&self) -> usize {
        2
    }
    fn free_space(&self, _: &Path) -> Option<u64> {
        Some(50 << 30)
    }
    fn existing(&self, _: &Path) -> Option<u64> {
        None
    }
    fn state_folder(&self) -> PathBuf {
        PathBuf::from("/cache/foxy")
    }
}

/// Reads a configuration file. Returns true if Foxy would start with it.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn configuration(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let built = parse(text, "foxy.toml").and_then(|raw| Config::build(&raw, &Small));
    match built {
        Ok(config) => {
            assert!(config.workers > 0 && config.memory > 0);
            assert!(!config.plan(&Small).is_empty());
            true
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for problem in problems {
                assert!(!problem.to_string().is_empty());
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SETTINGS;
    use super::*;
    use foxy_base::Rng;

    const VALUES: [&str; 18] = [
        "true",
        "1",
        "-1",
        "\"\"",
        "\"off\"",
        "\"1MiB\"",
        "\"99999999999GiB\"",
        "\"100%\"",
        "\"5s\"",
        "\"*:80\"",
        "[]",
        "[\"*\"]",
        "[1]",
        "\"http://a\"",
        "\"/p/*\"",
        "{a = 1}",
        "\"[::1]:1\"",
        "1.5",
    ];

    #[test]
    fn any_file_is_read_or_refused_with_reasons() {
        let mut started = 0u32;
        for seed in 0..3000 {
            let mut rng = Rng::new(seed);
            let mut text = String::new();
            for _ in 0..1 + rng.below(4) {
                let setting = &SETTINGS[rng.below(SETTINGS.len() as u64) as usize];
                let value = match rng.below(3) {
                    0 => format!("{:?}", setting.default.as_deref().unwrap_or("x")),
                    _ => VALUES[rng.below(VALUES.len() as u64) as usize].to_owned(),
                };
                let (open, close) = match setting.section {
                    "store" | "site" | "rule" => ("[[", "]]"),
                    _ => ("[", "]"),
                };
                if !setting.section.is_empty() {
                    text += &format!("{open}{}{close}\n", setting.section);
                }
                text += &format!("{} = {value}\n", setting.name);
            }
            if rng.chance(0.2) {
                let at = rng.below(text.len() as u64) as usize;
                text.replace_range(at..at, "\"");
            }
            let case = std::panic::catch_unwind(|| configuration(text.as_bytes()));
            started += u32::from(case.unwrap_or_else(|_| panic!("seed {seed}: {text}")));
        }
        assert!((100..2900).contains(&started), "{started} started");
    }
}
