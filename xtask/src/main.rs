//! Checks and benches of the workspace.

fn main() {}
