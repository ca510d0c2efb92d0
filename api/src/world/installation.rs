//! What `/api/status` and `/api/health/detail` say of the machine and the configuration; the daemon provides it.

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
    pub sandbox: Sandbox,
}

/// What keeps agents to their place, as far as this machine has it.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Sandbox {
    /// How paths of workspaces are resolved: `openat2`, or `openat`, name by name.
    pub files: &'static str,
    /// The version of the kernel's Landlock rules that commands run under; null: none, they read what the daemon reads.
    pub landlock_abi: Option<u32>,
    /// Whether commands run in namespaces of their own, where they see no other processes, files and networks; null where
    /// no command may run.
    pub namespaces: Option<bool>,
    /// Whether filters refuse the system calls that commands do not need; null where no command may run.
    pub seccomp: Option<bool>,
    /// What commands may run: `deny`, `allowlist` or `full`.
    pub commands: &'static str,
}
