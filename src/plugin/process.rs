//! Processes of hooks: one for a call, or one that stays and answers line by line.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_components::kernel::holder::Holder;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::fault::Fault;
use crate::kernel::sandbox::{Commands, Process, Server, ServerInput, ServerOutput, ServerProgram};
use agentsvc_api::http::places::{Place, Places};

/// Bytes of an answer, with all else that is written for it.
pub(super) const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Bytes that a hook is given.
pub(super) const INPUT_BYTES_MAX: usize = 8 << 20;
/// Bytes of the error output that a message shows, from its end.
const ERROR_BYTES_MAX: usize = 2 << 10;
/// Processes of one hook at once.
const PROCESSES_MAX: usize = 4;
/// How long the first answer of a process that should stay is waited for, before its input is ended: it may read to the end.
const FIRST_LINE_WAIT: Duration = Duration::from_secs(2);
/// The shell that begins in the folder, puts the input into a file, so that it can be read in any way, and becomes the hook.
const ONCE: &str = "cd \"$1\" || exit 126; shift; input=$(mktemp) || exit 126; cat >\"$input\" || exit 126; \
    exec 3<\"$input\"; rm -f \"$input\"; exec \"$@\" <&3 3<&-";
/// The same with the input as it comes.
const STAY: &str = "cd \"$1\" || exit 126; shift; exec \"$@\"";

/// A run of a hook: what it is given, and how long it may take.
pub(super) struct Run<'a> {
    pub(super) input: &'a Value,
    pub(super) timeout_secs: u64,
    pub(super) is_persistent: bool,
    /// Who shares the processes with the agent that it is for; `None` for no agent.
    pub(super) holder: Option<Holder>,
}

/// A program that is ready to start, but for the shell before it.
pub(super) struct Ready {
    /// The program, and its arguments; `arguments` holds those of the hook alone.
    pub(super) program: ServerProgram,
    /// Where the hook begins.
    pub(super) folder: OsString,
}

/// Makes what is to be started.
pub(super) type Prepare<'a> =
    dyn Fn(bool) -> futures_util::future::BoxFuture<'a, Result<Ready, Fault>> + Send + Sync + 'a;

/// The processes of one hook.
pub(super) struct Pool {
    idle: Mutex<Vec<Live>>,
    /// All but one of them, where there are several, may be taken by those of one user or family.
    places: Places<Option<Holder>>,
    /// It reads its input to the end: none stays from here on.
    reads_to_end: AtomicBool,
    /// It has answered and stayed once.
    stays: AtomicBool,
    /// How often all were ended: one that was at work then does not wait for another call.
    ended: AtomicU64,
}

impl Default for Pool {
    fn default() -> Self {
        Self::of(PROCESSES_MAX)
    }
}

impl Pool {
    /// So many processes at once.
    fn of(processes: usize) -> Self {
        Self {
            idle: Mutex::default(),
            places: Places::new(processes, processes.saturating_sub(1).max(1)),
            reads_to_end: AtomicBool::new(false),
            stays: AtomicBool::new(false),
            ended: AtomicU64::new(0),
        }
    }

    /// One process for all calls, one after the other.
    pub(super) fn single() -> Self {
        Self::of(1)
    }

    /// Runs the hook.
    ///
    /// # Errors
    /// [`Fault`]. What was started is killed then.
    pub(super) async fn run(&self, commands: &Commands, prepare: &Prepare<'_>, run: &Run<'_>) -> Result<Value, Fault> {
        let _place = self.place(run.holder, run.timeout_secs).await?;
        let mut line = run.input.to_string().into_bytes();
        if line.len() > INPUT_BYTES_MAX {
            return Err(Fault::Input(format!("it has {} bytes; the limit is {INPUT_BYTES_MAX}", line.len())));
        }
        line.push(b'\n');
        let end = Instant::now() + Duration::from_secs(run.timeout_secs);
        let late = |_| Fault::TimedOut(run.timeout_secs);
        if !run.is_persistent || self.reads_to_end.load(Ordering::Relaxed) {
            return timeout_at(end, once(commands, prepare, &line)).await.map_err(late)?;
        }
        timeout_at(end, self.by_live(commands, prepare, &line)).await.map_err(late)?
    }

    /// Waits for a place as long as a run may take: those of others come in turn, however many of these wait.
    async fn place(&self, holder: Option<Holder>, timeout_secs: u64) -> Result<Place<Option<Holder>>, Fault> {
        let wait = Duration::from_secs(timeout_secs);
        self.places.place_within(holder, wait).await.ok_or(Fault::Busy)
    }

    /// Starts a process that stays, so that the next call finds it.
    ///
    /// # Errors
    /// [`Fault`]: it cannot be started.
    pub(super) async fn warm(&self, commands: &Commands, prepare: &Prepare<'_>) -> Result<(), Fault> {
        if self.reads_to_end.load(Ordering::Relaxed) || !self.idle.lock().is_empty() {
            return Ok(());
        }
        let ended = self.ended.load(Ordering::Relaxed);
        let _place = self.places.place(None).await;
        if self.idle.lock().is_empty() {
            let live = Live::start(commands, prepare).await?;
            self.keep(live, ended);
        }
        Ok(())
    }

    /// Ends all that wait for a call, and those at work when they have answered.
    pub(super) fn clear(&self) {
        let mut idle = self.idle.lock();
        self.ended.fetch_add(1, Ordering::Relaxed);
        idle.clear();
    }

    /// Keeps one for the next call, unless all were ended since it was taken.
    fn keep(&self, live: Live, ended: u64) {
        let mut idle = self.idle.lock();
        if self.ended.load(Ordering::Relaxed) == ended {
            idle.push(live);
        }
    }

    /// Has a process that stays answer. Taken out while it does: one that fails, or whose caller is gone, is killed.
    async fn by_live(&self, commands: &Commands, prepare: &Prepare<'_>, line: &[u8]) -> Result<Value, Fault> {
        let ended = self.ended.load(Ordering::Relaxed);
        let first = (!self.stays.load(Ordering::Relaxed)).then_some(FIRST_LINE_WAIT);
        let mut idle = self.idle.lock().pop();
        // One that ended meanwhile has had nothing of this call: another one is asked.
        drop(idle.take_if(|live| !live.is_quiet()));
        if first.is_none()
            && let Some(mut live) = idle.take()
            && let Some(answer) = live.ask(line, None).await?
        {
            self.keep(live, ended);
            return Ok(answer);
        }
        let mut live = match idle {
            // It was started before anything was asked, and may read to the end as well.
            Some(live) => live,
            None => Live::start(commands, prepare).await?,
        };
        match live.ask(line, first).await? {
            Some(answer) => {
                self.stays.store(true, Ordering::Relaxed);
                self.keep(live, ended);
                Ok(answer)
            }
            None if first.is_some() => {
                let answer = live.rest().await?;
                tracing::info!(
                    "a hook that should stay answers only at the end of its input; each call starts it again"
                );
                self.reads_to_end.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            None => Err(live.exited().await),
        }
    }
}

/// Starts the program behind the shell.
async fn start(commands: &Commands, prepare: &Prepare<'_>, stays: bool) -> Result<Server, Fault> {
    let Ready { mut program, folder } = prepare(stays).await?;
    let shell = if stays { STAY } else { ONCE };
    let mut words = vec!["-c".to_owned(), shell.to_owned(), "sh".to_owned(), folder.to_string_lossy().into_owned()];
    words.push(std::mem::replace(&mut program.command, "/bin/sh".to_owned()));
    words.append(&mut program.arguments);
    program.arguments = words;
    commands.serve(program).await.map_err(Fault::NotStarted)
}

/// One process for one call.
async fn once(commands: &Commands, prepare: &Prepare<'_>, line: &[u8]) -> Result<Value, Fault> {
    let Server { stream, mut stderr, mut process } = start(commands, prepare, false).await?;
    let (mut output, mut input) = stream.into_inner();
    let feed = async {
        // One that does not read its input closes it.
        let _unread = input.write_all(line).await;
        drop(input);
        Ok::<_, Fault>(())
    };
    let tail = Tail::default();
    let said = async {
        tail.fill(&mut stderr).await;
        Ok::<_, Fault>(())
    };
    let (bytes, (), ()) = tokio::try_join!(all(&mut output), feed, said)?;
    let ended = process.ended().await;
    if ended != "exit code 0" {
        return Err(Fault::Exited(tail.after(&ended)));
    }
    answer_in(&bytes, &tail)
}

/// All that a process writes.
async fn all(from: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let limit = OUTPUT_BYTES_MAX as u64 + 1;
    let _broken = AsyncReadExt::take(from, limit).read_to_end(&mut bytes).await;
    if bytes.len() > OUTPUT_BYTES_MAX { Err(Fault::TooLong(OUTPUT_BYTES_MAX)) } else { Ok(bytes) }
}

/// The last line that is JSON, or the whole.
pub(super) fn last_json(bytes: &[u8]) -> Option<Value> {
    let mut lines = bytes.rsplit(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let found = lines.find_map(|line| serde_json::from_slice(line).ok());
    found.or_else(|| serde_json::from_slice(bytes).ok())
}

fn answer_in(bytes: &[u8], tail: &Tail) -> Result<Value, Fault> {
    last_json(bytes).ok_or_else(|| {
        let text = String::from_utf8_lossy(bytes);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last: String = last.chars().take(120).collect();
        Fault::NoJson(tail.after(&if last.is_empty() { String::new() } else { format!("; its last line is {last:?}") }))
    })
}

/// The end of what a process writes on stderr.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    async fn fill(&self, from: &mut (impl AsyncRead + Unpin)) {
        let mut piece = [0; 1_024];
        while let Ok(count) = from.read(&mut piece).await {
            if count == 0 {
                return;
            }
            let mut kept = self.0.lock();
            kept.extend_from_slice(&piece[..count]);
            let more = kept.len().saturating_sub(ERROR_BYTES_MAX);
            kept.drain(..more);
        }
    }

    /// `text`, and what was said last behind it.
    fn after(&self, text: &str) -> String {
        let kept = self.0.lock();
        let said = String::from_utf8_lossy(&kept);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if last.is_empty() { text.to_owned() } else { format!("{text}: {}", last.trim()) }
    }
}

/// A process that stays.
struct Live {
    input: Option<ServerInput>,
    output: ServerOutput,
    process: Process,
    tail: Tail,
    /// What came of the present answer.
    came: Vec<u8>,
}

impl Live {
    async fn start(commands: &Commands, prepare: &Prepare<'_>) -> Result<Self, Fault> {
        let Server { stream, mut stderr, process } = start(commands, prepare, true).await?;
        let (output, input) = stream.into_inner();
        let tail = Tail::default();
        let fill = tail.clone();
        // Ends with the process, which is killed when this is dropped.
        drop(tokio::spawn(async move { fill.fill(&mut stderr).await }));
        Ok(Self { input: Some(input), output, process, tail, came: Vec::new() })
    }

    /// Does it live, and has it nothing to say? What it wrote unasked is dropped, lest it pass for an answer.
    fn is_quiet(&mut self) -> bool {
        let mut piece = [0; 4 << 10];
        for _ in 0..OUTPUT_BYTES_MAX / piece.len() {
            // A timeout of zero would wait for the next millisecond.
            match self.output.read(&mut piece).now_or_never() {
                None => return true,
                Some(Ok(count)) if count > 0 => {}
                Some(_) => return false,
            }
        }
        false
    }

    /// Asks; `None` where it ended, or nothing came within `first`.
    async fn ask(&mut self, line: &[u8], first: Option<Duration>) -> Result<Option<Value>, Fault> {
        self.came.clear();
        let Some(input) = &mut self.input else { return Ok(None) };
        let (output, came) = (&mut self.output, &mut self.came);
        let exchange = async {
            // One that does not read while it writes would wait for ever otherwise.
            let (written, read) = tokio::join!(input.write_all(line), line_of(output, came));
            read.map(|answer| answer.filter(|_| written.is_ok()))
        };
        match first {
            None => exchange.await,
            Some(wait) => timeout(wait, exchange).await.unwrap_or(Ok(None)),
        }
    }

    /// Ends its input and takes what it writes to its end.
    async fn rest(&mut self) -> Result<Value, Fault> {
        self.input = None;
        let mut bytes = std::mem::take(&mut self.came);
        bytes.extend(all(&mut self.output).await?);
        if bytes.len() > OUTPUT_BYTES_MAX {
            return Err(Fault::TooLong(OUTPUT_BYTES_MAX));
        }
        let ended = self.process.ended().await;
        if ended != "exit code 0" {
            return Err(Fault::Exited(self.tail.after(&ended)));
        }
        answer_in(&bytes, &self.tail)
    }

    async fn exited(&mut self) -> Fault {
        self.input = None;
        let ended = self.process.ended().await;
        Fault::Exited(self.tail.after(&ended))
    }
}

/// The first line that is a JSON object; `None` at the end.
async fn line_of(output: &mut ServerOutput, came: &mut Vec<u8>) -> Result<Option<Value>, Fault> {
    let (mut piece, mut from) = (vec![0; 16 << 10], 0);
    loop {
        while let Some(length) = came[from..].iter().position(|byte| *byte == b'\n') {
            let line = &came[from..from + length];
            if let Ok(answer @ Value::Object(_)) = serde_json::from_slice(line) {
                return Ok(Some(answer));
            }
            from += length + 1;
        }
        match output.read(&mut piece).await {
            Ok(count) if count > 0 => came.extend_from_slice(&piece[..count]),
            _ => return Ok(None),
        }
        if came.len() > OUTPUT_BYTES_MAX {
            return Err(Fault::TooLong(OUTPUT_BYTES_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::UserId;
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_user_with_many_runs_delays_others_by_one_at_most() {
        let [ann, bob] = [1, 2].map(|id| Some(Holder::User(UserId(Uuid::from_u128(id)))));
        for (pool, at_once) in [(Pool::default(), PROCESSES_MAX - 1), (Pool::single(), 1)] {
            let pool = Arc::new(pool);
            let mut held = Vec::new();
            for _ in 0..at_once {
                held.push(pool.place(ann, 30).await.unwrap());
            }
            let begin = |who, secs| {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move { pool.place(who, secs).await.map(drop) })
            };
            let more: Vec<_> = (0..100).map(|_| begin(ann, 30)).collect();
            tokio::task::yield_now().await;
            let other = begin(bob, 5);
            if at_once == 1 {
                tokio::task::yield_now().await;
                held.pop();
            }
            assert_eq!(other.await.unwrap(), Ok(()), "it waits for one run, not for a hundred");
            assert!(begin(ann, 1).await.unwrap() == Err(Fault::Busy) || at_once == 1);
            drop(held);
            for one in more {
                assert_eq!(one.await.unwrap(), Ok(()), "they wait instead of failing");
            }
        }
    }

    #[test]
    fn the_last_line_that_is_json_counts() {
        let found = |text: &str| last_json(text.as_bytes());
        assert_eq!(found("log\n{\"a\":1}\nbye\n\n").unwrap()["a"], 1);
        assert_eq!(found("{\"a\":1}\n{\"a\":2}").unwrap()["a"], 2);
        assert_eq!(found("{\n \"a\": 1\n}\n").unwrap()["a"], 1);
        assert!(found("garbage\n{oops\n").is_none() && found("").is_none());
    }
}
