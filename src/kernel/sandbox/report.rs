//! Which parts of the sandbox are in force on this machine: for the log at the start, `GET /api/health/detail`,
//! `GET /api/security` and `agentsvc doctor`.

use rustix::process::DumpableBehavior;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bounds::{Bound, cgroup};
use super::config::{ExecMode, ExecPolicy};
use super::sandbox_spec::{Limits, PARTS, Parts, SandboxSpec};
use super::{landlock, launcher};
use crate::kernel::openat2::Resolver;

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// How paths of workspaces are resolved.
    pub resolver: Resolver,
    /// The version of the kernel's Landlock; `None`: commands are not confined by it.
    pub landlock: Option<u32>,
    /// What a command found when it was put into its sandbox; `None` where no command may run, or where it failed.
    pub parts: Option<Parts>,
    /// Whether commands run at all.
    pub exec_mode: ExecMode,
}

impl Report {
    /// Asks the kernel, with a command that does nothing where the policy lets commands run.
    pub fn of(resolver: Resolver, policy: &ExecPolicy) -> Self {
        let tried = || parts(Path::new(launcher::SELF)).unwrap_or_default();
        let parts = policy.runs_commands().then(tried);
        Self { resolver, landlock: landlock::probe(), parts, exec_mode: policy.mode }
    }

    /// Where commands run without Landlock, keeps this process's memory and environment from other processes of its user.
    pub fn protect_memory(policy: &ExecPolicy) {
        if policy.mode == ExecMode::Deny || landlock::probe().is_some() {
            return;
        }
        if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "the daemon's memory cannot be protected from other processes of its user");
        }
    }

    /// Says it in the log.
    pub fn announce(self) {
        let Self { resolver, landlock, parts, exec_mode } = self;
        tracing::info!(?resolver, ?landlock, ?parts, ?exec_mode, "sandbox");
        if parts.is_some_and(|parts| !parts.namespaces) {
            tracing::warn!(
                "this machine allows no user namespaces: commands of agents see its processes and the names of its files"
            );
        }
        if parts.is_some_and(|parts| parts.memory == Bound::None) {
            tracing::warn!("this machine bounds neither the memory nor the processes of a command as a whole");
        }
        if exec_mode != ExecMode::Deny && landlock.is_none() {
            tracing::warn!(
                "this kernel has no Landlock: agents' commands can read everything that the daemon's user \
                can read"
            );
        }
    }
}

/// The parts that commands get when this binary puts them into their sandbox: with namespaces where that works, else
/// without. `None`: neither works, and no command can run.
pub(super) fn parts(launcher: &Path) -> Option<Parts> {
    tried(launcher, true).or_else(|| tried(launcher, false))
}

/// Puts a command that does nothing into a sandbox and lets it say what is in force.
fn tried(launcher: &Path, namespaces: bool) -> Option<Parts> {
    let limits =
        Limits { cpu_secs: 10, memory_bytes: 1 << 30, processes: 1 << 20, open_files: 64, file_bytes: 1 << 20 };
    let spec = SandboxSpec {
        workspace: PathBuf::from("/usr"),
        workspace_id: None,
        writable: Vec::new(),
        readable: Vec::new(),
        shown: Vec::new(),
        programs: Some(Vec::new()),
        alone: false,
        hidden: Vec::new(),
        namespaces,
        network: false,
        closed_ports: Vec::new(),
        must_close: false,
        require_landlock: false,
        require_sandbox: false,
        duplex: false,
        terminal: false,
        cgroup: cgroup::place().map(Path::to_owned),
        limits,
    };
    let mut command = Command::new(launcher);
    command.arg(launcher::SUPERVISE).arg(serde_json::to_string(&spec).ok()?).arg(PARTS).env_clear().current_dir("/");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    // Held until it has ended.
    let life = child.stdin.take();
    let output = child.wait_with_output().ok()?;
    drop(life);
    serde_json::from_slice(&output.stdout).ok()
}
