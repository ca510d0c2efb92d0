//! The journal of an owner.
//!
//! An entry is appended with the sequence that it must get (`Nats-Expected-Last-Sequence`), and counts as durable only when the
//! acknowledgement names that sequence. Where it is lost, what stands there says what became of it: this entry, and it is
//! durable; another one, and this node is fenced; nothing, and it is appended again at the same place. So a server that
//! compares wrongly, an acknowledgement that comes late and a message that comes twice do no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::Bytes;
use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;

use super::parts;
use super::tail::Tail;
use super::wire::Wire;
use crate::cluster::moment::boot_time;
use crate::kernel::store::Error;
use crate::kernel::store::journal::entry::{Body, Position};
use crate::kernel::store::journal::{Entries, Journal};

/// The pause before it is asked again what became of an entry.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a stream may seem to be shorter than what it acknowledged, as it does while a new leader catches up.
const SHORT_WAIT: Duration = Duration::from_secs(15);

/// How this node stands as an owner, seen by its journal and by those who listen to the other nodes.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// The newest epoch that this node opened, or learned of from the journal.
    pub(crate) epoch: AtomicU64,
    /// The newest entry that it appended or applied.
    pub(crate) index: AtomicU64,
    /// The newest epoch that another node says it has opened.
    pub(crate) heard: AtomicU64,
    /// When waiting for the servers ends, in milliseconds since the machine was started; 0: not yet.
    pub(crate) ends: AtomicU64,
}

impl Standing {
    /// Notes the newest entry.
    pub(crate) fn note(&self, position: &Position) {
        self.epoch.store(position.epoch, Ordering::Release);
        self.index.store(position.index, Ordering::Release);
    }

    /// Another node has opened this epoch.
    pub(crate) fn hear(&self, epoch: u64) {
        self.heard.fetch_max(epoch, Ordering::AcqRel);
    }

    /// The epoch of another node that is newer than `own`.
    pub(crate) fn newer_than(&self, own: u64) -> Option<u64> {
        Some(self.heard.load(Ordering::Acquire)).filter(|heard| *heard > own)
    }

    /// May an owner of `epoch` still wait for an acknowledgement?
    fn goes_on(&self, epoch: u64) -> Result<(), Error> {
        if let Some(epoch) = self.newer_than(epoch) {
            return Err(Error::Fenced { epoch });
        }
        match self.ends.load(Ordering::Acquire) {
            ends if ends > 0 && boot_time() >= ends => {
                Err(Error::Journal("the daemon stops, and the servers do not answer".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// A journal in a stream.
pub(crate) struct NatsJournal {
    wire: Arc<Wire>,
    standing: Arc<Standing>,
    /// The newest valid entry.
    newest: Position,
    /// The sequence that the next message gets.
    next: u64,
    /// What was sent and is not known to be stored, in order.
    sent: Vec<Sent>,
    /// The snapshot that the world begins with, when it is one of a single daemon.
    origin: Option<String>,
}

/// A message on its way.
struct Sent {
    sequence: u64,
    payload: Bytes,
    answer: Option<PublishAckFuture>,
}

impl NatsJournal {
    /// The journal of a store whose newest entry is at `position`. With `origin`, the world goes on from that snapshot as soon as it is open.
    pub(crate) fn new(
        wire: &Arc<Wire>,
        standing: &Arc<Standing>,
        position: &Position,
        origin: Option<String>,
    ) -> Self {
        let (wire, standing) = (Arc::clone(wire), Arc::clone(standing));
        Self { wire, standing, newest: *position, next: position.index + 1, sent: Vec::new(), origin }
    }

    /// Sends a message that must get the sequence `sequence`.
    async fn send(wire: &Wire, sequence: u64, payload: Bytes) -> Option<PublishAckFuture> {
        let message = PublishMessage::build().payload(payload).expected_last_sequence(sequence - 1);
        wire.context.send_publish(wire.subject(), message).await.ok()
    }

    /// Waits until the message is stored where it should be.
    async fn settle(&self, mut sent: Sent) -> Result<(), Error> {
        let fenced = || Error::Fenced { epoch: self.newest.epoch + 1 };
        let mut short_since = None;
        loop {
            if let Some(answer) = sent.answer.take() {
                match answer.await {
                    Ok(ack) if ack.sequence == sent.sequence => return Ok(()),
                    Ok(_) => return Err(fenced()),
                    Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                        return Err(Error::Journal(format!("a server takes no messages of this size: {error}")));
                    }
                    Err(error) => tracing::debug!(%error, sequence = sent.sequence, "an entry was not acknowledged"),
                }
            }
            self.standing.goes_on(self.newest.epoch)?;
            match self.wire.message(sent.sequence).await {
                Ok(Some(there)) if there == sent.payload => return Ok(()),
                Ok(Some(_)) => return Err(fenced()),
                Ok(None) => match self.wire.last().await {
                    // What stands there was trimmed: others have gone on.
                    Ok(last) if last >= sent.sequence => return Err(fenced()),
                    Ok(last) if last + 1 < sent.sequence => {
                        let since = *short_since.get_or_insert_with(boot_time);
                        if boot_time() - since > SHORT_WAIT.as_millis() as u64 {
                            let text = format!("it ends at entry {last}, and {} was acknowledged", sent.sequence - 1);
                            return Err(Error::Journal(text));
                        }
                    }
                    Ok(_) => {
                        sent.answer = Self::send(&self.wire, sent.sequence, sent.payload.clone()).await;
                        continue;
                    }
                    Err(error) => tracing::debug!(%error, "the end of the journal is not known"),
                },
                Err(error) => tracing::debug!(%error, "it is not known whether an entry was stored"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn hand_over(&mut self, body: &Body<'_>) -> Result<Position, Error> {
        self.standing.goes_on(self.newest.epoch)?;
        let (position, messages) = parts::cut(&self.newest, self.next, body)?;
        let wire = Arc::clone(&self.wire);
        for payload in messages {
            let sequence = self.next;
            self.next += 1;
            let answer = wire.wait(Self::send(&wire, sequence, payload.clone()));
            self.sent.push(Sent { sequence, payload, answer });
        }
        self.newest = position;
        Ok(position)
    }

    fn settle_all(&mut self) -> Result<(), Error> {
        let (wire, sent) = (Arc::clone(&self.wire), std::mem::take(&mut self.sent));
        wire.wait(async {
            for sent in sent {
                self.settle(sent).await?;
            }
            Ok(())
        })?;
        self.standing.note(&self.newest);
        Ok(())
    }
}

impl Journal for NatsJournal {
    fn open(&mut self, node: &str) -> Result<(), Error> {
        let wire = Arc::clone(&self.wire);
        let last = wire.wait(wire.last())?;
        let newest = self.newest;
        for entry in Tail::new(&wire, &newest).up_to(last) {
            self.newest = entry?.position;
        }
        self.next = last + 1;
        self.hand_over(&Body::Open { node: node.into() })?;
        self.settle_all()?;
        if let Some(snapshot) = self.origin.take() {
            self.hand_over(&Body::Rebase { snapshot: snapshot.into() })?;
            self.settle_all()?;
        }
        Ok(())
    }

    fn append(&mut self, body: &Body<'_>) -> Result<Option<Position>, Error> {
        self.hand_over(body).map(Some)
    }

    fn acknowledged(&mut self, _position: &Position) -> Result<(), Error> {
        self.settle_all()
    }

    fn read(&self, position: &Position) -> Result<Entries<'_>, Error> {
        let state = self.wire.wait(self.wire.info())?.state;
        if position.index + 1 < state.first_sequence {
            let (from, first) = (position.index + 1, state.first_sequence);
            return Err(Error::Journal(format!("the entries from {from} to {} were trimmed", first - 1)));
        }
        Ok(Box::new(Tail::new(&self.wire, position).up_to(state.last_sequence)))
    }

    fn trim(&mut self, index: u64) -> Result<(), Error> {
        self.wire.wait(self.wire.trim(index))
    }
}
