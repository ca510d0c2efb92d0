//! What a standby has on its disk.

use std::sync::atomic::Ordering;

use super::members::Members;
use super::moment::boot_time;
use super::nats::Wire;
use crate::kernel::store::{Error, Store};

/// Milliseconds after which what was applied is synced.
const SYNC_MS: u64 = 1_000;

/// Syncs what was applied: now and then, or at once where owners wait for that.
pub(super) struct Synced {
    index: u64,
    at: u64,
    is_eager: bool,
}

impl Synced {
    pub(super) fn new(store: &Store, members: &Members, is_eager: bool) -> Result<Self, Error> {
        store.sync()?;
        let index = store.position()?.index;
        members.synced.store(index, Ordering::Release);
        Ok(Self { index, at: boot_time(), is_eager })
    }

    pub(super) fn look(&mut self, store: &Store, wire: &Wire, members: &Members) -> Result<(), Error> {
        let index = members.standing.index.load(Ordering::Acquire);
        if index == self.index || !self.is_eager && boot_time() - self.at < SYNC_MS {
            return Ok(());
        }
        store.sync()?;
        (self.index, self.at) = (index, boot_time());
        members.synced.store(index, Ordering::Release);
        if self.is_eager
            && let Err(error) = wire.wait(super::talk::say(wire, members))
        {
            tracing::debug!(%error, "the owner could not be told what is on the disk of this node");
        }
        Ok(())
    }
}
