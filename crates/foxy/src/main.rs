//! The `foxy` command.

fn main() {}
