//! The process between the daemon and a command: it sees to it that nothing the command started outlives it.
//!
//! Its stdin is a pipe that the daemon holds. When the pipe closes, because the call ended, was stopped, took too long
//! or because the daemon died, however it died, the command and everything below it is killed. Processes that leave
//! their group or are left by their parent are found all the same: they become children of this process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::bounds::Bounds;
use super::sandbox_spec::{NOT_CAGED, SandboxSpec};
use super::{init, launcher, namespaces};
use crate::kernel::descriptors;

/// How long what was killed may take to be gone.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);
/// The priority of this process: the highest.
const FIRST: i32 = -20;
/// How often it is looked for processes that were left by their parents, and at what the command uses.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Runs the command in its sandbox and gives its exit code; 128 and the signal's number when a signal ended it.
pub(super) fn supervise(sandbox_spec: &OsString, command: impl Iterator<Item = OsString>) -> u8 {
    descriptors::close_inherited();
    // Without it, a process that detaches itself would outlive the command; everything else still works.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let ended = serde_json::from_str(&sandbox_spec.to_string_lossy()).map_err(io::Error::other);
    ended.and_then(|spec| run(spec, command)).unwrap_or_else(|error| {
        eprintln!("agentsvc: the sandbox cannot be set up: {error}");
        NOT_CAGED
    })
}

fn run(mut spec: SandboxSpec, command: impl Iterator<Item = OsString>) -> io::Result<u8> {
    // What it starts must not keep it from the processor. Only root may go first; the command itself does not.
    let _ = rustix::process::setpriority_process(None, FIRST);
    let mut bounds = Bounds::new(spec.cgroup.as_deref(), spec.limits)?;
    spec.cgroup = bounds.cgroup().map(Path::to_owned);
    let (mut child, pid) = begin(&spec, command)?;
    watch(&mut child, pid, &mut bounds)
}

fn begin(spec: &SandboxSpec, command: impl Iterator<Item = OsString>) -> io::Result<(Child, Pid)> {
    let first = if spec.namespaces && namespaces::enter(spec.network)? { launcher::INIT } else { launcher::ENTER };
    let mut inner = Command::new(launcher::SELF);
    let (name, value) = launcher::SMALL_ARENA;
    inner.arg(first).arg(serde_json::to_string(spec)?).args(command).env(name, value);
    // The pipe says that this process lives.
    let child = inner.stdin(Stdio::piped()).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((child, pid.ok_or_else(|| io::Error::other("the command has no number"))?))
}

/// Waits for the end of the command, or for that of the daemon, which ends the command, as does too much memory. Takes the exit status of
/// everything that is left to this process meanwhile: none of them stays in the table of processes.
fn watch(child: &mut Child, pid: Pid, bounds: &mut Bounds) -> io::Result<u8> {
    let _life = child.stdin.take();
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let stdin = io::stdin();
    let (mut is_held, mut exceeded) = (true, None);
    let code = loop {
        if let Some(code) = init::reap(pid) {
            break code;
        }
        let mut held = vec![PollFd::new(&ended, PollFlags::IN)];
        if is_held {
            held.push(PollFd::new(&stdin, PollFlags::IN));
        }
        // Nothing is ever written to stdin: it is readable when the daemon lets go.
        let _ = poll(&mut held, Some(&LOOK_EVERY));
        if held.get(1).is_some_and(|stdin| !stdin.revents().is_empty()) {
            is_held = false;
            bounds.kill();
            kill_all(Some(pid));
        }
        if exceeded.is_none() {
            exceeded = bounds.exceeded();
            if exceeded.is_some() {
                kill_all(Some(pid));
            }
        }
    };
    bounds.kill();
    end_the_rest();
    if let Some(exceeded) = exceeded.or_else(|| bounds.exceeded()) {
        eprintln!("agentsvc: {exceeded} and was killed");
    }
    Ok(code)
}

/// Kills the command's group and whatever is a child of this process. Those that are gone already are no error.
fn kill_all(command: Option<Pid>) {
    if let Some(command) = command {
        let _ = rustix::process::kill_process_group(command, Signal::KILL);
        let _ = rustix::process::kill_process(command, Signal::KILL);
    }
    for child in children() {
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

/// Kills and waits until there is no child left: each that dies leaves its own children to this process.
fn end_the_rest() {
    let begun = Instant::now();
    while begun.elapsed() < KILL_TIME_MAX {
        kill_all(None);
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The children of this process, as the kernel lists them for each of its threads.
fn children() -> impl Iterator<Item = Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>());
    pids.filter_map(Pid::from_raw)
}
