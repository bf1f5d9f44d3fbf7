//! The house rule about links: each link between documents must have a target.

use crate::workspace::{Source, root};

/// Every relative link in a Markdown file must lead to an existing file, and to an existing heading if the
/// link names a heading.
pub(super) fn relative_links(file: &Source) -> Vec<String> {
    if !file.is("md") {
        return Vec::new();
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    targets(&file.text)
        .into_iter()
        .filter_map(|target| broken(folder, file, &target))
        .collect()
}

/// Targets in `[...](here)`, without code blocks.
pub(super) fn targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                targets.push(target.to_owned());
            }
        }
    }
    targets
}

fn broken(folder: &str, file: &Source, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let text = if path.is_empty() {
        Some(file.text.clone())
    } else {
        let full = root().join(folder).join(path);
        if !full.exists() {
            return Some(format!("link to `{target}`: there is no such file"));
        }
        std::fs::read_to_string(full).ok()
    };
    let found = |text: &str| {
        text.lines()
            .any(|line| line.starts_with('#') && anchor(line) == heading)
    };
    match text {
        Some(text) if !heading.is_empty() && !found(&text) => {
            Some(format!("link to `{target}`: that file has no such heading"))
        }
        _ => None,
    }
}

/// The anchor that Markdown renderers create for a heading.
pub(super) fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
