//! Programs that get one input and give one output: in a sandbox as commands are, with a stdin that ends.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::bounds::{available, watches};
use super::command::{Commands, END_TIME_MAX, Rules, Shared};
use super::config::ExecMode;
use super::fullness::{Full, is_disk_full};
use super::quota::CommandWorkspace;
use super::sandbox_spec::{Limits, SandboxSpec};
use super::server::ends;
use agentsvc_api::http::places::Place;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// One run of such a program. What commands may run says nothing of it but `deny`: the operator installed it.
#[derive(Debug)]
pub struct Filter {
    /// Where it runs; had before anything else was decided.
    pub place: Place,
    /// Where it begins, and what it may change.
    pub workspace: CommandWorkspace,
    /// The program's file, and its arguments.
    pub words: Vec<OsString>,
    /// Variables that it gets beside `PATH`, `HOME`, `TMPDIR`, `LANG` and `TERM`; those of the same names replace them.
    pub environment: Vec<(String, OsString)>,
    /// Directories that it may read and run beside the system's, also in the home.
    pub shown: Vec<PathBuf>,
    /// May it use TCP? Kept by kernels whose Landlock has such rules.
    pub network: bool,
    /// Its stdin.
    pub input: Vec<u8>,
    /// Seconds that it may take.
    pub timeout_secs: u64,
    /// Bytes of each output. More: it is killed.
    pub output_bytes_max: usize,
}

/// What a program gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// Its exit code, 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Its output.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: Vec<u8>,
}

/// Why a program gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFiltered {
    /// It was not started; a sentence.
    Refused(String),
    /// It took too long and was killed.
    TimedOut,
    /// It filled something and was killed.
    Full(Full),
    /// One of its outputs was too long, and it was killed.
    TooLong,
}

impl Commands {
    /// Runs a program. When the future is dropped, everything that it started is killed.
    ///
    /// # Errors
    /// [`NotFiltered`]. A program that fails by itself is no error.
    pub async fn filter(&self, filter: Filter) -> Result<Filtered, NotFiltered> {
        let (rules, shared) = (self.shared.rules.load_full(), Arc::clone(&self.shared));
        let refused = |text: &str| NotFiltered::Refused(text.to_owned());
        if rules.policy.mode == ExecMode::Deny {
            return Err(refused("Programs are disabled on this machine ([exec_policy] mode is \"deny\")."));
        }
        if is_disk_full(filter.workspace.path()) {
            return Err(refused("The disk is full; programs are refused until there is room."));
        }
        let prepare = tokio::task::spawn_blocking(move || {
            let command = shared.filter(&rules, &filter)?;
            Ok::<_, String>((command, filter))
        });
        let prepared = prepare.await.map_err(|_| refused("The program could not be prepared."))?;
        let (mut command, filter) = prepared.map_err(NotFiltered::Refused)?;
        let failed = |error: io::Error| NotFiltered::Refused(format!("The program could not be started: {error}."));
        let (ours, theirs) = net::UnixStream::pair().map_err(failed)?;
        let (output, mut input) = ends(ours).map_err(failed)?.into_inner();
        let child = command.stdout(Stdio::from(OwnedFd::from(theirs))).spawn().map_err(failed)?;
        // It holds the other end of the output, which would never end.
        drop(command);
        let Filter { place: _place, workspace, input: bytes, timeout_secs, output_bytes_max, .. } = filter;
        let (workspace, supervisor) = (Arc::new(workspace), child.id());
        let feed = async move {
            // One that does not read its input closes it.
            let _unread = input.write_all(&bytes).await;
            drop(input);
        };
        let full = async {
            tokio::select! {
                full = workspace.until_full(supervisor) => full,
                () = watches::OF_THIS_USER.until_used_up() => Full::Watches,
                () = available::until_used_up(supervisor) => Full::Memory,
            }
        };
        watch(child, (output, feed), full, timeout_secs, output_bytes_max).await
    }
}

impl Shared {
    /// The supervised process, ready to start. Blocks on the disk.
    fn filter(&self, rules: &Rules, filter: &Filter) -> Result<Command, String> {
        let workspace = filter.workspace.path();
        let spec = self.sandbox_spec(&rules.policy, workspace, filter.network, None);
        let shown = filter.shown.iter().map(|path| path.canonicalize()).collect::<io::Result<_>>();
        let shown = shown.map_err(|error| format!("Its folder cannot be found: {error}."))?;
        let limits = Limits { file_bytes: spec.limits.file_bytes.min(filter.workspace.bytes_max()), ..spec.limits };
        let spec = SandboxSpec { workspace_id: filter.workspace.id(), duplex: true, shown, limits, ..spec };
        let mut environment = rules.own_environment(workspace);
        environment.retain(|(name, _)| filter.environment.iter().all(|(other, _)| other != name));
        environment.extend(filter.environment.iter().cloned());
        self.supervised(&spec, filter.words.clone(), environment)
    }
}

/// Waits for the end of a program, and takes what it gives.
async fn watch(
    mut child: Child,
    (output, feed): (impl AsyncRead + Unpin, impl Future<Output = ()>),
    until_full: impl Future<Output = Full>,
    timeout_secs: u64,
    bytes_max: usize,
) -> Result<Filtered, NotFiltered> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    // Dropped with this future, which is how everything ends that the program started.
    let life = child.stdin.take();
    let stderr = child.stderr.take();
    let ended = {
        let status = async { Ok(child.wait().await) };
        let fed = async {
            feed.await;
            Ok(())
        };
        let all = async { tokio::try_join!(status, read(Some(output), bytes_max), read(stderr, bytes_max), fed) };
        tokio::select! {
            ended = timeout(Duration::from_secs(timeout_secs), all) => ended.unwrap_or(Err(NotFiltered::TimedOut)),
            full = until_full => Err(NotFiltered::Full(full)),
        }
    };
    match ended {
        Ok((status, stdout, stderr, ())) => {
            let code = status.ok().as_ref().and_then(ExitStatus::code).unwrap_or(-1);
            Ok(Filtered { code, stdout, stderr })
        }
        Err(why) => {
            drop(life);
            if timeout(END_TIME_MAX, child.wait()).await.is_err()
                && let Some(pid) = pid
            {
                // The supervisor itself hangs; the program dies with it.
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            }
            Err(why)
        }
    }
}

/// Takes everything that comes until it ends or breaks; an error when it is too much.
async fn read(from: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> Result<Vec<u8>, NotFiltered> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(bytes) };
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        if bytes.len() + count > bytes_max {
            return Err(NotFiltered::TooLong);
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    async fn run(script: &str, input: &[u8], bytes_max: usize) -> Result<Filtered, NotFiltered> {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        let (output, mut feed) = ends(ours).unwrap().into_inner();
        let stdin = theirs.try_clone().unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).stdin(OwnedFd::from(stdin)).stdout(OwnedFd::from(theirs)).stderr(Stdio::piped());
        let child = command.kill_on_drop(true).spawn().unwrap();
        drop(command);
        let bytes = input.to_owned();
        let feed = async move {
            let _unread = feed.write_all(&bytes).await;
        };
        watch(child, (output, feed), pending(), 20, bytes_max).await
    }

    #[tokio::test]
    async fn input_goes_in_and_output_comes_out() {
        let long = vec![b'x'; 300_000];
        let ran = run("cat; echo err >&2; exit 3", &long, 1 << 20).await.unwrap();
        assert_eq!((ran.code, ran.stdout.len(), &ran.stderr[..]), (3, long.len(), &b"err\n"[..]));
        let unread = run("exec 0<&-; echo done", &long, 1 << 20).await.unwrap();
        assert_eq!(unread.stdout, b"done\n");
    }

    #[tokio::test]
    async fn an_output_that_is_too_long_ends_it() {
        assert_eq!(run("head -c 5000 /dev/zero", b"", 4_999).await, Err(NotFiltered::TooLong));
        assert_eq!(run("head -c 5000 /dev/zero >&2", b"", 4_999).await, Err(NotFiltered::TooLong));
    }
}
