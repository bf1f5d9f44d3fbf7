//! The `foxy` command. All code is in the library.

/// This allocator needs fewer cycles per miss than the system's allocator.
#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

fn main() -> std::process::ExitCode {
    foxy::cli::main()
}
