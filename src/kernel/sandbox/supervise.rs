//! The process between the daemon and a command: it sees to it that nothing the command started outlives it.
//!
//! Its stdin is a pipe that the daemon holds. When the pipe closes, because the call ended, was stopped, took too long
//! or because the daemon died, however it died, the command and everything below it is killed. Processes that leave
//! their group or are left by their parent are found all the same: they become children of this process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::sandbox_spec::{NOT_CAGED, SandboxSpec};
use super::{init, launcher, namespaces};

/// How long what was killed may take to be gone.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);
/// How often processes that were left by their parents are looked for.
const REAP_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Runs the command in its sandbox and gives its exit code; 128 and the signal's number when a signal ended it.
pub(super) fn supervise(sandbox_spec: &OsString, command: impl Iterator<Item = OsString>) -> u8 {
    // Without it, a process that detaches itself would outlive the command; everything else still works.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    begin(sandbox_spec, command).and_then(|(mut child, pid)| watch(&mut child, pid)).unwrap_or_else(|error| {
        eprintln!("agentsvc: the sandbox cannot be set up: {error}");
        NOT_CAGED
    })
}

fn begin(sandbox_spec: &OsString, command: impl Iterator<Item = OsString>) -> io::Result<(Child, Pid)> {
    let spec: SandboxSpec = serde_json::from_str(&sandbox_spec.to_string_lossy())?;
    let first = if spec.namespaces && namespaces::enter(spec.network)? { launcher::INIT } else { launcher::ENTER };
    let mut inner = Command::new(launcher::SELF);
    let (name, value) = launcher::SMALL_ARENA;
    inner.arg(first).arg(sandbox_spec).args(command).env(name, value);
    // The pipe says that this process lives.
    let child = inner.stdin(Stdio::piped()).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((child, pid.ok_or_else(|| io::Error::other("the command has no number"))?))
}

/// Waits for the end of the command, or for that of the daemon, which ends the command. Takes the exit status of
/// everything that is left to this process meanwhile: none of them stays in the table of processes.
fn watch(child: &mut Child, pid: Pid) -> io::Result<u8> {
    let _life = child.stdin.take();
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let stdin = io::stdin();
    let mut is_held = true;
    let code = loop {
        if let Some(code) = init::reap(pid) {
            break code;
        }
        let mut held = vec![PollFd::new(&ended, PollFlags::IN)];
        if is_held {
            held.push(PollFd::new(&stdin, PollFlags::IN));
        }
        // Nothing is ever written to stdin: it is readable when the daemon lets go.
        let _ = poll(&mut held, Some(&REAP_EVERY));
        if held.get(1).is_some_and(|stdin| !stdin.revents().is_empty()) {
            is_held = false;
            kill_all(Some(pid));
        }
    };
    end_the_rest();
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
