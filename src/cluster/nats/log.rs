//! The stream as a log, and the journal of an owner over it.
//!
//! A message is appended with the sequence that it must get (`Nats-Expected-Last-Sequence`). What an acknowledgement that is lost,
//! late or wrong means is found out by [`Shared`]; here, whoever asks waits until a server answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use parking_lot::Mutex;

use super::tail::Messages;
use super::wire::Wire;
use crate::cluster::moment::boot_time;
use crate::kernel::store::Error;
use crate::kernel::store::journal::entry::{Body, Position};
use crate::kernel::store::journal::seal::Seal;
use crate::kernel::store::journal::shared::{Answer, Log, Numbered, Shared};
use crate::kernel::store::journal::{Entries, Journal};

/// The pause before it is asked again what became of an entry.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause between two looks whether others have an entry.
const LOOK: Duration = Duration::from_millis(1);
/// Milliseconds between two looks whether an epoch is there that a node says there is.
const LOOK_MS: u64 = 1_000;
/// How long a stream may seem to be shorter than what it acknowledged, as it does while a new leader catches up.
const SHORT_MS: u64 = 15_000;

/// How this node stands as an owner, seen by its journal and by those who listen to the other nodes.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// The newest epoch that this node opened, or learned of from the journal.
    pub(crate) epoch: AtomicU64,
    /// The newest entry that it appended or applied.
    pub(crate) index: AtomicU64,
    /// The newest epoch that another node has opened, as the journal shows.
    heard: AtomicU64,
    /// The newest epoch of which another node says that it has learned.
    claimed: AtomicU64,
    /// When it was last looked in the journal whether that is so, in milliseconds since the machine was started.
    looked: AtomicU64,
    /// Where the newest entry stands.
    newest: Mutex<Position>,
    /// It opens the next epoch at this moment; others may hear of that before it does.
    opening: AtomicBool,
    /// When an entry was sent that a majority of the servers has taken since: this node owned the world then. In milliseconds since
    /// the machine was started.
    confirmed: AtomicU64,
    /// When waiting for the servers ends, in milliseconds since the machine was started; 0: not yet.
    pub(crate) ends: AtomicU64,
}

impl Standing {
    /// Notes the newest entry.
    pub(crate) fn note(&self, position: &Position) {
        self.epoch.store(position.epoch, Ordering::Release);
        self.index.store(position.index, Ordering::Release);
        *self.newest.lock() = *position;
    }

    /// When this node is known to have owned the world for the last time, in milliseconds since the machine was started.
    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }

    /// At this moment this node owned the world.
    pub(crate) fn confirm(&self, at: u64) {
        self.confirmed.fetch_max(at, Ordering::AcqRel);
    }

    /// Another node says that it has learned of this epoch. The journal knows.
    pub(crate) fn claim(&self, epoch: u64) {
        self.claimed.fetch_max(epoch, Ordering::AcqRel);
    }

    /// Does another node say that there is a newer epoch?
    pub(crate) fn is_claimed(&self) -> bool {
        !self.opening.load(Ordering::Acquire)
            && self.claimed.load(Ordering::Acquire) > self.epoch.load(Ordering::Acquire)
    }

    /// The entry behind which it is to be looked whether there is a newer epoch, if it is time for that.
    pub(crate) fn claim_to_check(&self, now: u64) -> Option<Position> {
        if !self.is_claimed() || now.saturating_sub(self.looked.load(Ordering::Acquire)) < LOOK_MS {
            return None;
        }
        self.looked.store(now, Ordering::Release);
        self.claimed.store(0, Ordering::Release);
        Some(*self.newest.lock())
    }

    /// Another node has opened this epoch, as the journal shows.
    pub(crate) fn hear(&self, epoch: u64) {
        self.heard.fetch_max(epoch, Ordering::AcqRel);
    }

    /// The epoch that another node has opened and this one has not learned of.
    pub(crate) fn newer(&self) -> Option<u64> {
        let heard = self.heard.load(Ordering::Acquire);
        (!self.opening.load(Ordering::Acquire) && heard > self.epoch.load(Ordering::Acquire)).then_some(heard)
    }

    /// May an owner still wait for the servers?
    fn goes_on(&self) -> Result<(), Error> {
        if let Some(epoch) = self.newer() {
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

/// The stream, for one who appends.
struct NatsLog {
    wire: Arc<Wire>,
    standing: Arc<Standing>,
    /// What was sent and is not answered, by the sequence that it is to get.
    sent: BTreeMap<u64, PublishAckFuture>,
}

impl Log for NatsLog {
    fn seal(&self) -> &Arc<Seal> {
        &self.wire.seals.journal
    }

    fn send(&mut self, number: u64, encoded: &[u8]) -> Result<(), Error> {
        self.standing.goes_on()?;
        let message = PublishMessage::build().payload(encoded.to_vec().into()).expected_last_sequence(number - 1);
        let sending = self.wire.context.send_publish(self.wire.subject(), message);
        match self.wire.wait(sending) {
            Ok(answer) => drop(self.sent.insert(number, answer)),
            Err(error) => tracing::debug!(%error, number, "an entry could not be sent"),
        }
        Ok(())
    }

    fn answer(&mut self, number: u64) -> Result<Answer, Error> {
        let Some(answer) = self.sent.remove(&number) else {
            std::thread::sleep(PAUSE);
            return Ok(Answer::Unknown);
        };
        match self.wire.wait(answer.into_future()) {
            Ok(stored) => Ok(Answer::Stored(stored.sequence)),
            Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                Err(Error::Journal(format!("the server takes no messages of this size: {error}")))
            }
            Err(error) => {
                tracing::debug!(%error, number, "an entry was not acknowledged");
                Ok(Answer::Unknown)
            }
        }
    }

    fn get(&self, number: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut short_since = None;
        loop {
            self.standing.goes_on()?;
            let found = self.wire.wait(async { (self.wire.message(number).await, self.wire.bounds().await) });
            match found {
                (Ok(Some(there)), _) => return Ok(Some(there.to_vec())),
                // Others have gone on, and let go of what stood there.
                (Ok(None), Ok((first, _))) if first > number => {
                    return Err(Error::Fenced { epoch: self.standing.epoch.load(Ordering::Acquire) + 1 });
                }
                (Ok(None), Ok((_, last))) if last + 1 == number => return Ok(None),
                (Ok(None), Ok((_, last))) if last < number => {
                    let since = *short_since.get_or_insert_with(boot_time);
                    if boot_time() - since > SHORT_MS {
                        return Err(Error::Lost { index: last + 1 });
                    }
                }
                // It was stored between the two questions, or nobody answers.
                (Ok(None), Ok(_)) => {}
                (Err(error), _) | (_, Err(error)) => {
                    tracing::debug!(%error, number, "it is not known whether an entry is stored");
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn bounds(&self) -> Result<(u64, u64), Error> {
        self.wire.wait(self.wire.bounds())
    }

    fn read(&self, number: u64) -> Result<Numbered<'_>, Error> {
        let (_, last) = self.bounds()?;
        Ok(Box::new(Messages::new(&self.wire, number).up_to(last)))
    }

    fn trim(&mut self, number: u64) -> Result<(), Error> {
        self.wire.wait(self.wire.trim(number))
    }
}

/// The journal of an owner.
pub(crate) struct NatsJournal {
    shared: Shared<NatsLog>,
    standing: Arc<Standing>,
    /// The copy of the world that the journal begins with, when it was that of a daemon that was alone.
    origin: Option<String>,
    /// When the newest entry was sent, in milliseconds since the machine was started.
    sent_at: u64,
    /// Says whether an entry that the servers have is durable enough.
    is_enough: Option<Box<dyn Fn(u64) -> bool + Send>>,
}

impl NatsJournal {
    /// The same, whose entries also wait until `is_enough` says so of their index.
    pub(crate) fn waiting_for(self, is_enough: impl Fn(u64) -> bool + Send + 'static) -> Self {
        Self { is_enough: Some(Box::new(is_enough)), ..self }
    }

    /// The journal of a store whose newest entry is at `position`. With `origin`, the world goes on from that copy as soon as
    /// it is open.
    pub(crate) fn new(wire: &Arc<Wire>, standing: &Arc<Standing>, position: &Position, origin: Option<String>) -> Self {
        let standing = Arc::clone(standing);
        let log = NatsLog { wire: Arc::clone(wire), standing: Arc::clone(&standing), sent: BTreeMap::new() };
        Self { shared: Shared::new(log, *position), standing, origin, sent_at: 0, is_enough: None }
    }

    fn open_as(&mut self, node: &str) -> Result<(), Error> {
        self.shared.open(node)?;
        if let Some(snapshot) = self.origin.take() {
            self.shared.append(&Body::Rebase { snapshot: snapshot.into() })?;
            let newest = *self.shared.newest();
            self.shared.acknowledged(&newest)?;
        }
        Ok(())
    }
}

impl Journal for NatsJournal {
    fn open(&mut self, node: &str) -> Result<(), Error> {
        self.standing.opening.store(true, Ordering::Release);
        self.sent_at = boot_time();
        let opened = self.open_as(node);
        if opened.is_ok() {
            self.standing.note(self.shared.newest());
            self.standing.confirm(self.sent_at);
        }
        self.standing.opening.store(false, Ordering::Release);
        opened
    }

    fn append(&mut self, body: &Body<'_>) -> Result<Option<Position>, Error> {
        self.sent_at = boot_time();
        self.shared.append(body)
    }

    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error> {
        let position = &self.shared.acknowledged(position)?;
        self.standing.note(position);
        // Entries are waited for one by one.
        self.standing.confirm(self.sent_at);
        while self.is_enough.as_ref().is_some_and(|is_enough| !is_enough(position.index)) {
            self.standing.goes_on()?;
            std::thread::sleep(LOOK);
        }
        Ok(*position)
    }

    fn read(&self, position: &Position) -> Result<Entries<'_>, Error> {
        self.shared.read(position)
    }

    fn trim(&mut self, index: u64) -> Result<(), Error> {
        self.shared.trim(index)
    }
}
