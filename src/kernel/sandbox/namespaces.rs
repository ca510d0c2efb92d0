//! Namespaces: a command sees its own processes, its own IPC objects, its own mounts and, without a grant for the
//! network, no network. Its user may do nothing outside of them.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CapabilitySet, CapabilitySets};

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
    keep_capabilities()?;
    Ok(true)
}

/// Lets the first process of the namespaces mount, also where its user is not root: a program that is started by any
/// other user begins without capabilities.
fn keep_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    let sets = rustix::thread::capabilities(None)?;
    rustix::thread::set_capabilities(None, CapabilitySets { inheritable: kept, ..sets })?;
    for capability in kept.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
