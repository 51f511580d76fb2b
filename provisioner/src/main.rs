//! `sc`, the program.

mod cli;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A run makes and frees small things by the hundred thousand, on one thread and for another: a seventh of its time with
/// the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
