//! Namespaces: a command sees its own processes, its own IPC objects, its own mounts and, without a grant for the
//! network, no network. Its user may do nothing outside of them.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};

/// The namespaces that a command gets beside that of the network.
const OWN: CloneFlags = CloneFlags::CLONE_NEWUSER
    .union(CloneFlags::CLONE_NEWNS)
    .union(CloneFlags::CLONE_NEWPID)
    .union(CloneFlags::CLONE_NEWIPC)
    .union(CloneFlags::CLONE_NEWUTS);

/// Moves this process into namespaces of its own; its next child is the first process of the new PID namespace. False
/// when this kernel does not allow it: nothing has changed then. The process must have one thread.
///
/// # Errors
/// The namespaces are there, but its user could not be mapped: the process must end.
pub(super) fn enter(network: bool) -> io::Result<bool> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let flags = if network { OWN } else { OWN | CloneFlags::CLONE_NEWNET };
    if unshare(flags).is_err() {
        return Ok(false);
    }
    // One user and one group, each under its own number, so that files keep their owners.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}
