//! A store that found no room on the disk is opened anew, and its world with it: the engine cannot go on after a write that
//! failed. What was acknowledged is on the disk; what was not is answered as by a restart.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::audit_kinds;
use agentsvc_components::Actor;
use serde_json::json;

use super::{CLOSE_WAIT, Common, Entry, Exchange};
use crate::kernel::store::is_full;

/// Time between two tries to open a store for which there is no room.
const AGAIN: Duration = Duration::from_secs(1);

impl Exchange {
    /// Opens the store anew from here on, whenever it says that it found no room and there is some.
    pub(crate) fn watch(self: &Arc<Self>) {
        let (exchange, store) = (Arc::downgrade(self), Arc::clone(&self.common.store));
        drop(self.common.handle.spawn(async move {
            loop {
                store.until_stuck().await;
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
