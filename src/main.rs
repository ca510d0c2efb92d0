//! The `agentsvc` binary: hands the daemon to the command line.

use std::process::ExitCode;

/// A server that allocates on many threads and frees on others is what this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The daemon starts this binary anew to cage a command; nothing may be set up before that.
    if let Some(code) = agentsvc::kernel::sandbox::launcher::intercept() {
        return code;
    }
    agentsvc::daemon::cli::main()
}
