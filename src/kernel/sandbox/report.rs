//! What of the sandbox is in force on this machine: said at the start and on `/api/health/detail`, as it is.

use rustix::process::DumpableBehavior;

use super::beneath::Resolver;
use super::config::ExecMode;
use super::landlock;

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// How paths of workspaces are resolved.
    pub resolver: Resolver,
    /// The version of the kernel's Landlock; `None`: commands are not confined by it.
    pub landlock: Option<u32>,
    /// Whether commands run at all.
    pub exec_mode: ExecMode,
}

impl Report {
    /// Asks the kernel.
    #[must_use]
    pub fn of(resolver: Resolver, exec_mode: ExecMode) -> Self {
        Self { resolver, landlock: landlock::probe(), exec_mode }
    }

    /// Says it in the log and, where commands run without Landlock, keeps this process's memory and environment from
    /// other processes of its user.
    pub fn announce(self) {
        let Self { resolver, landlock, exec_mode } = self;
        tracing::info!(?resolver, ?landlock, ?exec_mode, "sandbox");
        if exec_mode != ExecMode::Deny && landlock.is_none() {
            tracing::warn!("this kernel has no Landlock: commands of agents can read what the daemon's user can read");
            if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
                tracing::warn!(%error, "the daemon's memory cannot be kept from other processes of its user");
            }
        }
    }
}
