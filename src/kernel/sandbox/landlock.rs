//! Landlock: the kernel's own rules on what a process may reach. They hold for all that it starts, and no one can take
//! them back.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::sandbox_spec::SandboxSpec;

/// The newest rules that we know; older kernels hold to what they know.
const KNOWN: ABI = ABI::V9;
/// Files that a program may expect and that hold no secret.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The first version with rules for TCP ports.
pub(super) const PORTS: u32 = 4;
/// How deep a granted directory is taken apart to leave out what must stay hidden.
const HIDDEN_DEPTH_MAX: usize = 32;

/// The version of the rules that the kernel keeps; `None`: it has none, or they are turned off.
pub(super) fn probe() -> Option<u32> {
    // Rules hold for a thread: this one ends at once.
    let probe = || {
        let ruleset = Ruleset::default().handle_access(AccessFs::Execute).and_then(Ruleset::create);
        match ruleset.and_then(RulesetCreated::restrict_self).ok()?.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                kernel_abi.and_then(|abi| abi.try_into().ok()).or(Some(effective_abi as u32))
            }
            _ => None,
        }
    };
    std::thread::spawn(probe).join().ok().flatten()
}

/// Puts this thread, and all that it starts, under the rules of the sandbox. False when the kernel has no Landlock.
pub(super) fn restrict(sandbox_spec: &SandboxSpec) -> Result<bool, RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(KNOWN))?.scope(Scope::from_all(KNOWN))?;
    if !sandbox_spec.network {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    } else if !sandbox_spec.closed_ports.is_empty() {
        rules = rules.handle_access(AccessNet::ConnectTcp)?;
    }
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let readable = if sandbox_spec.programs.is_none() { read | AccessFs::Execute } else { read };
    let mut rules = rules.create()?;
    for path in &sandbox_spec.readable {
        rules = grant(rules, path, readable, &sandbox_spec.hidden, 0)?;
    }
    for path in &sandbox_spec.shown {
        rules = allow(rules, path, readable)?;
    }
    for program in sandbox_spec.programs.iter().flatten() {
        rules = allow(rules, program, AccessFs::ReadFile | AccessFs::Execute)?;
    }
    for device in DEVICES {
        rules = allow(rules, Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    // There are rules that open a port and none that close one.
    let closed = &sandbox_spec.closed_ports;
    let all = (!closed.is_empty() && sandbox_spec.network).then_some(0..=u16::MAX);
    for port in all.into_iter().flatten().filter(|port| !closed.contains(port)) {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    // No devices are made or driven in a workspace. What an allowlist does not name is not run there either.
    let mut own = AccessFs::from_all(KNOWN);
    own.remove(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    if sandbox_spec.programs.is_some() {
        own.remove(AccessFs::Execute);
    }
    for path in &sandbox_spec.writable {
        rules = grant(rules, path, own, &sandbox_spec.hidden, 0)?;
    }
    rules = allow(rules, &sandbox_spec.workspace, own)?;
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Allows `access` beneath `path`, but for what is hidden: a directory that holds such a thing is taken apart.
fn grant(
    mut rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    hidden: &[PathBuf],
    depth: usize,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(real) = path.canonicalize() else { return Ok(rules) };
    if hidden.iter().any(|hidden| real.starts_with(hidden)) || depth > HIDDEN_DEPTH_MAX {
        return Ok(rules);
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&real)) {
        return allow(rules, &real, access);
    }
    for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
        // A symbolic link is only a name; what it leads to is granted where it lies, or not.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            rules = grant(rules, &entry.path(), access, hidden, depth + 1)?;
        }
    }
    Ok(rules)
}

/// Allows `access` beneath `path`, as far as it makes sense for what is there. Missing: nothing.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: impl Into<BitFlags<AccessFs>>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let mut access = access.into();
    if !path.is_dir() {
        access &= AccessFs::from_file(KNOWN);
    }
    rules.add_rule(PathBeneath::new(opened, access))
}
