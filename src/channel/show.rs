//! What a chat sees of an answer on its way: typing, signs, and the text while it is written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::turn::hub::{Delivery, StreamHub, Subscription};
use agentsvc_components::TurnId;
use agentsvc_components::channel::ChatMessageId;
use agentsvc_components::channel::signal::{ChatSignal, Shown};
use agentsvc_components::manifest::channel::TypingMode;
use agentsvc_components::turn::stream::StreamEvent;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, interval, timeout};

use super::instance::{Instance, Run};
use super::ledger::{Handled, Strays};
use super::registry::Registry;
use super::web_show;
use super::wire::Command;
use super::wire::command::Phase;

/// How often typing is shown again: platforms forget it after some seconds.
const TYPING_PERIOD: Duration = Duration::from_secs(4);
/// Answers that are shown at once. More: they are sent when they are done.
const SHOWN_MAX: usize = 1_000;
/// How often pieces of a text are passed on.
const PIECE_PERIOD: Duration = Duration::from_millis(300);
/// How long a sign that ends others may wait for its adapter.
const LAST_WAIT: Duration = Duration::from_secs(60);
/// How long the last words of a turn that has ended may take.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(2);
/// How long the send waits for the last piece of a streamed text.
const STREAM_WAIT: Duration = Duration::from_secs(20);

/// Answers that are shown while they are written.
#[derive(Default)]
pub(super) struct ShownAnswers {
    by_message: Mutex<HashMap<ChatMessageId, watch::Sender<Option<Phase>>>>,
    /// Streams, by turn, with how many bytes of text went out so far; `None` while the stream is open.
    streams: Mutex<HashMap<TurnId, watch::Receiver<Streamed>>>,
}

/// Where a stream is.
#[derive(Clone, Debug, Default)]
enum Streamed {
    #[default]
    Open,
    /// All of it went out to this run: failures of the adapter when it began, and when its end was told.
    Whole(Run, Strays, Strays),
    /// It began, and not all of it went out.
    Broken,
    /// Nothing of it went out, or the adapter ended before it had the whole text.
    Nothing,
}

impl ShownAnswers {
    /// What became of the text of a turn that was streamed; `None` when it was not, so that it is sent.
    pub(super) async fn confirm(&self, turn: TurnId, instance: &Instance) -> Option<Handled> {
        let mut stream = self.streams.lock().remove(&turn)?;
        let ended = timeout(STREAM_WAIT, stream.wait_for(|at| !matches!(at, Streamed::Open))).await;
        match ended.map(|ended| ended.map_or(Streamed::Broken, |at| at.clone())) {
            Ok(Streamed::Nothing) => None,
            Ok(Streamed::Whole(run, began, told)) => {
                let handled = instance.barrier(run).await;
                let failure = instance.ledger.lock().stream_failure(began, told);
                Some(match (handled, failure) {
                    (Handled::Sent, Some(why)) => Handled::Refused(why),
                    (Handled::Unwritten(why), _) => Handled::Unknown(why),
                    (handled, _) => handled,
                })
            }
            // A second copy of what may be there already would be worse.
            Ok(_) | Err(_) => {
                Some(Handled::Unknown("the text was streamed, and not all of it was passed on".to_owned()))
            }
        }
    }
}

/// Shows how far a message is. Never blocks.
pub(super) fn show(registry: &Arc<Registry>, signal: ChatSignal) {
    if registry.sites.has(&signal.instance) {
        return web_show::show(registry, signal);
    }
    let Some(instance) = registry.instance(&signal.instance) else { return };
    match signal.shown {
        Shown::Began { session, turn, typing, .. } => {
            let (phase, phases) = watch::channel(None);
            {
                let mut all = registry.shown.by_message.lock();
                if all.len() == SHOWN_MAX {
                    return;
                }
                all.insert(signal.message, phase);
            }
            let hub = registry.api.services.state::<StreamHub>();
            let subscription = hub.subscribe_from_start(session).only(turn);
            let of = Arc::clone(registry);
            registry.spawn(async move { follow(&of, &instance, &signal, turn, typing, subscription, phases).await });
        }
        Shown::Ended { has_failed } => {
            let phase = if has_failed { Phase::Error } else { Phase::Done };
            let known = registry.shown.by_message.lock().remove(&signal.message);
            match known {
                Some(known) => {
                    known.send_replace(Some(phase));
                }
                // It began before a restart, and its sign is still there.
                None => registry.spawn(async move { end_sign(&instance, &signal, phase).await }),
            }
        }
    }
}

/// Puts the last sign on a message, once the adapter can.
async fn end_sign(instance: &Instance, signal: &ChatSignal, phase: Phase) {
    let Some(message) = signal.message_id.as_deref() else { return };
    if instance.is_ready_within(LAST_WAIT).await && instance.can("reaction") {
        instance.tell_all(&Command::reaction(&signal.chat, message, phase, None)).await;
    }
}

async fn follow(
    registry: &Registry,
    instance: &Arc<Instance>,
    signal: &ChatSignal,
    turn: TurnId,
    typing: TypingMode,
    mut events: Subscription,
    mut phases: watch::Receiver<Option<Phase>>,
) {
    let sign = |phase: Phase, tool: Option<&str>| {
        if let Some(message) = signal.message_id.as_deref().filter(|_| instance.can("reaction")) {
            instance.tell(&Command::reaction(&signal.chat, message, phase, tool));
        }
    };
    sign(Phase::Queued, None);
    let stream = instance.can("streaming").then(|| Stream::new(instance, signal, turn));
    if let Some(stream) = &stream {
        let mut streams = registry.shown.streams.lock();
        if streams.len() >= SHOWN_MAX {
            streams.retain(|_, stream| matches!(*stream.borrow(), Streamed::Open));
        }
        streams.insert(turn, stream.state.subscribe());
    }
    let mut hearing = Hearing { stream, speaks: false, listens: true };
    let mut tick = interval(TYPING_PERIOD);
    let last = loop {
        tokio::select! {
            ended = ended(&mut phases) => break ended,
            _ = tick.tick() => {
                let shows = match typing {
                    TypingMode::Instant => true,
                    TypingMode::Message => hearing.speaks,
                    TypingMode::Thinking => !hearing.speaks,
                    TypingMode::Never => false,
                };
                if shows && instance.can("typing") {
                    instance.tell(&Command::Typing { channel_id: signal.chat.to_string() });
                }
            }
            delivery = events.next(), if hearing.listens => hearing.hear(delivery, &sign).await,
        }
    };
    // The end may be known before the last words have come.
    while hearing.listens {
        match timeout(LAST_WORDS_WAIT, events.next()).await {
            Ok(delivery) => hearing.hear(delivery, &sign).await,
            Err(_) => hearing.miss(),
        }
    }
    if let Some(stream) = hearing.stream {
        stream.end(last).await;
    }
    end_sign(instance, signal, last).await;
}

/// Waits for the end; what its sign is.
async fn ended(phases: &mut watch::Receiver<Option<Phase>>) -> Phase {
    phases.wait_for(Option::is_some).await.ok().and_then(|phase| *phase).unwrap_or(Phase::Error)
}

/// What has been heard of a turn.
struct Hearing<'a> {
    stream: Option<Stream<'a>>,
    /// Text has come.
    speaks: bool,
    /// More may come.
    listens: bool,
}

impl Hearing<'_> {
    async fn hear(&mut self, delivery: Delivery, sign: &impl Fn(Phase, Option<&str>)) {
        let frame = match delivery {
            Delivery::Frame(frame) => frame,
            Delivery::Lagged(_) => {
                if let Some(stream) = &mut self.stream {
                    stream.is_whole = false;
                }
                return;
            }
            Delivery::BrokenOff => return self.miss(),
        };
        match &frame.event {
            StreamEvent::Chunk { content } => {
                if !std::mem::replace(&mut self.speaks, true) {
                    sign(Phase::Streaming, None);
                }
                if let Some(stream) = &mut self.stream {
                    stream.add(content).await;
                }
            }
            StreamEvent::ToolUse { tool } => sign(Phase::ToolUse, Some(tool)),
            _ => {}
        }
        self.listens = !frame.last;
    }

    /// Nothing more comes, although the end was not heard.
    fn miss(&mut self) {
        self.listens = false;
        if let Some(stream) = &mut self.stream {
            stream.is_whole = false;
        }
    }
}

/// A text that goes out while it is written.
struct Stream<'a> {
    instance: &'a Instance,
    signal: &'a ChatSignal,
    id: String,
    /// What has not gone out yet.
    waiting: String,
    /// The run of the adapter at which it was begun.
    run: Option<Run>,
    is_whole: bool,
    /// The run ended before all of the text had gone out.
    is_cut_off: bool,
    /// Failures of the adapter when it began.
    began: Strays,
    next_piece: Instant,
    state: watch::Sender<Streamed>,
}

impl<'a> Stream<'a> {
    fn new(instance: &'a Instance, signal: &'a ChatSignal, turn: TurnId) -> Self {
        Self {
            instance,
            signal,
            id: turn.to_string(),
            waiting: String::new(),
            run: None,
            is_whole: true,
            is_cut_off: false,
            began: instance.ledger.lock().strays(),
            next_piece: Instant::now(),
            state: watch::Sender::default(),
        }
    }

    async fn add(&mut self, text: &str) {
        self.waiting.push_str(text);
        if self.is_whole && Instant::now() >= self.next_piece && !self.may_be_silence() {
            self.pass_on().await;
        }
    }

    fn may_be_silence(&self) -> bool {
        may_be_silence(self.run.is_some(), &self.waiting)
    }

    async fn pass_on(&mut self) {
        if self.run.is_none() {
            let thread_id = self.signal.thread.as_deref().filter(|_| self.instance.can("thread")).map(str::to_owned);
            let channel_id = self.signal.chat.to_string();
            let start = Command::StreamStart { channel_id, stream_id: self.id.clone(), thread_id };
            self.run = match self.instance.this_run() {
                Some(run) => run.tell(&start).await.then_some(run),
                None => None,
            };
        }
        let text = std::mem::take(&mut self.waiting);
        self.is_whole &= match &self.run {
            Some(run) => run.tell(&Command::StreamDelta { stream_id: self.id.clone(), text }).await,
            None => false,
        };
        self.is_cut_off = !self.is_whole && self.run.as_ref().is_some_and(Run::has_ended);
        self.next_piece = Instant::now() + PIECE_PERIOD;
    }

    async fn end(mut self, last: Phase) {
        if !self.waiting.is_empty() && self.is_whole && !self.may_be_silence() {
            self.pass_on().await;
        }
        let told = self.instance.ledger.lock().strays();
        if let Some(run) = &self.run {
            self.is_whole &= run.tell(&Command::StreamEnd { stream_id: self.id.clone() }).await;
        }
        self.state.send_replace(match self.run {
            None => Streamed::Nothing,
            // What is sent after a failure is another text.
            Some(_) if last == Phase::Error || self.is_cut_off => Streamed::Nothing,
            Some(run) if self.is_whole => Streamed::Whole(run, self.began, told),
            Some(_) => Streamed::Broken,
        });
    }
}

/// Could the text so far become one that stands for silence? It must never show.
pub(super) fn may_be_silence(has_begun: bool, text: &str) -> bool {
    let text = text.trim();
    !has_begun && ["NO_REPLY", "[no reply needed]"].iter().any(|silence| silence.starts_with(text) || text == *silence)
}

#[cfg(test)]
mod tests {
    use super::may_be_silence;

    #[test]
    fn silence_is_not_streamed() {
        for text in ["", " ", "NO", "NO_REPLY", "NO_REPLY\n", "[no reply ", "[no reply needed]"] {
            assert!(may_be_silence(false, text), "{text}");
        }
        assert!(!may_be_silence(false, "NORMAL") && !may_be_silence(false, "Hello") && !may_be_silence(true, "NO"));
    }
}
