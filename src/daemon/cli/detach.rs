//! `start --detach`: the daemon in the background, and a command that returns once it answers.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Exit};

/// Asks for the background.
const DETACH: &str = "--detach";
/// Tells the process that it is the one in the background.
const DETACHED: &str = "--detached";
/// What the daemon says when it answers begins with this.
pub(crate) const RUNNING: &str = "agentsvc is running at ";

/// Starts this command again in the background, shows what it says until it answers, and returns then.
///
/// # Errors
/// It ended before; what it said is shown already.
pub(crate) fn detach() -> Result<(), Error> {
    let program = std::env::current_exe().map_err(Error::io("cannot tell where this program is"))?;
    let words = std::env::args_os().skip(1).filter(|word| word != DETACH);
    let mut command = Command::new(program);
    command.args(words).arg(DETACHED).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut daemon = command.spawn().map_err(Error::io("cannot start the daemon"))?;
    let mut is_running = false;
    for line in daemon.stderr.take().into_iter().flat_map(|said| BufReader::new(said).split(b'\n')) {
        let line = line.map_err(Error::io("cannot read what the daemon says"))?;
        let line = String::from_utf8_lossy(&line);
        is_running |= line.starts_with(RUNNING);
        output::note(&line);
    }
    if is_running {
        return Ok(());
    }
    let ended = daemon.wait().map_err(Error::io("cannot wait for the daemon"))?;
    Err(Error::domain(Exit::Failure, std::io::Error::other(format!("the daemon did not start ({ended})"))))
}

/// Leaves the terminal and its signals. To be called first in the process in the background.
pub(crate) fn leave_terminal() {
    if let Err(error) = rustix::process::setsid() {
        output::note(&format!("warning: cannot leave the terminal: {error}"));
    }
}

/// From now on nothing is said: the log has it. Who waits for the daemon goes on.
pub(crate) fn fall_silent() {
    let silenced = File::options().write(true).open("/dev/null").and_then(|null| Ok(nix::unistd::dup2_stderr(null)?));
    if let Err(error) = silenced {
        tracing::warn!(%error, "stderr stays open");
    }
}
