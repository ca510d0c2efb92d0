//! Reads entries as they come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Bytes;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::parts::Assembly;
use super::wire::Wire;
use crate::kernel::store::Error;
use crate::kernel::store::journal::entry::{Entry, Position};

/// A consumer that nobody reads is removed by the server after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// How long one order for messages stands.
const ORDER: Duration = Duration::from_secs(10);
/// A server that says nothing for two of these is not listened to any more.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Messages of one order.
const MESSAGES: usize = 256;
/// How long a reader that does not follow waits for an entry that is there.
const READ_WAIT: Duration = Duration::from_secs(10);

/// Reads the valid entries behind a position, and goes on when more come.
pub(crate) struct Tail {
    wire: Arc<Wire>,
    /// The newest valid entry.
    newest: Position,
    /// The sequence of the newest message that was looked at.
    at: u64,
    assembly: Assembly,
    messages: Option<Stream>,
    /// A message was missing when this one came, and it was asked again.
    missed: bool,
}

impl Tail {
    /// Reads behind `position`.
    pub(crate) fn new(wire: &Arc<Wire>, position: &Position) -> Self {
        Self {
            wire: Arc::clone(wire),
            newest: *position,
            at: position.index,
            assembly: Assembly::default(),
            messages: None,
            missed: false,
        }
    }

    /// The next valid entry; `None` when there is none within `wait`. Only from threads that may wait.
    ///
    /// # Errors
    /// The servers do not answer, entries were trimmed or are missing, or one cannot be read. It may be called again.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Option<Entry>, Error> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wire = Arc::clone(&self.wire);
            let message = match wire.wait(timeout(left, self.message())) {
                Err(_) => return Ok(None),
                Ok(Err(error)) => {
                    self.messages = None;
                    return Err(error);
                }
                Ok(Ok(message)) => message,
            };
            let Some(encoded) = self.assembly.take(message) else { continue };
            let accepted = self.newest.accept(self.at, &encoded);
            let accepted = accepted.map_err(|error| Error::Journal(format!("entry {}: {error}", self.at)))?;
            match accepted {
                Some(entry) => {
                    self.newest = entry.position;
                    return Ok(Some(entry));
                }
                None => tracing::info!(index = self.at, "an entry of the journal is void: its owner was fenced"),
            }
        }
    }

    /// Everything up to and including the sequence `last`.
    fn read_to(&mut self, last: u64) -> Option<Result<Entry, Error>> {
        if self.at >= last {
            return None;
        }
        let until = Instant::now() + READ_WAIT;
        while self.at < last {
            match self.next_within(until.saturating_duration_since(Instant::now()).min(HEARTBEAT)) {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) | Err(Error::Journal(_)) if Instant::now() < until => {}
                Ok(None) => return Some(Err(Error::Journal(format!("entry {} does not come", self.at + 1)))),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// The entries up to the sequence `last`.
    pub(super) fn up_to(mut self, last: u64) -> impl Iterator<Item = Result<Entry, Error>> {
        std::iter::from_fn(move || self.read_to(last))
    }

    /// The next message. May be given up and called again.
    async fn message(&mut self) -> Result<Bytes, Error> {
        loop {
            if self.messages.is_none() {
                self.messages = Some(self.order().await?);
            }
            let Some(messages) = &mut self.messages else { continue };
            let failed = |error: &dyn std::fmt::Display| Error::Journal(format!("the journal cannot be read: {error}"));
            let Some(message) = messages.next().await else {
                self.messages = None;
                continue;
            };
            let message = message.map_err(|error| failed(&error))?;
            let sequence = message.info().map_err(|error| failed(&error))?.stream_sequence;
            if sequence <= self.at {
                continue;
            }
            if sequence > self.at + 1 {
                self.missing(sequence).await?;
                continue;
            }
            (self.at, self.missed) = (sequence, false);
            return Ok(message.message.payload);
        }
    }

    /// Message `sequence` came, and not the one that was expected: is it gone, or only on its way?
    async fn missing(&mut self, sequence: u64) -> Result<(), Error> {
        self.messages = None;
        if !std::mem::replace(&mut self.missed, true) {
            return Ok(());
        }
        let first = self.wire.info().await?.state.first_sequence;
        let (from, to) = (self.at + 1, sequence - 1);
        let why = if first > from { "trimmed" } else { "lost by the servers" };
        Err(Error::Journal(format!("the entries {from} to {to} were {why}")))
    }

    async fn order(&self) -> Result<Stream, Error> {
        let config = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.at + 1 },
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGOTTEN_AFTER,
            memory_storage: true,
            num_replicas: 1,
            ..Config::default()
        };
        let failed = |error: &dyn std::fmt::Display| Error::Journal(format!("the journal cannot be read: {error}"));
        let consumer = self.wire.stream.create_consumer(config).await.map_err(|error| failed(&error))?;
        let messages = consumer.stream().max_messages_per_batch(MESSAGES).expires(ORDER).heartbeat(HEARTBEAT);
        messages.messages().await.map_err(|error| failed(&error))
    }
}
