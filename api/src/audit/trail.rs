//! The audit trail as the front reads it. Implemented where the disk and the keys are known.

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::audit::record::{AuditEntry, AuditHead};
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::{Broken, Walked};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use crate::http::error::ContentError;

/// Reads the trail. The calls touch the disk: on a tokio worker use `spawn_blocking`.
pub trait AuditLog: Send + Sync + 'static {
    /// The newest entries up to the head's last, newest first, at most `limit`.
    fn recent(&self, head: AuditHead, limit: usize) -> Result<Vec<AuditEntry>, ContentError>;

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

/// Lets one walk at a time over the trail.
pub(crate) struct Verifications {
    places: Arc<Semaphore>,
    walking: Arc<Mutex<()>>,
}

/// The right to walk; kept until the walk has ended, whether somebody still waits for it or not.
pub(crate) struct Walking {
    _place: OwnedSemaphorePermit,
    _walking: OwnedMutexGuard<()>,
}

impl Default for Verifications {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(limit::AUDIT_WALKS_WAITING_MAX + 1)), walking: Arc::default() }
    }
}

impl Verifications {
    /// Waits for the verifications before this one.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub(crate) async fn enter(&self) -> Result<Walking, Refusal> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place =
            place.map_err(|_| Refusal::busy("too many audit verifications are running; try again later", 10))?;
        Ok(Walking { _place: place, _walking: Arc::clone(&self.walking).lock_owned().await })
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
        while verifications.places.available_permits() > 0 {
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
