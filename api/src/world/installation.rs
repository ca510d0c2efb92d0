//! What `/api/status` and `/api/health/detail` say of the machine and the configuration; the daemon provides it.

use std::fmt;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::Serialize;

/// Where the daemon runs, and how well.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// Where the state is stored.
    pub data_dir: String,
    /// What is wrong with the configuration but did not stop the start.
    pub config_warnings: Vec<String>,
    /// What keeps agents to their place.
    pub sandbox: TriedSandbox,
}

/// Files of agents that were found damaged; the daemon provides it.
pub trait FileWarnings: Send + Sync {
    /// A sentence for each: what is damaged, and what repairs it.
    fn warnings(&self) -> Vec<String>;
}

/// The sandbox as it was found when it was tried. The trial starts a process, so that a start of the daemon does not wait for
/// it: the first that asks may, for some milliseconds.
#[derive(Clone)]
pub struct TriedSandbox(Arc<LazyLock<Sandbox, Box<dyn FnOnce() -> Sandbox + Send>>>);

impl TriedSandbox {
    /// One that `trial` finds out about, once.
    pub fn new(trial: impl FnOnce() -> Sandbox + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(trial))))
    }

    /// What was found.
    pub fn get(&self) -> Sandbox {
        **self.0
    }
}

impl Default for TriedSandbox {
    fn default() -> Self {
        Self::new(Sandbox::default)
    }
}

impl fmt::Debug for TriedSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TriedSandbox").field(&LazyLock::get(&self.0)).finish()
    }
}

/// Status of the sandbox on this machine.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Sandbox {
    /// How workspace paths are resolved: `openat2`, or `openat` name by name.
    pub files: &'static str,
    /// Landlock version of the kernel; null if it has none, so that commands can read everything that the daemon can
    /// read.
    pub landlock_abi: Option<u32>,
    /// Whether commands run in namespaces of their own, where they see no other processes, files and networks; null where
    /// no command may run.
    pub namespaces: Option<bool>,
    /// Whether filters refuse the system calls that commands do not need; null where no command may run.
    pub seccomp: Option<bool>,
    /// What bounds the memory of a command with all of its processes: `cgroup` (the kernel), `sampling` (a supervisor that
    /// looks 20 times a second) or `none`; null where no command may run.
    pub memory: Option<&'static str>,
    /// What bounds the number of its processes and threads: as for `memory`, or `namespace` (the kernel).
    pub processes: Option<&'static str>,
    /// Command policy: `deny`, `allowlist` or `full`.
    pub commands: &'static str,
}
