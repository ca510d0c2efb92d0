//! Programs on a terminal: in a sandbox as servers are, with a pseudo-terminal in place of the socket.
//!
//! The daemon holds one end of the terminal. The other one stands where the supervisor has its stdout and stderr, and where
//! the program has its stdin, too; it is the controlling terminal of the program's session, so that `^C` and changes of the
//! size reach what runs in front.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::command::Commands;
use super::server::{PREPARED_AT_ONCE, Process, ServerProgram, must_end};

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters of a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A program that runs on a terminal.
#[derive(Debug)]
pub struct Terminal {
    /// What it writes and reads.
    pub screen: Screen,
    /// The program itself.
    pub process: Process,
}

/// The daemon's end of a terminal.
#[derive(Debug)]
pub struct Screen {
    output: Receiver,
    input: Sender,
}

impl Screen {
    /// Makes a terminal; gives the program's end, too.
    fn open(size: TerminalSize) -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let own = openpt(flags)?;
        unlockpt(&own)?;
        let theirs = ioctl_tiocgptpeer(&own, flags)?;
        rustix::io::ioctl_fionbio(&own, true)?;
        // It is no pipe, and is read and written as one.
        let output = Receiver::from_owned_fd_unchecked(own.try_clone()?)?;
        let screen = Self { output, input: Sender::from_owned_fd_unchecked(own)? };
        screen.resize(size)?;
        Ok((screen, theirs))
    }

    /// Has the terminal another size, and tells what runs in front.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = Winsize { ws_col: size.columns, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.input.as_fd(), size)?)
    }
}

impl AsyncRead for Screen {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.output).poll_read(context, into)) {
            // No program has the other end any more.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Poll::Ready(Ok(())),
            read => Poll::Ready(read),
        }
    }
}

impl AsyncWrite for Screen {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Commands {
    /// Starts a program on a terminal. What commands may run says nothing of it: the operator chose it.
    ///
    /// # Errors
    /// A sentence: it cannot be started.
    pub async fn terminal(&self, program: ServerProgram, size: TerminalSize) -> Result<Terminal, String> {
        let (rules, shared, directory): (_, _, PathBuf) =
            (self.shared.rules.load_full(), self.shared.clone(), program.directory.clone());
        // It is never closed.
        let turn = PREPARED_AT_ONCE.acquire().await;
        let prepare = tokio::task::spawn_blocking(move || shared.server(&rules, program, true));
        let prepared = prepare.await;
        drop(turn);
        let mut command = prepared.map_err(|_| "The program could not be prepared.".to_owned())??;
        let failed = |error: io::Error| format!("The program could not be started: {error}.");
        let (screen, theirs) = Screen::open(size).map_err(failed)?;
        let errors = theirs.try_clone().map_err(failed)?;
        let mut child = command.stdout(Stdio::from(theirs)).stderr(Stdio::from(errors)).spawn().map_err(failed)?;
        // Its end of the terminal is the program's alone.
        drop(command);
        let life = child.stdin.take().ok_or("The program could not be started: it has no pipe.")?;
        let must_end = must_end(directory, child.id(), None);
        Ok(Terminal { screen, process: Process::watched(child, life, must_end) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::process::Command;

    use super::*;

    const SIZE: TerminalSize = TerminalSize { columns: 97, rows: 31 };

    #[tokio::test]
    async fn what_is_written_is_read_on_the_other_side_and_its_end_is_the_end() {
        let (mut screen, theirs) = Screen::open(SIZE).unwrap();
        let (output, input) = (theirs.try_clone().unwrap(), theirs);
        let mut command = Command::new("sh");
        command.args(["-c", "stty size; read line; echo \"got $line\""]);
        let mut child = command.stdin(input).stdout(output).spawn().unwrap();
        drop(command);
        screen.write_all(b"hello\r").await.unwrap();
        let mut all = String::new();
        screen.read_to_string(&mut all).await.unwrap();
        assert!(all.contains("31 97\r\n") && all.contains("got hello\r\n"), "{all:?}");
        assert!(child.wait().await.unwrap().success());
    }
}
