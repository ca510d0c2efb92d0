//! The `agentsvc` binary: hands the daemon to the command line.

use std::process::ExitCode;

/// A server that allocates on many threads and frees on others is what this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    agentsvc::cli::main(agentsvc::daemon::run)
}
