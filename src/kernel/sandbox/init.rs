//! The first process of a command's PID namespace: it starts the command, takes the exit status of every process that is
//! left by its parent, and ends with the command. The kernel then ends whatever is still there.

use std::io;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::sandbox_spec::NOT_CAGED;

/// Runs the command and gives its exit code; 128 and the signal's number when a signal ended it.
///
/// # Errors
/// It cannot be started.
pub(super) fn run(mut command: Command) -> io::Result<u8> {
    let child = command.spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return Ok(code(status)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes the exit status of every child that has ended; gives the code of `child` when it is one of them.
pub(super) fn reap(child: Pid) -> Option<u8> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == child {
            found = Some(code(status));
        }
    }
    found
}

/// Has the process that holds the other end of stdin ended?
pub(super) fn is_left() -> bool {
    let stdin = io::stdin();
    let mut held = [PollFd::new(&stdin, PollFlags::IN)];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut held, Some(&none)).is_err() || !held[0].revents().is_empty()
}

fn code(status: WaitStatus) -> u8 {
    let signal = || status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_CAGED)
}
