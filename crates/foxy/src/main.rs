//! The `foxy` command; everything is in the library.

/// Fewer cycles per miss than the system's allocator.
#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

fn main() -> std::process::ExitCode {
    foxy::cli::main()
}
