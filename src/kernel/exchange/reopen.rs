//! A store that found no room on the disk is opened anew, and its world with it: the engine cannot go on after a write that
//! failed. What was acknowledged is on the disk; what was not is answered as by a restart. One that fails again and again for
//! another reason ends the process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_api::http::audit_kinds;
use agentsvc_components::Actor;
use serde_json::json;

use super::{CLOSE_WAIT, Common, Entry, Exchange};
use crate::kernel::store::is_full;
use crate::kernel::store::writer::Stuck;

/// Time between two tries to open a store for which there is no room.
const AGAIN: Duration = Duration::from_secs(1);
/// Failures of the store that are not for want of room, in the time that they count for, after which it is opened anew. With the
/// next one the process ends.
const FAILURES_MAX: usize = 5;
/// How long a failure counts.
const FAILURES_WITHIN: Duration = Duration::from_secs(60 * 60);

/// When the store failed for other reasons than want of room.
#[derive(Default)]
struct Failures(VecDeque<Instant>);

impl Failures {
    /// It failed; how long to wait before it is opened anew, each time twice as long. `None` when it has failed too often.
    fn note(&mut self, now: Instant) -> Option<Duration> {
        self.0.retain(|at| now.saturating_duration_since(*at) < FAILURES_WITHIN);
        let before = self.0.len();
        self.0.push_back(now);
        let rest = AGAIN.saturating_mul(1 << before.min(FAILURES_MAX));
        (before < FAILURES_MAX).then_some(rest)
    }
}

impl Exchange {
    /// Opens the store anew from here on, whenever it says that it found no room and there is some, or that it failed.
    pub(crate) fn watch(self: &Arc<Self>) {
        let (exchange, store) = (Arc::downgrade(self), Arc::clone(&self.common.store));
        drop(self.common.handle.spawn(async move {
            let mut failures = Failures::default();
            loop {
                let why = store.until_stuck().await;
                if let Stuck::Failed(cause) = why {
                    let Some(rest) = failures.note(Instant::now()) else {
                        let Some(exchange) = exchange.upgrade() else { return };
                        let text =
                            format!("the store failed {} times in an hour, the last time: {cause}", FAILURES_MAX + 1);
                        return exchange.host.fatal(text);
                    };
                    tokio::time::sleep(rest).await;
                }
                let Some(exchange) = exchange.upgrade() else { return };
                let reopening = Arc::clone(&exchange);
                if let Err(error) = tokio::task::spawn_blocking(move || reopening.reopen()).await {
                    // It panicked between two worlds.
                    drop(exchange.give_up(&error));
                }
            }
        }));
    }

    /// Ends the present world, whose store takes no more, and brings it to life again as it is on the disk.
    pub(super) fn reopen(&self) {
        let Common { api, telling, handle, .. } = &self.common;
        let mut current = self.current.lock();
        if api.shutdown.is_triggered() {
            return;
        }
        let _told_alone = handle.block_on(Arc::clone(telling).lock_owned());
        let Some(world) = current.take() else { return };
        api.bridge.hold();
        let store = world.end();
        self.host.forget();
        let closed = store.watch();
        drop(store);
        // Whoever copies all rows has it open for as long as that takes.
        while !closed.is_closed_within(CLOSE_WAIT) {
            tracing::warn!("the store is still being read; it is opened anew when that is done");
            if api.shutdown.is_triggered() {
                return;
            }
        }
        let entry = Entry { actor: Actor::System, kind: audit_kinds::STORE_REOPENED, details: json!({}) };
        while !api.shutdown.is_triggered() {
            match self.revive(None, entry.clone()) {
                Ok(world) => {
                    *current = Some(world);
                    self.wait_until_open();
                    return tracing::warn!("the store was opened anew; no acknowledged change is lost");
                }
                Err(error) if is_full(&*error) => std::thread::sleep(AGAIN),
                Err(error) => return drop(self.give_up(&error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_fails_again_and_again_is_opened_anew_so_often_and_later_each_time() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let mut note = |secs: u64| failures.note(start + Duration::from_secs(secs)).map(|rest| rest.as_secs());
        let rests: Vec<_> = (0..6).map(|n| note(60 * n)).collect();
        assert_eq!(rests, [Some(1), Some(2), Some(4), Some(8), Some(16), None]);
        // Those of more than an hour ago count no more.
        assert_eq!(note(60 * 5 + 3_600), Some(1));
    }
}
