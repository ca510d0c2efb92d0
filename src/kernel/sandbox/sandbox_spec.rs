//! The sandbox of a command: what the daemon decides, written down, and how a process puts itself into it.
//!
//! The daemon starts itself anew (`/proc/self/exe`) to build the sandbox, because nothing safe can be done between fork
//! and exec. [`enter`] runs in that process, gives up what the command must not have, and becomes the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::bounds::{self, Bound, cgroup};
use super::launcher::SMALL_ARENA;
use super::seccomp::Left;
use super::{init, landlock, mounts, seccomp};

/// How a sandbox that could not be built ends; shells use 126 and 127 for what cannot be run or is not there.
pub(super) const NOT_CAGED: u8 = 125;

/// How much a command gives way to others where they compete for the processor (-20 to 19).
const NICE: i32 = 5;

/// The program that is none: the parts of the sandbox that are in force are printed as JSON.
pub(super) const PARTS: &str = "@parts";

/// The parts of the sandbox that are in force for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// User, mount, PID, IPC and UTS namespaces of its own, and one for the network unless it was granted.
    pub namespaces: bool,
    /// Landlock rules.
    pub landlock: bool,
    /// Filters of system calls.
    pub seccomp: bool,
    /// What bounds the memory of the whole command.
    pub memory: Bound,
    /// What bounds the number of its processes and threads.
    pub processes: Bound,
}

/// What a command may do. Made by the daemon, read by the process that becomes the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SandboxSpec {
    /// Where the command begins, and a place that it may change.
    pub(super) workspace: PathBuf,
    /// What it may change beside that.
    pub(super) writable: Vec<PathBuf>,
    /// Device and inode of that directory: another agent's may have come in its place.
    pub(super) workspace_id: Option<(u64, u64)>,
    /// Files and directories that it may read; with [`programs`](Self::programs) of `None` also run.
    pub(super) readable: Vec<PathBuf>,
    /// Files and directories that it may read and run although they lie in something hidden; no links are on the way. In the
    /// workspace they cannot be changed, where it has a mount namespace.
    pub(super) shown: Vec<PathBuf>,
    /// The only files that may be run; `None`: whatever is readable, and what is in the workspace.
    pub(super) programs: Option<Vec<PathBuf>>,
    /// The program may start no other, nor itself again.
    pub(super) alone: bool,
    /// Files and directories of the daemon that stay out of reach, wherever they lie.
    pub(super) hidden: Vec<PathBuf>,
    /// Try namespaces. Not where the first try failed: what a half-made one leaves is no ground for a command.
    pub(super) namespaces: bool,
    /// May it use TCP?
    pub(super) network: bool,
    /// The TCP ports that it may not connect to although it may use TCP, on no machine: that of an API without a key, and those of the
    /// servers that keep the journal of a cluster.
    pub(super) closed_ports: Vec<u16>,
    /// No command where nothing keeps it from them: whoever reaches one may do everything there.
    pub(super) must_close: bool,
    /// No Landlock, no command.
    pub(super) require_landlock: bool,
    /// No command where a part of the sandbox is missing.
    pub(super) require_sandbox: bool,
    /// Its stdout is a socket, which is its stdin, too. Otherwise nothing is.
    pub(super) duplex: bool,
    /// That is a terminal, the controlling one of its session.
    pub(super) terminal: bool,
    /// Where its cgroup is to be made; for the process that enters, that cgroup. `None`: there are none.
    pub(super) cgroup: Option<PathBuf>,
    /// What it may use up.
    pub(super) limits: Limits,
}

/// Bounds of each process, kept by the kernel. Those of memory and processes hold for the whole command, too.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Processor seconds.
    pub(super) cpu_secs: u64,
    /// Bytes of memory; for one process, of private memory.
    pub(super) memory_bytes: u64,
    /// Processes and threads of the user.
    pub(super) processes: u64,
    /// Open files.
    pub(super) open_files: u64,
    /// Bytes of one file.
    pub(super) file_bytes: u64,
}

/// Becomes the command, or the first process of its PID namespace, which starts it. Gives the exit code of the command, or
/// of what went wrong, which stands on stderr.
pub(super) fn enter(sandbox_spec: &SandboxSpec, namespaces: bool, mut words: impl Iterator<Item = OsString>) -> u8 {
    let Some(program) = words.next() else { return NOT_CAGED };
    let parts = match build(sandbox_spec, namespaces) {
        Ok(parts) => parts,
        Err(error) => {
            eprintln!("agentsvc: the sandbox cannot be set up: {error}");
            return NOT_CAGED;
        }
    };
    if program == PARTS {
        return if serde_json::to_writer(io::stdout(), &parts).is_ok() { 0 } else { NOT_CAGED };
    }
    let mut command = Command::new(&program);
    // The pipe of this process says that the one before it lives; the command does not have it.
    let stdin = match sandbox_spec.duplex {
        true => io::stdout().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from),
        false => Stdio::null(),
    };
    command.args(words).env_remove(SMALL_ARENA.0).stdin(stdin);
    let restricted =
        if sandbox_spec.alone && parts.seccomp { seccomp::run_only(command.get_program()) } else { Ok(()) };
    let error = match restricted {
        Err(error) => error,
        Ok(()) if namespaces => match init::run(command) {
            Ok(code) => return code,
            Err(error) => error,
        },
        Ok(()) => command.exec(),
    };
    eprintln!("agentsvc: cannot run {}: {error}", program.display());
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

fn build(sandbox_spec: &SandboxSpec, namespaces: bool) -> io::Result<Parts> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before it was watched.
    if init::is_left() {
        return Err(io::Error::other("the daemon has ended"));
    }
    // A session of its own: no terminal to write into, and signals of the group reach nothing else.
    rustix::process::setsid()?;
    if sandbox_spec.terminal {
        rustix::process::ioctl_tiocsctty(io::stdout())?;
    }
    if let Some(cgroup) = &sandbox_spec.cgroup {
        cgroup::join(cgroup)?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o077));
    // When memory runs out, the command goes and not the daemon. Not every system allows it.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    let bound = Bound::of(sandbox_spec.cgroup.is_some());
    let mut processes = bound;
    if namespaces {
        if bound != Bound::Cgroup && bounds::bound_namespace(sandbox_spec.limits.processes) {
            processes = Bound::Namespace;
        }
        mounts::build(sandbox_spec)?;
    }
    // The daemon and the supervisor come first. A daemon that gives way more than this is followed.
    let _ = rustix::process::setpriority_process(None, NICE);
    std::env::set_current_dir(&sandbox_spec.workspace)?;
    let here = fs::metadata(".")?;
    if sandbox_spec.workspace_id.is_some_and(|id| id != (here.dev(), here.ino())) {
        return Err(io::Error::other("the workspace was moved"));
    }
    sandbox_spec.limits.set()?;
    drop_capabilities();
    rustix::thread::set_no_new_privs(true)?;
    let landlock = landlock::restrict(sandbox_spec).map_err(io::Error::other)?;
    let left = Left {
        network: sandbox_spec.network,
        namespaces,
        closed: !sandbox_spec.closed_ports.is_empty(),
        cgroup: bound == Bound::Cgroup,
    };
    let seccomp = seccomp::restrict(left).is_ok();
    let parts = Parts { namespaces, landlock, seccomp, memory: bound, processes };
    parts.check(sandbox_spec).map_err(io::Error::other)?;
    Ok(parts)
}

impl Parts {
    /// Refuses where the configuration asks for more than this machine has.
    fn check(self, sandbox_spec: &SandboxSpec) -> Result<(), String> {
        if sandbox_spec.require_landlock && !self.landlock {
            return Err("this kernel has no Landlock, and the configuration requires it".to_owned());
        }
        // Landlock sees no TCP that goes out in other ways than by `connect`; only the filters refuse those.
        if sandbox_spec.must_close && !(self.landlock && self.seccomp) {
            return Err("the API has no key, or a NATS server of the cluster takes clients without credentials, and this machine \
                        cannot keep a command with the network from it"
                .to_owned());
        }
        let missing = [
            (self.namespaces, "namespaces"),
            (self.landlock, "Landlock"),
            (self.seccomp, "seccomp filters"),
            (self.memory != Bound::None, "bounds of memory"),
            (self.processes != Bound::None, "bounds of processes"),
        ];
        match missing.into_iter().find(|(stands, _)| !stands) {
            Some((_, what)) if sandbox_spec.require_sandbox => {
                Err(format!("this machine does not allow {what}, and `require_sandbox` is set"))
            }
            _ => Ok(()),
        }
    }
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
    if let Ok(sets) = rustix::thread::capabilities(None) {
        let _ = rustix::thread::set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(closed_ports: Vec<u16>, must_close: bool, require_sandbox: bool) -> SandboxSpec {
        SandboxSpec {
            workspace: PathBuf::from("/"),
            writable: Vec::new(),
            workspace_id: None,
            readable: Vec::new(),
            shown: Vec::new(),
            programs: None,
            alone: false,
            hidden: Vec::new(),
            namespaces: false,
            network: !closed_ports.is_empty(),
            closed_ports,
            must_close,
            require_landlock: false,
            require_sandbox,
            duplex: false,
            terminal: false,
            cgroup: None,
            limits: Limits { cpu_secs: 1, memory_bytes: 1, processes: 1, open_files: 1, file_bytes: 1 },
        }
    }

    #[test]
    fn an_open_api_needs_both_walls_between_itself_and_a_command_with_the_network() {
        let both = Parts { landlock: true, seccomp: true, ..Parts::default() };
        let incomplete = [Parts::default(), Parts { landlock: false, ..both }, Parts { seccomp: false, ..both }];
        let open = spec(vec![4_545], true, false);
        assert_eq!(both.check(&open), Ok(()));
        for parts in incomplete {
            assert_eq!(parts.check(&spec(Vec::new(), false, false)), Ok(()));
            assert_eq!(parts.check(&spec(vec![4_222], false, false)), Ok(()), "credentials guard that server, too");
            assert!(parts.check(&open).unwrap_err().contains("the API has no key"), "{parts:?}");
            assert!(
                parts.check(&spec(Vec::new(), false, true)).unwrap_err().contains("`require_sandbox`"),
                "{parts:?}"
            );
        }
        let bounded = |memory| Parts { namespaces: true, memory, processes: Bound::Sampling, ..both };
        assert_eq!(bounded(Bound::Sampling).check(&spec(Vec::new(), false, true)), Ok(()), "as its documentation says");
        assert!(bounded(Bound::None).check(&spec(Vec::new(), false, true)).unwrap_err().contains("bounds of memory"));
    }
}
