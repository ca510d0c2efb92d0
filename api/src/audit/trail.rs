//! The audit trail as the front reads it. Implemented where the disk and the keys are known.

use std::sync::Arc;

use agentsvc_components::audit::record::{AuditEntry, AuditHead};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal};
use agentsvc_systems::audit::{Broken, Walked};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::error::ContentError;

/// Reads the trail. The calls touch the disk: on a tokio worker use `spawn_blocking`.
pub trait AuditLog: Send + Sync + 'static {
    /// The newest entries up to the head's last that `wanted` is about, newest first.
    fn recent(&self, head: AuditHead, wanted: &Wanted) -> Result<Found, ContentError>;

    /// Verifies the whole log. `head` asks the world where it ends; it is called once, after everything that is trusted
    /// beside it was read.
    ///
    /// # Errors
    /// The world's refusal, or the store could not be read.
    fn verify(&self, head: &dyn Fn() -> Result<AuditHead, Refusal>) -> Result<Verdict, Refusal>;

    /// What keeps the trail from being a proof now; `None` when nothing is known that does.
    fn fault(&self) -> Option<&'static str>;

    /// Is it known that the trail is not what was signed: a part of it was lost, set back or changed?
    fn is_contradicted(&self) -> bool;
}

/// Which entries are read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those before this one.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
    /// Only those of this type.
    pub event_type: Option<Box<str>>,
    /// Only those about this agent or by it.
    pub agent: Option<AgentId>,
    /// Only those with this text in type, actor or details, whatever the case; in lower case.
    pub text: Option<Box<str>>,
}

impl Wanted {
    /// Must entries be looked into?
    #[must_use]
    pub const fn is_filter(&self) -> bool {
        self.event_type.is_some() || self.agent.is_some() || self.text.is_some()
    }

    /// Is it about this entry?
    #[must_use]
    pub fn takes(&self, entry: &AuditEntry) -> bool {
        let is_of_type = self.event_type.as_ref().is_none_or(|kind| *kind == entry.event_type);
        is_of_type
            && self.agent.is_none_or(|agent| is_of(entry, agent))
            && self.text.as_ref().is_none_or(|text| has(entry, text))
    }
}

fn is_of(entry: &AuditEntry, agent: AgentId) -> bool {
    let by = || entry.actor.strip_prefix("agent:").and_then(|actor| actor.split('/').next()?.parse().ok());
    entry.agent == Some(agent) || by() == Some(agent)
}

/// People write the type with blanks, as pages show it.
fn has(entry: &AuditEntry, text: &str) -> bool {
    let places = [&entry.event_type, &entry.actor, &entry.details];
    places.iter().any(|place| place.to_lowercase().contains(text)) || entry.event_type.replace('_', " ").contains(text)
}

/// Entries, and where to go on.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
    /// [`Wanted::before`] of the entries that follow; `None` at the end.
    pub next: Option<u64>,
}

/// Result of a verification.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Where the trail ended when the walk began.
    pub head: AuditHead,
    /// That it is whole, or the first entry that is not as it was written.
    pub walked: Result<Walked, Broken>,
    /// The key that checkpoints are signed with, in hex.
    pub public_key: String,
    /// The newest entry signed in `audit.heads_file`; `None` when none is configured, or it has none.
    pub compared_with: Option<u64>,
}

/// Lets so many walks at a time over the trail. A bounded number of others wait.
struct Line {
    places: Arc<Semaphore>,
    walking: Arc<Semaphore>,
}

/// The right to walk; kept until the walk has ended, whether somebody still waits for it or not.
pub(crate) struct Walking {
    _place: OwnedSemaphorePermit,
    _walking: OwnedSemaphorePermit,
}

impl Line {
    fn new(at_once: usize) -> Self {
        let places = Semaphore::new(limit::AUDIT_WALKS_WAITING_MAX + at_once);
        Self { places: Arc::new(places), walking: Arc::new(Semaphore::new(at_once)) }
    }

    async fn enter(&self, what: &str) -> Result<Walking, Refusal> {
        let busy = || Refusal::busy(format!("too many audit {what} are running; try again later"), 10);
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| busy())?;
        let walking = Arc::clone(&self.walking).acquire_owned().await.map_err(|_| busy())?;
        Ok(Walking { _place: place, _walking: walking })
    }
}

/// The verifications of the trail: one at a time.
pub(crate) struct Verifications(Line);

impl Default for Verifications {
    fn default() -> Self {
        Self(Line::new(1))
    }
}

impl Verifications {
    /// Waits for the verifications before this one.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub(crate) async fn enter(&self) -> Result<Walking, Refusal> {
        self.0.enter("verifications").await
    }
}

/// The searches of the trail: a few at a time.
pub(crate) struct Searches(Line);

impl Default for Searches {
    fn default() -> Self {
        Self(Line::new(limit::AUDIT_SEARCHES_MAX))
    }
}

impl Searches {
    /// Waits for the searches before this one.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub(crate) async fn enter(&self) -> Result<Walking, Refusal> {
        self.0.enter("searches").await
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::RefusalKind;

    use super::*;

    #[tokio::test]
    async fn so_many_wait_for_a_walk_and_the_next_is_told_to_come_back() {
        let verifications = Arc::new(Verifications::default());
        let first = verifications.enter().await.unwrap();
        let enter = |_| {
            let verifications = Arc::clone(&verifications);
            tokio::spawn(async move { verifications.enter().await.is_ok() })
        };
        let waiting: Vec<_> = (0..limit::AUDIT_WALKS_WAITING_MAX).map(enter).collect();
        while verifications.0.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = verifications.enter().await.err().unwrap();
        assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::Busy, Some(10)));
        drop(first);
        for walked in waiting {
            assert!(walked.await.unwrap(), "those that wait have their turn");
        }
        assert!(verifications.enter().await.is_ok());
    }
}
