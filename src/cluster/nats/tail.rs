//! Reads the stream as it grows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::wire::{REQUEST_WAIT, Wire};
use crate::kernel::store::Error;
use crate::kernel::store::journal::chain::Chain;
use crate::kernel::store::journal::entry::{Entry, Position};

/// A consumer that nobody reads is removed by the server after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// How long one order for messages stands.
const ORDER: Duration = Duration::from_secs(10);
/// A server that says nothing for two of these is not listened to any more.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Messages of one order.
const MESSAGES: usize = 256;
/// How long a reader that does not follow waits for a message that is there.
const READ_WAIT: Duration = Duration::from_secs(10);

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Journal(format!("it cannot be read: {error}"))
}

/// A message with its sequence.
type Message = (u64, Vec<u8>);

/// The messages of the stream from some sequence on, each once and in order.
pub(super) struct Messages {
    wire: Arc<Wire>,
    /// The sequence that comes next.
    next: u64,
    stream: Option<Stream>,
    /// Another sequence than that came, and it was asked again.
    has_asked_again: bool,
}

impl Messages {
    /// Those from the sequence `next` on.
    pub(super) fn new(wire: &Arc<Wire>, next: u64) -> Self {
        Self { wire: Arc::clone(wire), next, stream: None, has_asked_again: false }
    }

    /// The next message; `None` when there is none within `wait`. What the stream does not have any more is passed over. It is
    /// waited longer for a server that is asked to send them: otherwise, a slow one would be asked again and again. Only from
    /// threads that may wait.
    ///
    /// # Errors
    /// The servers do not answer; it may be asked again.
    fn next_within(&mut self, wait: Duration) -> Result<Option<Message>, Error> {
        let wire = Arc::clone(&self.wire);
        wire.wait(self.read_within(wait)).inspect_err(|_| self.stream = None)
    }

    async fn read_within(&mut self, wait: Duration) -> Result<Option<Message>, Error> {
        if self.stream.is_none() {
            let Ok(ordered) = timeout(REQUEST_WAIT, Self::order(&self.wire, self.next)).await else { return Ok(None) };
            self.stream = Some(ordered.map_err(|error| failed(&error))?);
        }
        match timeout(wait, self.message()).await {
            Ok(message) => message.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Those up to and including the sequence `last`.
    pub(super) fn up_to(mut self, last: u64) -> impl Iterator<Item = Result<Message, Error>> {
        std::iter::from_fn(move || {
            let until = Instant::now() + READ_WAIT;
            while self.next <= last {
                match self.next_within(HEARTBEAT) {
                    Ok(Some(message)) => return Some(Ok(message)),
                    Ok(None) | Err(_) if Instant::now() < until => {}
                    Ok(None) => {
                        let error = Error::Journal(format!("entry {} does not come", self.next));
                        return Some(Err(error));
                    }
                    Err(error) => return Some(Err(error)),
                }
            }
            None
        })
    }

    /// May be given up and called again.
    async fn message(&mut self) -> Result<Message, Error> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let ordered = Self::order(&self.wire, self.next).await.map_err(|error| failed(&error))?;
                    self.stream.insert(ordered)
                }
            };
            let Some(message) = stream.next().await else {
                self.stream = None;
                continue;
            };
            let message = message.map_err(|error| failed(&error))?;
            let sequence = message.info().map_err(|error| failed(&error))?.stream_sequence;
            if sequence < self.next {
                continue;
            }
            if sequence > self.next && !std::mem::replace(&mut self.has_asked_again, true) {
                self.stream = None;
                continue;
            }
            (self.next, self.has_asked_again) = (sequence + 1, false);
            return Ok((sequence, message.message.payload.to_vec()));
        }
    }

    async fn order(wire: &Wire, next: u64) -> Result<Stream, async_nats::Error> {
        let config = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGOTTEN_AFTER,
            memory_storage: true,
            num_replicas: 1,
            ..Config::default()
        };
        let consumer = wire.stream.create_consumer(config).await?;
        let messages = consumer.stream().max_messages_per_batch(MESSAGES).expires(ORDER).heartbeat(HEARTBEAT);
        Ok(messages.messages().await?)
    }
}

/// The valid entries behind a position, as they come.
pub(crate) struct Tail {
    chain: Chain,
    messages: Messages,
    /// The newest entry that was there when this began.
    last: u64,
}

impl Tail {
    /// Reads behind `position`.
    ///
    /// # Errors
    /// [`Error::Trimmed`], [`Error::Lost`]; the servers do not answer.
    pub(crate) fn new(wire: &Arc<Wire>, position: &Position) -> Result<Self, Error> {
        let bounds = wire.wait(wire.bounds())?;
        let chain = Chain::behind(position, bounds, &wire.seals.journal)?;
        let messages = Messages::new(wire, chain.next());
        Ok(Self { chain, messages, last: bounds.1 })
    }

    /// Was all read that was there when this began?
    pub(crate) fn has_caught_up(&self) -> bool {
        self.chain.next() > self.last
    }

    /// The next valid entry; `None` when there is none within `wait`. Only from threads that may wait.
    ///
    /// # Errors
    /// [`Error::Journal`] when the servers do not answer: it may be asked again. Those of [`Chain::take`]: it must not.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Option<Entry>, Error> {
        let until = Instant::now() + wait;
        while let Some((number, encoded)) =
            self.messages.next_within(until.saturating_duration_since(Instant::now()))?
        {
            if let Some(entry) = self.chain.take(number, &encoded)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
