//! One run of an adapter: its lines are read, commands are written, its error output is kept.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_api::http::timestamp::timestamp_now;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::config::Overflow;
use super::inbound::Incoming;
use super::instance::{End, Instance};
use super::ledger::{Failure, Handled, send_failure};
use super::stderr::{LINE_BYTES_MAX, Line};
use super::wire::{Command, Event, command};
use crate::kernel::sandbox::Server;

/// Bytes of a line of an adapter. More: it is killed.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// Bytes above which a line must be a message with a file. It needs a place, because such lines of all adapters share them, and
/// is read off the runtime.
const LARGE_BYTES: usize = 256 << 10;
/// Large lines at once, and how long one may take.
static LARGE_LINES: Semaphore = Semaphore::const_new(4);
const LARGE_WAIT: Duration = Duration::from_secs(30);
/// Bytes of the buffers, which each idle adapter has.
const BUFFER_BYTES: usize = 1 << 10;
/// The same of its error output.
const ERROR_BUFFER_BYTES: usize = 512;
/// How long a write may take until the adapter counts as stuck.
const WRITE_WAIT: Duration = Duration::from_secs(60);
/// How long the answer to a barrier waits for the error output that came before it.
const STDERR_WAIT: Duration = Duration::from_secs(1);
/// Time that a process may take to end after its output did.
const END_WAIT: Duration = Duration::from_secs(2);

/// What goes to an adapter.
pub(super) enum Outgoing {
    /// A command whose outcome does not matter.
    Sign(Vec<u8>),
    /// A command whose outcome is awaited.
    Send(Box<Awaited>),
}

/// A command whose outcome is awaited.
pub(super) struct Awaited {
    pub(super) line: Vec<u8>,
    /// By which an adapter that confirms names it.
    pub(super) id: Option<String>,
    pub(super) reply: oneshot::Sender<Handled>,
    /// Hears when nothing can be taken back any more.
    pub(super) written: oneshot::Sender<()>,
}

/// How much of the error output has been read, for the answer to a barrier that was written after it.
struct Caught {
    pipe: Option<OwnedFd>,
    read: AtomicU64,
    more: Notify,
}

/// Runs it until it ends or `asked` does.
pub(super) async fn run(
    instance: &Instance,
    server: Server,
    mut commands: mpsc::Receiver<Outgoing>,
    asked: impl Future<Output = End>,
) -> End {
    let Server { stream, stderr, mut process } = server;
    let (from, mut to) = tokio::io::split(stream);
    let pipe = stderr.as_fd().try_clone_to_owned().ok();
    let caught = Caught { pipe, read: AtomicU64::new(0), more: Notify::new() };
    let (acks, mut ack) = mpsc::channel(1);
    let end = {
        // Pinned where they are made: one that is moved has two places in what each idle adapter keeps.
        let mut errors = pin!(read_errors(instance, stderr, &caught));
        let mut lines = pin!(read(instance, BufReader::with_capacity(BUFFER_BYTES, from), &caught, &acks));
        let mut write = pin!(write(instance, &mut to, &mut commands, &mut ack));
        let mut ready = pin!(async {
            sleep(Duration::from_secs(instance.definition.config.ready_timeout_secs)).await;
            if instance.status.lock().ready_at.is_some() {
                std::future::pending().await
            }
        });
        let mut asked = pin!(asked);
        let mut errors_are_over = false;
        loop {
            tokio::select! {
                () = &mut errors, if !errors_are_over => errors_are_over = true,
                why = &mut lines => {
                    // What it wrote last says why.
                    if !errors_are_over {
                        let _in_time = timeout(END_WAIT, &mut errors).await;
                    }
                    break End::Ended(None, why);
                }
                why = &mut write => break End::Ended(None, why),
                () = &mut ready => {
                    let secs = instance.definition.config.ready_timeout_secs;
                    break End::Ended(None, format!("it did not say within {secs} seconds that it is ready"));
                }
                end = &mut asked => break end,
            }
        }
    };
    match end {
        End::Ended(_, why) => match timeout(END_WAIT, process.exit_code()).await {
            Ok(code) => End::Ended(code, code.map_or(why, |code| format!("it ended with exit code {code}"))),
            Err(_) => End::Ended(None, why),
        },
        end => {
            let grace = Duration::from_secs(instance.definition.config.shutdown_grace_secs);
            let orderly = async {
                let told = to.write_all(&Command::Shutdown.line()).await.is_ok() && to.shutdown().await.is_ok();
                if told {
                    process.exit_code().await;
                }
            };
            let _killed_when_late = timeout(grace, orderly).await;
            end
        }
    }
}

async fn write(
    instance: &Instance,
    to: &mut (impl AsyncWrite + Unpin),
    commands: &mut mpsc::Receiver<Outgoing>,
    ack: &mut mpsc::Receiver<()>,
) -> String {
    loop {
        let bytes = tokio::select! {
            biased;
            Some(()) = ack.recv() => Command::ReadyAck.line(),
            next = commands.recv() => match next {
                Some(Outgoing::Sign(line)) => line,
                Some(Outgoing::Send(awaited)) => {
                    let Awaited { mut line, id, reply, written } = *awaited;
                    if id.is_none() {
                        line.extend(command::BARRIER);
                    }
                    instance.ledger.lock().add(id, reply);
                    let _gave_up = written.send(());
                    line
                }
                None => return "it is not needed any more".to_owned(),
            },
        };
        match timeout(WRITE_WAIT, to.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return format!("it closed its input ({})", error.kind()),
            Err(_) => return format!("it read nothing for {} seconds", WRITE_WAIT.as_secs()),
        }
    }
}

async fn read(
    instance: &Instance,
    mut from: impl AsyncBufRead + Unpin,
    caught: &Caught,
    acks: &mpsc::Sender<()>,
) -> String {
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(LINE_BYTES_MAX);
        let mut place = None;
        match (&mut from).take(LARGE_BYTES as u64).read_until(b'\n', &mut line).await {
            Ok(0) => return "it closed its output".to_owned(),
            Ok(_) if line.ends_with(b"\n") || line.len() < LARGE_BYTES => {}
            Ok(_) => {
                place = match timeout(LARGE_WAIT, LARGE_LINES.acquire()).await {
                    Ok(place) => place.ok(),
                    Err(_) => return "too many large lines of adapters are read at once".to_owned(),
                };
                let rest = (EVENT_BYTES_MAX - LARGE_BYTES) as u64;
                match timeout(LARGE_WAIT, (&mut from).take(rest).read_until(b'\n', &mut line)).await {
                    Ok(Ok(_)) if line.ends_with(b"\n") => {}
                    Ok(Ok(_)) => return format!("it wrote a line of more than {EVENT_BYTES_MAX} bytes"),
                    Ok(Err(error)) => return error.to_string(),
                    Err(_) => return "it did not end a line in time".to_owned(),
                }
            }
            // One that ends with something unread resets the connection.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                return "it closed its output".to_owned();
            }
            Err(error) => return error.to_string(),
        }
        let bytes = line.len();
        let mut large = None;
        let event = if place.is_some() {
            let taken = std::mem::take(&mut line);
            let read = tokio::task::spawn_blocking(move || Event::parse_large(&taken)).await;
            drop(place);
            large = Arc::clone(&instance.large).acquire_owned().await.ok();
            read.unwrap_or_else(|_| Err("it failed".to_owned()))
        } else {
            Event::parse(&line)
        };
        match event {
            Ok(Some(Event::Message(message))) => {
                // Large ones are few by their places.
                let bytes = if large.is_some() { 0 } else { bytes };
                take_message(instance, Incoming { message, bytes, place: large }).await;
            }
            Ok(Some(event)) => take(instance, event, caught, acks).await,
            Ok(None) => {}
            Err(why) => note_broken(instance, &why, bytes),
        }
    }
}

fn note_broken(instance: &Instance, why: &str, bytes: usize) {
    tracing::debug!(channel = instance.name(), why, bytes, "an adapter wrote a line that is no event");
    instance.status.lock().broken += 1;
}

async fn take_message(instance: &Instance, message: Incoming) {
    instance.update(super::status::Status::note_message);
    match instance.definition.config.overflow {
        // The pipe fills, and the adapter waits.
        Overflow::Block => drop(instance.messages.send(message).await),
        Overflow::DropNewest => {
            if instance.messages.try_send(message).is_err() {
                instance.note_dropped("too many wait");
            }
        }
    }
}

async fn take(instance: &Instance, event: Event, caught: &Caught, acks: &mpsc::Sender<()>) {
    match event {
        Event::Ready(ready) => {
            instance.take_ready(ready);
            // One that waits already answers this one, too.
            let _waits = acks.try_send(());
        }
        Event::Error(text) if command::is_barrier_answer(&text) && instance.ledger.lock().is_owed() => {
            caught.up().await;
            instance.ledger.lock().passed();
        }
        Event::Error(text) => {
            let text = instance.masked(text);
            let lower = text.to_ascii_lowercase();
            if ["send", "command", "deliver"].iter().any(|word| lower.contains(word)) {
                instance.ledger.lock().failed(Failure::new(text.clone(), false));
            }
            instance.update(|status| {
                status.log.add(
                    timestamp_now(),
                    Line { level: Some("error".to_owned()), message: text.clone(), ..Line::default() },
                );
                status.note_error(&text);
            });
        }
        Event::QrReady(qr) => instance.update(|status| status.set_qr(qr)),
        Event::QrStatus(update) => instance.update(|status| status.update_qr(update)),
        Event::Ack(ack) => {
            let outcome = match ack.ok {
                true => Handled::Acknowledged(ack.message_id),
                false => Handled::Refused(instance.masked(ack.error.unwrap_or_else(|| "no reason given".to_owned()))),
            };
            instance.ledger.lock().acknowledged(&ack.id, outcome);
        }
        Event::Unknown(method) => note_broken(instance, &method, 0),
        Event::Typing(_) | Event::Message(_) => {}
    }
}

impl Caught {
    /// Waits until everything has been read that was in the error output when this was called.
    async fn up(&self) {
        let waiting = self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or_default();
        let until = self.read.load(Ordering::Relaxed) + waiting;
        let read = async {
            while self.read.load(Ordering::Relaxed) < until {
                self.more.notified().await;
            }
        };
        let _in_time = timeout(STDERR_WAIT, read).await;
    }
}

async fn read_errors(instance: &Instance, mut from: impl AsyncRead + Unpin, caught: &Caught) {
    let (mut buffer, mut line) = ([0; ERROR_BUFFER_BYTES], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        for byte in &buffer[..count] {
            match byte {
                b'\n' => note_line(instance, &mut line),
                // The rest of a long line is left out.
                _ if line.len() < LINE_BYTES_MAX * 4 => line.push(*byte),
                _ => {}
            }
        }
        caught.read.fetch_add(count as u64, Ordering::Relaxed);
        caught.more.notify_one();
    }
    note_line(instance, &mut line);
}

fn note_line(instance: &Instance, bytes: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
    *bytes = Vec::new();
    if text.is_empty() {
        return;
    }
    let line = Line::parse(&instance.masked(text));
    if let Some(failure) = send_failure(&line) {
        instance.ledger.lock().failed(failure);
    }
    instance.update(|status| {
        if line.is_error() {
            status.note_error(&line.cause());
        }
        status.log.add(timestamp_now(), line);
    });
}
