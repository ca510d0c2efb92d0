//! Several nodes can keep one world, and one of them owns it. A world that is taken over comes to life as after a start; one that is
//! given up ends as in an exchange, but no other takes its place here: its store goes to whoever follows the new owner.

use std::sync::Arc;

use agentsvc_api::http::bridge::Intake;
use tokio::sync::watch;

use super::{Common, Entry, Error, Exchange};
use crate::kernel::store::Store;
use crate::kernel::store::writer::CommitQueue;

impl Exchange {
    /// Brings the world of `store` to life. It takes commands by `intake`; of the worlds of a process only the first has one that
    /// was there before. The rest is as with [`start`](Self::start). Only from threads that may wait.
    ///
    /// # Errors
    /// What is wrong with the world or its journal; then no world runs.
    pub(crate) fn take_over(
        &self,
        store: Store,
        intake: Option<Intake>,
        entry: Entry,
        first: bool,
    ) -> Result<(), Error> {
        let Common { api, telling, handle, .. } = &self.common;
        let mut current = self.current.lock();
        let _told_alone = handle.block_on(Arc::clone(telling).lock_owned());
        let intake = intake.unwrap_or_else(|| api.bridge.next_world());
        *current = Some(self.host.start(store, intake, entry, first)?);
        self.is_given_away.send_replace(false);
        self.starts.send_replace(());
        Ok(())
    }

    /// Ends the present world, which is another node's from here on, and gives its store; `None` when there is none. Only from
    /// threads that may wait.
    pub(crate) fn give_away(&self) -> Option<Store> {
        let Common { api, telling, handle, .. } = &self.common;
        let mut current = self.current.lock();
        let _told_alone = handle.block_on(Arc::clone(telling).lock_owned());
        let world = current.take()?;
        api.bridge.hold();
        self.is_given_away.send_replace(true);
        let store = world.end();
        // Keys may be revoked there: when the world comes back, they are read again before one is admitted.
        api.access.keys.expect();
        self.host.forget();
        Some(store)
    }

    /// The way to the writer of the present world.
    pub(crate) fn commits(&self) -> Option<CommitQueue> {
        self.current.lock().as_ref().and_then(|world| world.commits())
    }

    /// Says whether the world was given up to another node and has not come back, and hears when that changes.
    pub(crate) fn is_given_away(&self) -> watch::Receiver<bool> {
        self.is_given_away.subscribe()
    }

    /// Waits until the store that was given away, or did not come to life, is closed by everybody; false if it is not in time.
    pub(crate) fn is_store_free(store: Store) -> bool {
        let watch = store.watch();
        drop(store);
        watch.is_closed_within(super::CLOSE_WAIT)
    }
}
