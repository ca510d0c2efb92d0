//! Programs that run as long as the daemon wants: in a sandbox as commands are, with a stdin.
//!
//! A command has none, because the supervisor's stdin is the pipe by which the daemon holds it. A server's stdin and
//! stdout are one socket, which stands where the supervisor has its stdout.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread;

use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, Shutdown, recvmsg, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, Interest, Join, ReadBuf, join};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin};
use tokio::sync::{Semaphore, oneshot};

use super::bounds::{available, watches};
use super::command::{Commands, Rules, Shared, TEMPORARY};
use super::fullness::{Full, held_bytes, is_disk_full, until_server_full};
use super::program;
use super::sandbox_spec::{Limits, SandboxSpec};
use crate::kernel::home::create_private_dir;

/// Programs that are prepared at once: many start with the daemon, and each thread that waits for the disk takes memory.
pub(super) static PREPARED_AT_ONCE: Semaphore = Semaphore::const_new(2);
/// Descriptors that the kernel takes in one message (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;
/// Bytes of the stack of a thread that closes descriptors.
const CLOSE_STACK_BYTES: usize = 64 << 10;

/// A program that the operator chose.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    /// Its name, which is searched as those of commands are, or its path.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it begins, and what it may change; made when it is not there.
    pub directory: PathBuf,
    /// Variables that it gets beside those of every command.
    pub environment: Vec<(String, OsString)>,
    /// What it may read and run beside the system.
    pub readable: Vec<PathBuf>,
    /// What it may change beside its directory.
    pub writable: Vec<PathBuf>,
    /// Files and directories that it may read and run although they lie in the home; they must be there. Where the sandbox has a
    /// mount namespace, it cannot change those in its directory.
    pub shown: Vec<PathBuf>,
    /// Bytes of memory; `None`: as many as commands may have. Never more than those.
    pub memory_bytes: Option<u64>,
    /// May it use TCP?
    pub network: bool,
}

/// A program that runs.
#[derive(Debug)]
pub struct Server {
    /// Its stdin and stdout.
    pub stream: Join<Output, Input>,
    /// Its stderr.
    pub stderr: ChildStderr,
    /// The program itself.
    pub process: Process,
}

/// The process of a server. Dropped, it is killed with everything that it started.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Dropped, it is killed.
    _wanted: oneshot::Sender<()>,
    /// Why the daemon killed it, where it did.
    killed: Arc<OnceLock<&'static str>>,
}

impl Process {
    /// Waits until it has ended and says how.
    pub async fn ended(&mut self) -> String {
        let ended = self.child.wait().await;
        match (self.killed.get(), ended) {
            (Some(why), _) => format!("it was killed because {why}"),
            (None, Ok(status)) => status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")),
            (None, Err(error)) => error.to_string(),
        }
    }

    /// Waits until it has ended; its exit code, where it ended by itself.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let ended = self.child.wait().await.ok()?;
        if self.killed.get().is_some() { None } else { ended.code() }
    }

    /// The process that supervises it.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// A process that `life` keeps alive until nobody wants it or `must_end` says why it ends.
    pub(super) fn watched(
        child: Child,
        life: ChildStdin,
        must_end: impl Future<Output = &'static str> + Send + 'static,
    ) -> Self {
        let (wanted, unwanted) = oneshot::channel();
        // Nothing is ever written to it: no runtime need watch it.
        let life = life.into_owned_fd();
        let killed = Arc::new(OnceLock::new());
        let why = Arc::clone(&killed);
        drop(tokio::spawn(async move {
            tokio::select! {
                _ = unwanted => {}
                reason = must_end => {
                    let _first = why.set(reason);
                }
            }
            drop(life);
        }));
        Self { child, _wanted: wanted, killed }
    }
}

/// Waits until a server must end as commands do: the disk is full, or its directory holds more than `bytes_max`, or the
/// watches are used up without which the daemon accepts no connection. The kernel does not say by which process: all servers and commands end. Or the machine has almost no
/// memory left, and this one holds most.
pub(super) async fn must_end(directory: PathBuf, supervisor: Option<u32>, bytes_max: Option<u64>) -> &'static str {
    tokio::select! {
        full = until_server_full(directory, supervisor, bytes_max) => match full {
            Full::Disk => "the disk is full",
            _ => "its directory holds more than it may ([exec_policy] max_server_bytes)",
        },
        () = watches::OF_THIS_USER.until_used_up() => {
            "all epoll watches of the daemon's user are in use (fs.epoll.max_user_watches)"
        }
        () = available::until_used_up(supervisor) => {
            "the machine has almost no memory left (MemAvailable), and no other program of agents held more"
        }
    }
}

/// The socket of a program, closed by a thread of its own: what was not read may hold descriptors, and the close of a
/// connection that lingers blocks for as long as the program said.
#[derive(Debug)]
struct Socket(Option<UnixStream>);

impl Socket {
    fn get(&self) -> io::Result<&UnixStream> {
        self.0.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        close(self.0.take());
    }
}

/// Closes something elsewhere. Where no thread can be started it stays open: this one must not wait.
fn close<T: Send + 'static>(it: T) {
    let it = ManuallyDrop::new(it);
    let close = move || drop(ManuallyDrop::into_inner(it));
    let _unclosed = thread::Builder::new().name("close".to_owned()).stack_size(CLOSE_STACK_BYTES).spawn(close);
}

/// The output of a program. It may send descriptors, which are taken, and closed elsewhere: no read may close them.
#[derive(Debug)]
pub struct Output(Arc<Socket>);

impl AsyncRead for Output {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = self.0.get()?;
        loop {
            ready!(socket.poll_read_ready(context))?;
            match socket.try_io(Interest::READABLE, || receive(socket, into.initialize_unfilled())) {
                Ok(read) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// The input of a program, which ends when this is dropped.
#[derive(Debug)]
pub struct Input(Arc<Socket>);

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = self.0.get()?;
        loop {
            ready!(socket.poll_write_ready(context))?;
            match socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end())
    }
}

impl Input {
    fn end(&self) -> io::Result<()> {
        Ok(shutdown(self.0.get()?, Shutdown::Write)?)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // One that is gone has no input any more.
        let _gone = self.end();
    }
}

/// Reads what came. Descriptors are an error: no protocol has them here.
fn receive(socket: &UnixStream, into: &mut [u8]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, flags))?;
    let mut sent = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sent.extend(descriptors);
        }
    }
    if sent.is_empty() {
        return Ok(received.bytes);
    }
    close(sent);
    Err(io::Error::other("the program sent descriptors"))
}

/// Both ends of the socket of a program.
pub(super) fn ends(socket: net::UnixStream) -> io::Result<Join<Output, Input>> {
    socket.set_nonblocking(true)?;
    let socket = Arc::new(Socket(Some(UnixStream::from_std(socket)?)));
    Ok(join(Output(Arc::clone(&socket)), Input(socket)))
}

impl Commands {
    /// Starts a server. What commands may run says nothing of it: the operator chose it.
    ///
    /// # Errors
    /// A sentence: it cannot be started.
    pub async fn serve(&self, program: ServerProgram) -> Result<Server, String> {
        let (rules, shared, directory) =
            (self.shared.rules.load_full(), self.shared.clone(), program.directory.clone());
        let bytes_max = Some(rules.policy.max_server_bytes);
        // It is never closed.
        let turn = PREPARED_AT_ONCE.acquire().await;
        let prepare = tokio::task::spawn_blocking(move || shared.server(&rules, program, false));
        let prepared = prepare.await;
        drop(turn);
        let mut command = prepared.map_err(|_| "The program could not be prepared.".to_owned())??;
        let failed = |error: io::Error| format!("The program could not be started: {error}.");
        let (ours, theirs) = net::UnixStream::pair().map_err(failed)?;
        let stream = ends(ours).map_err(failed)?;
        let mut child = command.stdout(Stdio::from(OwnedFd::from(theirs))).spawn().map_err(failed)?;
        match (child.stdin.take(), child.stderr.take()) {
            (Some(life), Some(stderr)) => {
                let must_end = must_end(directory, child.id(), bytes_max);
                Ok(Server { stream, stderr, process: Process::watched(child, life, must_end) })
            }
            _ => Err("The program could not be started: it has no pipes.".to_owned()),
        }
    }
}

impl Shared {
    /// The supervised process, ready to start: on a socket or, for a terminal, on that. Blocks on the disk.
    pub(super) fn server(
        &self,
        rules: &Rules,
        server: ServerProgram,
        terminal: bool,
    ) -> Result<tokio::process::Command, String> {
        let ServerProgram {
            command,
            arguments,
            directory,
            environment,
            readable,
            writable,
            shown,
            memory_bytes,
            network,
        } = server;
        let file = match command.contains('/') {
            true => PathBuf::from(command),
            false => program::find(&rules.policy, &command)
                .ok_or_else(|| format!("Program {command:?} does not exist on this machine."))?,
        };
        create_private_dir(&directory.join(TEMPORARY)).map_err(|error| format!("{error}."))?;
        // Links above it would not be there in the sandbox.
        let directory = directory.canonicalize().map_err(|error| format!("Its directory cannot be found: {error}."))?;
        if !terminal {
            check_room(&directory, rules.policy.max_server_bytes)?;
        }
        let mut spec = self.sandbox_spec(&rules.policy, &directory, network, None);
        spec.readable.extend(readable);
        let shown = shown.iter().map(|path| path.canonicalize()).collect::<io::Result<_>>();
        let shown = shown.map_err(|error| format!("Its folder cannot be found: {error}."))?;
        let memory_bytes = memory_bytes.unwrap_or(u64::MAX).min(spec.limits.memory_bytes);
        // It may run for months.
        let limits = Limits { cpu_secs: u64::MAX, memory_bytes, ..spec.limits };
        let spec = SandboxSpec { writable, shown, duplex: true, terminal, limits, ..spec };
        let words = std::iter::once(file.into_os_string()).chain(arguments.into_iter().map(OsString::from)).collect();
        let environment = [rules.environment(&directory, &[]), environment].concat();
        self.supervised(&spec, words, environment)
    }
}

/// Is there room for a program that begins in the directory? One that was stopped for want of it does not begin again.
fn check_room(directory: &Path, bytes_max: u64) -> Result<(), String> {
    if is_disk_full(directory) {
        return Err("The disk is full; programs are refused until there is room.".to_owned());
    }
    match held_bytes(directory, None) {
        Ok(bytes) if bytes <= bytes_max => Ok(()),
        Ok(bytes) => Err(format!(
            "Its directory {} holds {bytes} bytes, more than {bytes_max} ([exec_policy] max_server_bytes). Delete files there.",
            directory.display()
        )),
        Err(error) => Err(format!("What its directory holds cannot be measured: {error}.")),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io::{IoSlice, Read, Write};
    use std::os::fd::AsFd;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::process::Command;

    use super::*;

    fn cat(must_end: impl Future<Output = &'static str> + Send + 'static) -> Process {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let life = child.stdin.take().unwrap();
        Process::watched(child, life, must_end)
    }

    #[tokio::test]
    async fn a_server_ends_for_what_ends_commands_and_says_why() {
        assert_eq!(cat(ready("the disk is full")).ended().await, "it was killed because the disk is full");
    }

    #[tokio::test]
    async fn output_comes_and_input_goes_out() {
        let (ours, mut theirs) = net::UnixStream::pair().unwrap();
        let mut stream = ends(ours).unwrap();
        let long = vec![7; 200_000];
        let sent = long.clone();
        let program = thread::spawn(move || {
            let mut asked = [0; 5];
            theirs.read_exact(&mut asked).unwrap();
            theirs.write_all(&sent).unwrap();
            asked
        });
        stream.write_all(b"hello").await.unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).await.unwrap();
        assert!(came == long && program.join().unwrap() == *b"hello");
    }

    /// One that lingers cannot be made without the network, so it is only shown that another thread closes what came.
    #[tokio::test]
    async fn descriptors_end_the_output_and_are_closed_elsewhere() {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        let mut stream = ends(ours).unwrap();
        let (mut open_while_held, held) = io::pipe().unwrap();
        let many: Vec<_> = (0..DESCRIPTORS_MAX).map(|_| held.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
        sendmsg(&theirs, &[IoSlice::new(b"{}\n")], &mut control, SendFlags::empty()).unwrap();
        // Those of a second message are never read.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let one = [held.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&one)));
        sendmsg(&theirs, &[IoSlice::new(b"{}\n")], &mut control, SendFlags::empty()).unwrap();
        drop(held);
        let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert!(error.to_string().contains("sent descriptors"), "{error}");
        drop(stream);
        // Ends once all are closed.
        assert_eq!(open_while_held.read(&mut [0]).unwrap(), 0);
    }

    #[tokio::test]
    async fn a_server_that_nobody_wants_ends() {
        let Process { mut child, _wanted, .. } = cat(pending());
        assert!(child.try_wait().unwrap().is_none());
        drop(_wanted);
        assert!(child.wait().await.unwrap().success());
    }
}
