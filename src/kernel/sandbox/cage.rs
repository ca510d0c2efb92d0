//! The cage of a command: what the daemon decides, written down, and how a process puts itself into it.
//!
//! The daemon starts itself anew (`/proc/self/exe`) to build the cage, because nothing safe can be done between fork
//! and exec. [`enter`] runs in that process, gives up what the command must not have, and becomes the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use super::landlock;

/// How a cage that could not be built ends; shells use 126 and 127 for what cannot be run or is not there.
pub(super) const NOT_CAGED: u8 = 125;

/// What a command may do. Made by the daemon, read by the process that becomes the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cage {
    /// Where the command begins, and the only place that it may change.
    pub(super) workspace: PathBuf,
    /// Files and directories that it may read; with [`programs`](Self::programs) of `None` also run.
    pub(super) readable: Vec<PathBuf>,
    /// The only files that may be run; `None`: whatever is readable, and what is in the workspace.
    pub(super) programs: Option<Vec<PathBuf>>,
    /// Directories of the daemon that stay out of reach, wherever they lie.
    pub(super) hidden: Vec<PathBuf>,
    /// May it use TCP?
    pub(super) network: bool,
    /// No Landlock, no command.
    pub(super) require_landlock: bool,
    /// What it may use up.
    pub(super) limits: Limits,
}

/// Bounds of each process, kept by the kernel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Processor seconds.
    pub(super) cpu_secs: u64,
    /// Bytes of private memory.
    pub(super) memory_bytes: u64,
    /// Processes and threads of the user.
    pub(super) processes: u64,
    /// Open files.
    pub(super) open_files: u64,
    /// Bytes of one file.
    pub(super) file_bytes: u64,
}

/// Becomes the command, or gives the exit code of what went wrong, which stands on stderr.
pub(super) fn enter(cage: &Cage, supervisor: u32, mut command: impl Iterator<Item = OsString>) -> u8 {
    let Some(program) = command.next() else { return NOT_CAGED };
    if let Err(error) = build(cage, supervisor) {
        eprintln!("agentsvc: the sandbox cannot be set up: {error}");
        return NOT_CAGED;
    }
    let error = Command::new(&program).args(command).exec();
    eprintln!("agentsvc: cannot run {}: {error}", program.display());
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

fn build(cage: &Cage, supervisor: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before it was watched.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if parent.and_then(|pid| u32::try_from(pid).ok()) != Some(supervisor) {
        return Err(io::Error::other("the daemon is gone"));
    }
    // A session of its own: no terminal to write into, and signals of the group reach nobody else.
    rustix::process::setsid()?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    std::env::set_current_dir(&cage.workspace)?;
    // When memory runs out, the command goes and not the daemon. Not every system lets us say so.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    cage.limits.set()?;
    drop_capabilities();
    rustix::thread::set_no_new_privs(true)?;
    let in_force = landlock::restrict(cage).map_err(io::Error::other)?;
    if cage.require_landlock && !in_force {
        return Err(io::Error::other("this kernel has no Landlock, and the configuration requires it"));
    }
    Ok(())
}

impl Limits {
    fn set(self) -> io::Result<()> {
        for (resource, wanted) in [
            (Resource::Core, 0),
            (Resource::Cpu, self.cpu_secs),
            (Resource::Data, self.memory_bytes),
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.open_files),
            (Resource::Fsize, self.file_bytes),
        ] {
            // What the daemon itself may not have cannot be given.
            let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let bound = Some(wanted.min(most));
            rustix::process::setrlimit(resource, Rlimit { current: bound, maximum: bound })?;
        }
        Ok(())
    }
}

/// A daemon of root would make commands of root; without capabilities these may do little more than others.
fn drop_capabilities() {
    for capability in CapabilitySet::all().iter() {
        // Refused when we are not root, and then there is nothing to give up.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
}
