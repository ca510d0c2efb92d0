//! The process between the daemon and a command: it sees to it that nothing the command started outlives it.
//!
//! Its stdin is a pipe that the daemon holds. When the pipe closes, because the call ended, was stopped, took too long
//! or because the daemon died, however it died, the command and everything below it is killed. Processes that leave
//! their group or are left by their parent are found all the same: they become children of this process.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, WaitOptions};

use super::cage::NOT_CAGED;
use super::launcher;

/// How long what was killed may take to be gone.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs the command in its cage and gives its exit code; 128 and the signal's number when a signal ended it.
pub(super) fn supervise(cage: &OsString, command: impl Iterator<Item = OsString>) -> u8 {
    let own = rustix::process::getpid();
    // Without it, a process that detaches itself would outlive the command; everything else still works.
    let _ = rustix::process::set_child_subreaper(Some(own));
    let mut inner = Command::new(launcher::SELF);
    inner.arg(launcher::ENTER).arg(own.as_raw_nonzero().to_string()).arg(cage).args(command).stdin(Stdio::null());
    let mut child = match inner.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("agentsvc: the sandbox cannot be set up: {error}");
            return NOT_CAGED;
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    thread::spawn(move || {
        // Nothing is ever written to it: this ends when the daemon lets go.
        let _ended = std::io::stdin().read(&mut [0]);
        kill_all(pid);
    });
    let status = child.wait();
    end_the_rest();
    status.map_or(NOT_CAGED, code)
}

fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_CAGED)
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
