//! `foxy-bench`: the load tools as a program of their own.
fn main() {}
