//! The `agentsvc` binary: hands the daemon to the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentsvc::cli::main(agentsvc::daemon::run)
}
