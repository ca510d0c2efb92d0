//! How much memory and how many processes a command may have together with everything that it starts: counted by the kernel
//! in a cgroup where this process may make some, else by the supervisor, from `/proc`.

pub(super) mod available;
pub(super) mod cgroup;
pub(super) mod disk;
mod sampling;
pub(super) mod unnamed;
pub(super) mod watches;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use self::cgroup::Cgroup;
use self::sampling::Sampler;
use super::sandbox_spec::Limits;

/// The children of a thread. Not every kernel lists them.
const CHILDREN: &str = "/proc/thread-self/children";

/// The first release of the kernel in which each PID namespace has a bound of its own. Before it, root would set that of the
/// machine.
const PIDS_OF_NAMESPACES: (u32, u32) = (6, 14);
/// Numbers of processes that are not given out a second time.
const RESERVED_PIDS: u64 = 300;
/// The most that the kernel takes.
const PIDS_MAX: u64 = 4 << 20;

agentsvc_components::enum_words! {
    /// What keeps the memory and the processes of a whole command within bounds.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Bound [as_str] {
        /// Nothing: each process has its own limits, and they have none together.
        #[default]
        None = "none",
        /// The supervisor, which looks 20 times a second and kills a command that has too much.
        Sampling = "sampling",
        /// The kernel, by the numbers that there are for processes in a PID namespace.
        Namespace = "namespace",
        /// The kernel, by a cgroup.
        Cgroup = "cgroup",
    }
}

impl Bound {
    /// What a command gets that is in a cgroup of its own, or is not.
    pub(super) fn of(has_cgroup: bool) -> Self {
        match has_cgroup {
            true => Self::Cgroup,
            false if Path::new(CHILDREN).exists() => Self::Sampling,
            false => Self::None,
        }
    }
}

/// Bounds the processes and threads of this PID namespace, which must not be the machine's first. False when this kernel has
/// one bound for all namespaces, or the caller may not set it.
pub(super) fn bound_namespace(processes: u64) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers =
        release.split(|other: char| !other.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    let release = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let most = processes.saturating_add(RESERVED_PIDS + 1).min(PIDS_MAX);
    release >= PIDS_OF_NAMESPACES && fs::write("/proc/sys/kernel/pid_max", most.to_string()).is_ok()
}

/// What a command had too much of, and how much it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Memory(u64),
    Processes(u64),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => {
                write!(f, "the command used more than {bytes} bytes of memory ([exec_policy] max_memory_bytes)")
            }
            Self::Processes(count) => {
                write!(f, "the command had more than {count} processes and threads ([exec_policy] max_processes)")
            }
        }
    }
}

/// Keeps one command within its bounds. Its cgroup, if it has one, is removed with this.
#[derive(Debug)]
pub(super) enum Bounds {
    Cgroup(Cgroup),
    Sampling(Sampler),
}

impl Bounds {
    /// Those of the command that this process supervises; `place` is where cgroups may be made.
    pub(super) fn new(place: Option<&Path>, limits: Limits) -> io::Result<Self> {
        Ok(match place {
            Some(place) => Self::Cgroup(Cgroup::make(place, limits)?),
            None => Self::Sampling(Sampler::new(limits)),
        })
    }

    /// Where the command must go before it runs.
    pub(super) fn cgroup(&self) -> Option<&Path> {
        match self {
            Self::Cgroup(cgroup) => Some(cgroup.path()),
            Self::Sampling(_) => None,
        }
    }

    /// Whether the command must be killed, or was.
    pub(super) fn exceeded(&mut self) -> Option<Exceeded> {
        match self {
            Self::Cgroup(cgroup) => cgroup.exceeded(),
            Self::Sampling(sampler) => sampler.exceeded(),
        }
    }

    /// Kills what is in the cgroup.
    pub(super) fn kill(&self) {
        if let Self::Cgroup(cgroup) = self {
            cgroup.kill();
        }
    }
}
