//! Prints docs/config.md; `cargo xtask generate` writes it.

fn main() {
    print!("{}", foxy::config::reference());
}
